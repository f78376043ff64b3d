#!/bin/sh
# See to it that there is a Chromium for tests/browser: the PATH's own, else Debian's, where apt-get may install it.
#
# A browser can't be built here, and one that comes from elsewhere is nobody's to update. So where it is neither there nor
# to be had by the system's own packages, this says so and ends with 5: browser tests are never left out without a word.
set -eu

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done

fail() {
  echo "error: there is no Chromium on the PATH, and $1. Install the package chromium, and run it again." >&2
  exit 5
}

command -v apt-get >/dev/null || fail "no apt-get to install it with"
[ "$(id -u)" = 0 ] || fail "only root may install it"
echo "installing Debian's chromium (once, about a minute)" >&2
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null ||
  fail "apt-get could not install it (its own words stand above)"
