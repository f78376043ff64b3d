#!/bin/sh
# Build what tests/hardware runs on a machine with a GPU: NVIDIA's device plugin, GPU feature discovery and config manager of
# one version, and a kubelet's side of the device plugin API.
#
#   tools/hardware.sh [VERSION]        builds them into .tools/hardware-VERSION (v0.19.0 unless another one is named)
#   tools/hardware.sh pack [VERSION]   packs them with the cases into .tools/hardware/VERSION.tar.gz, some 25 MB: all that a
#                                      machine without a network needs. There, as root, beside a Python 3:
#
#       mkdir p && tar -C p -xzf VERSION.tar.gz && python3 p/run.py OUT
#
#   and here, with what lies in OUT:  .venv/bin/python -m tests.hardware.pack.record OUT
#
# They come from Go modules that tests/hardware/go pins with hashes; kept.sh says where they are kept. A C compiler is needed:
# the programs open NVIDIA's library when they run. Nothing on the card is changed, and no daemon is started.
set -eu
cd "$(dirname "$0")/.."
. tools/kept.sh

pack=
[ "${1-}" != pack ] || { pack=yes && shift; }
version=${1-v0.19.0}
module=tests/hardware/go/$version
kubelet=tests/hardware/go/kubelet
[ -f "$module/go.mod" ] || {
  echo "error: there are no pins for the device plugin $version. There are: $(cd tests/hardware/go && echo v*)" >&2
  exit 2
}
what="NVIDIA's device plugin $version for the tests"
missing="there is no device plugin to try"
nvidia="nvidia-device-plugin gpu-feature-discovery config-manager"
programs="$nvidia kubelet"
recipe=1

if ! kept "hardware-$version" 4 "$module/go.mod" "$module/go.sum" $kubelet/go.mod $kubelet/go.sum $kubelet/main.go; then
  command -v "${CC:-gcc}" >/dev/null || fail "there is no C compiler to build it with"
  build kubelet . $kubelet
  # The library's symbols are looked up when the program runs, as NVIDIA's own build has it.
  export CGO_ENABLED=1 CGO_CFLAGS=-w \
    CGO_LDFLAGS="-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy"
  for program in $nvidia; do
    build "$program" "github.com/NVIDIA/k8s-device-plugin/cmd/$program" "$module"
  done
  keep
fi
[ -n "$pack" ] || exit 0

out=.tools/hardware
mkdir -p "$out"
work=$(mktemp -d "$out/.pack.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/$version"
cp ".tools/hardware-$version/bin/nvidia-device-plugin" ".tools/hardware-$version/bin/gpu-feature-discovery" "$work/$version"
cp ".tools/hardware-$version/bin/kubelet" tests/hardware/pack/run.py "$work"
.venv/bin/python -m tests.hardware.pack.pack "$work/cases.json"
tar -C "$work" -czf "$out/$version.tar.gz" "$version" kubelet run.py cases.json
echo "$out/$version.tar.gz"
