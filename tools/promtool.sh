#!/bin/sh
# See to it that there are promtool and prometheus, by which tests/components/monitoring sees whether alerts fire: the PATH's
# own, else those of Debian's package prometheus, unpacked into .tools/bin. Nothing is installed on the machine. Without them
# those tests are skipped, so this ends with 5 where they can't be had, and .ci/run with it.
set -eu
cd "$(dirname "$0")/.."

PATH=$PATH:$PWD/.tools/bin
! { command -v promtool && command -v prometheus; } >/dev/null || exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "error: there is no promtool or prometheus on the PATH and no apt-get to get it with. Install Prometheus, and run it again." >&2
  exit 5
fi
mkdir -p .tools/bin
work=$(mktemp -d "$PWD/.tools/promtool.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
bring() {
  (cd "$work" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb unpacked) >"$work/log" 2>&1
}
if ! bring && ! { apt-get update -qq >"$work/log" 2>&1 && bring; }; then
  echo "error: apt-get could not bring Debian's prometheus:" >&2
  cat "$work/log" >&2
  exit 5
fi
mv "$work"/unpacked/usr/bin/* .tools/bin/
