#!/bin/sh
# See to it that there is a promtool, which tests/components/monitoring asks whether alerts fire: the PATH's own, else that of
# Debian's package prometheus, unpacked into .tools/bin. Nothing is installed on the machine. Without it those tests are
# skipped, so this ends with 5 where it can't be had, and .ci/run with it.
set -eu
cd "$(dirname "$0")/.."

built=$PWD/.tools/bin/promtool
[ ! -x "$built" ] || exit 0
! command -v promtool >/dev/null || exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "error: there is no promtool on the PATH and no apt-get to get it with. Install Prometheus, and run it again." >&2
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
mv "$work/unpacked/usr/bin/promtool" "$built"
