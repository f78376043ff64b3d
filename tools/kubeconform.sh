#!/bin/sh
# See to it that there is a kubeconform: the PATH's own, else .tools/bin/kubeconform, built once by Go.
#
# `gpustack validate` asks it for a second opinion over dist/. What is built is pinned with hashes by
# tools/kubeconform/go.mod and go.sum; a copy of them beside the program says what it was built from.
# Nothing outside the checkout is written, a home folder is not needed, and neither is a C compiler.
set -eu
cd "$(dirname "$0")/.."

module=tools/kubeconform
built=.tools/bin/kubeconform
found=$(command -v kubeconform) && [ "$found" != "$PWD/$built" ] && exit 0 # make has .tools/bin on its PATH
stamp=.tools/bin/.kubeconform-from
from() {
  cat $module/go.mod $module/go.sum
}
[ ! -x $built ] || ! from | cmp -s - $stamp || exit 0

fail() {
  echo "error: there is no kubeconform on the PATH, and $1. Install kubeconform, or reach a network, and run it again." >&2
  exit 5
}

go=$(tools/go.sh) || fail "no Go to build it with (the reason stands above)"
echo "building kubeconform (once, about half a minute)" >&2
mkdir -p .tools/bin
work=$(mktemp -d "$PWD/.tools/kubeconform.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
# -modcacherw: otherwise Go writes its modules read-only, and the folder could not be removed.
(
  cd $module
  GOFLAGS=-modcacherw GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0 GOPATH="$work/path" GOCACHE="$work/cache" \
    GOMODCACHE="$work/path/pkg/mod" "$go" build -trimpath -ldflags=-s -o "$work/kubeconform" github.com/yannh/kubeconform/cmd/kubeconform
) || fail "Go could not build it (its own words stand above)"
rm -f $stamp
mv "$work/kubeconform" $built
from >$stamp
