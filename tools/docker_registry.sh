#!/bin/sh
# See to it that there is a registry to test with: the PATH's docker-registry, else Debian's package of it, unpacked into
# .tools/bin. Nothing is installed on the machine, and where there is no apt-get the tests that want it are skipped: the
# same tests run against the registry of tests/loopback_registry.py.
set -eu
cd "$(dirname "$0")/.."

built=$PWD/.tools/bin/docker-registry
[ ! -x "$built" ] || exit 0
! command -v docker-registry >/dev/null || exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "note: there is no docker-registry on the PATH and no apt-get to get it with; its tests are skipped" >&2
  exit 0
fi
mkdir -p .tools/bin
work=$(mktemp -d "$PWD/.tools/docker-registry.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
if ! (cd "$work" && apt-get download -qq docker-registry >log 2>&1 && dpkg -x docker-registry_*.deb unpacked); then
  echo "note: apt-get could not bring docker-registry; its tests are skipped" >&2
  cat "$work/log" >&2
  exit 0
fi
mv "$work/unpacked/usr/bin/docker-registry" "$built"
