#!/bin/sh
# Make a virtual environment of pinned requirements, or find in milliseconds that it is there: venv.sh FOLDER REQUIREMENTS
#
# An environment keeps a record of what it was made of: the text of the requirements, its own place, the interpreter. It
# is current while the record is true; times of files are not looked at. The record is written last: what was
# interrupted has none. Wheels alone, each by its hash: nothing is built. Python runs isolated (-I), so that no file of
# the current folder is imported. PYTHON names the interpreter.
set -eu
folder=$1
requirements=$2

fail() {
  printf 'error: %s\n  do: %s\n' "$1" "$2" >&2
  exit 5
}

recipe() {
  (CDPATH='' cd -- "$folder" && pwd -P)
  readlink -f "$folder/bin/python"
  cat "$requirements"
}

if [ -L "$folder" ] || [ -n "$(git -c core.fsmonitor=false ls-files -- "$folder" 2>/dev/null | head -n 1)" ]; then
  fail "$folder is committed, and would be run" "remove it from Git; it is made of $requirements"
fi
# Beside requirements.txt, requirements-VERSION.txt is that of another version of gpustack, which gpustack.lock names for clusters:
# it gets an environment of its own outside of the clone, where gpustack looks for it.
if [ "$(basename -- "$requirements")" = requirements.txt ]; then
  versions=${GPUSTACK_VERSIONS:-${XDG_DATA_HOME:-${HOME-}/.local/share}/gpustack/versions}
  for more in "$(dirname -- "$requirements")"/requirements-[0-9]*.txt; do
    [ -f "$more" ] || continue
    name=${more##*/requirements-}
    "$0" "$versions/${name%.txt}" "$more"
  done
fi
if [ -f "$folder/.made-of" ] && recipe 2>/dev/null | cmp -s - "$folder/.made-of"; then
  exit 0
fi
if grep -q '^<' "$requirements"; then
  fail "$requirements does not say yet where gpustack comes from" "edit its line in angle brackets, as the comment above it says"
fi
python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "there is no $python on the PATH" "install Python 3.11 or newer"
"$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "gpustack needs Python 3.11 or newer" "name one that you have: PYTHON=python3.12"
echo "making $folder (once, and again when $requirements changes)" >&2
rm -rf -- "$folder"
"$python" -I -m venv "$folder" ||
  fail "$python can't make a virtual environment" "install its package for that (Debian and Ubuntu: python3-venv)"
place=$(CDPATH='' cd -- "$folder" && pwd -P)
(
  CDPATH='' cd -- "$(dirname -- "$requirements")" # a wheel in the repository is named from there
  "$place/bin/python" -I -m pip --disable-pip-version-check --no-input --quiet install \
    --require-hashes --only-binary :all: --requirement "$(basename -- "$requirements")"
) || fail "pip can't install $requirements" "its own words stand above"
recipe >"$folder/.new" && mv "$folder/.new" "$folder/.made-of"
