#!/bin/sh
# See to it that there is cloud-init's own schema of its configuration, .tools/cloud-init.schema.json: from Debian's package, which
# is unpacked and not installed.
set -eu
cd "$(dirname "$0")/.."

schema=$PWD/.tools/cloud-init.schema.json
[ ! -s "$schema" ] || exit 0
for program in apt-get dpkg-deb; do
  if ! command -v "$program" >/dev/null; then
    echo "error: there is no $program to bring cloud-init's schema with: run these tests on Debian" >&2
    exit 1
  fi
done
mkdir -p .tools
work=$(mktemp -d "$PWD/.tools/cloud-init.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

bring() {
  (cd "$work" && apt-get download -qq cloud-init) >"$work/log" 2>&1
}

if ! bring && ! { apt-get update -qq >"$work/log" 2>&1 && bring; }; then
  echo "error: apt-get could not bring cloud-init:" >&2
  cat "$work/log" >&2
  exit 1
fi
dpkg-deb -x "$work"/cloud-init_*.deb "$work/root"
mv "$work/root/usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json" "$schema"
