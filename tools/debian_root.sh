#!/bin/sh
# See to it that there is a root filesystem to start the reconciler's image in, where no image can be pulled: Debian's Python
# (the version of .venv, whose compiled packages are copied into it) with the libraries that it needs, unpacked into
# .tools/debian-root; .tools/debian-root.sha256 says which packages. Nothing is installed on the machine.
set -eu
cd "$(dirname "$0")/.."

root=$PWD/.tools/debian-root
[ ! -d "$root" ] || [ ! -f "$root.sha256" ] || exit 0
rm -rf "$root"
for program in apt-get dpkg; do
  if ! command -v "$program" >/dev/null; then
    echo "error: there is no $program to make a root of Debian's packages with: run this on Debian" >&2
    exit 1
  fi
done
if [ ! -x .venv/bin/python ]; then
  echo "error: there is no .venv, whose Python the root is to have: run make debian-root, which makes it first" >&2
  exit 1
fi
mkdir -p .tools
work=$(mktemp -d "$PWD/.tools/debian-root.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
version=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
no="--no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances"

wanted() {
  # shellcheck disable=SC2086 # a list of words
  apt-cache depends --recurse $no "python$version-minimal" "libpython$version-stdlib" |
    grep -E '^(python|lib|zlib)' | grep -v perl | sort -u
}

bring() {
  # shellcheck disable=SC2046 # a list of words
  (cd "$work" && apt-get download -qq $(wanted)) >"$work/log" 2>&1
}

if ! bring && ! { apt-get update -qq >"$work/log" 2>&1 && bring; }; then
  echo "error: apt-get could not bring Debian's Python $version, which .venv has:" >&2
  cat "$work/log" >&2
  exit 1
fi
mkdir "$work/root"
for package in "$work"/*.deb; do
  dpkg -x "$package" "$work/root"
done
ln -s "python$version" "$work/root/usr/bin/python" # as the base of the Containerfile calls it
mv "$work/root" "$root"
(cd "$work" && sha256sum -- *.deb) >"$root.sha256"
