#!/bin/sh
# Make a virtual environment from pinned requirements, or find in milliseconds that it is there.
#
#   tools/venv.sh runtime   .venv with what `gpustack` needs to run
#   tools/venv.sh dev       .venv with that and with what tests and lint need
#   tools/venv.sh NAME      .tools/NAME-venv from requirements/NAME.txt, which for `fleet` has all of runtime.txt as well
#
# An environment keeps a record of what it was made from: the contents of the files, the place, the interpreter. It is
# current while the record is still true. Times of files are not looked at, so a fresh clone, a switched branch or a
# touched file costs nothing, and a folder that was moved or a system Python that was upgraded is noticed.
# The record is written last: what was interrupted has none, and is made again from scratch.
set -eu
cd "$(dirname "$0")/.."
name=${1:?usage: tools/venv.sh runtime|dev|NAME}
case $name in
runtime | dev) venv=.venv ;;
*) venv=.tools/$name-venv ;;
esac

fail() {
  printf 'error: %s\n' "$@" >&2
  exit 5
}

# The requirement files of an environment. dev.txt holds all of runtime.txt and build.txt.
files() {
  case $1 in
  runtime) echo requirements/runtime.txt requirements/build.txt ;;
  *) echo "requirements/$1.txt" ;;
  esac
}

# shellcheck disable=SC2046 # file names without blanks
recipe() {
  pwd -P
  readlink -f "$venv/bin/python"
  cat $(files "$1")
}

current() {
  [ -f "$venv/.from-$1" ] && recipe "$1" 2>&1 | cmp -s - "$venv/.from-$1"
}

# The package itself is installed editable: again only when its name, its commands or its version may have changed.
package() {
  cat pyproject.toml gpustack/__init__.py
}

package_current() {
  [ $venv != .venv ] || package | cmp -s - $venv/.from-package
}

# An interpreter that was asked for by name is the one the environment must have.
right_python() {
  [ -z "${PYTHON-}" ] || [ "$PYTHON" = "$(cat "$venv/.from-python" 2>&1)" ]
}

find_python() {
  python=${PYTHON:-python3}
  remedy="Install one (Debian and Ubuntu: apt-get install python3 python3-venv; macOS: brew install python3), or name one that you have: make setup PYTHON=python3.12"
  command -v "$python" >/dev/null ||
    fail "gpustack needs Python 3.11 or newer, and there is no $python on the PATH. $remedy"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "gpustack needs Python 3.11 or newer; $python is $("$python" --version 2>&1). $remedy"
}

pip() {
  "$venv/bin/python" -m pip --disable-pip-version-check --no-input --quiet "$@" ||
    fail "pip could not install into $venv (its own words stand above). Without a package index in reach, name a folder that has the wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR make setup"
}

keep=no
if right_python && current "$name"; then
  ! package_current || exit 0
  keep=yes
elif [ "$name" = dev ] && [ ! -e .venv/.from-dev ] && right_python && current runtime; then
  keep=yes # the tools go on top
fi

if [ $keep = yes ]; then
  python=$(cat "$venv/.from-python")
else
  find_python
  echo "making $venv for $name (once, and again when the pinned requirements change)" >&2
fi
rm -f "$venv"/.from-* # first: from here on it is half-made
if [ $keep = no ]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" ||
    fail "$python could not make a virtual environment. Debian and Ubuntu keep that part in a package of its own: apt-get install python3-venv"
fi
for file in $(files "$name"); do
  set -- "$@" -r "$file"
done
shift
# Wheels only: nothing is compiled, and no build tool is fetched that the hashes do not cover.
pip install --require-hashes --only-binary :all: "$@"
if [ $venv = .venv ]; then
  pip install --no-deps --no-build-isolation --editable .
  package >$venv/.from-package
  [ "$name" = runtime ] || recipe runtime >$venv/.from-runtime
fi
echo "$python" >"$venv/.from-python"
recipe "$name" >"$venv/.new" && mv "$venv/.new" "$venv/.from-$name"
