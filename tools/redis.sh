#!/bin/sh
# See to it that there is a redis-server for Argo CD's parts to talk by: the PATH's, else Debian's, unpacked with its
# libraries into .tools/redis. Nothing is installed on the machine, where a package would start it as a service.
set -eu
cd "$(dirname "$0")/.."

[ ! -x .tools/redis/redis-server ] || exit 0
! command -v redis-server >/dev/null || exit 0
fail() {
  echo "error: there is no redis-server on the PATH, and $1. Install it, and run this again." >&2
  exit 5
}
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  fail "no apt-get to get it with"
fi
mkdir -p .tools
work=$(mktemp -d "$PWD/.tools/redis.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
bring() {
  (cd "$work" && apt-get download -qq redis-tools liblzf1 libjemalloc2 libatomic1) >"$work/log" 2>&1
}
if ! bring && ! { [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1 && bring; }; then
  cat "$work/log" >&2
  fail "apt-get could not bring it (its own words stand above)"
fi
for package in "$work"/*.deb; do
  dpkg -x "$package" "$work/unpacked"
done
mkdir "$work/new" "$work/new/lib"
# One program under several names: by this one it is the server.
cp "$work/unpacked/usr/bin/redis-check-rdb" "$work/new/redis-server"
cp -L "$work"/unpacked/usr/lib/*/*.so.* "$work/new/lib"
rm -rf .tools/redis
mv "$work/new" .tools/redis
