#!/bin/sh
# Pin what pyproject.toml asks for into requirements/*.txt, with the hashes of all files of each version.
#
#   tools/lock.sh             keep the pins that still fit, add and remove what changed
#   tools/lock.sh --upgrade   take the newest of everything
#
# One resolution serves every supported Python and platform: what differs carries a marker. pip-compile resolves for the
# interpreter that runs it only. The files name versions and hashes, never where they came from.
set -eu
cd "$(dirname "$0")/.."
tools/venv.sh lock

pin() {
  out=requirements/$1.txt
  shift
  .tools/lock-venv/bin/uv --no-config pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-build \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$@" --output-file "$out"
  echo "$out: $(grep -c '==' "$out") packages" >&2
}

group() {
  name=$1
  shift
  pin "$name" --group "pyproject.toml:$name" "$@"
}

pin runtime pyproject.toml "$@"
group build "$@" --constraint requirements/runtime.txt
pin dev pyproject.toml --group dev "$@" --constraint requirements/runtime.txt --constraint requirements/build.txt
pin fleet pyproject.toml --group fleet "$@" --constraint requirements/runtime.txt
for name in docs go lock objects reconciler release schemas sign; do
  group "$name" "$@"
done
