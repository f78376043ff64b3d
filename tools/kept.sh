#!/bin/sh
# Build a set of programs from Go modules once, and keep it by content outside the checkout. Read with `.` by the scripts
# that say which: they call `kept NAME MINUTES PINS...` and, where that fails, build each program and call `keep`.
#
# A set is in ${XDG_CACHE_HOME:-~/.cache}/gpustack-tools/DIGEST, so that a fresh clone and other checkouts find it;
# .tools/NAME is a link to it. Where no such folder can be written, it is below .tools. DIGEST is that of the pins, of what is
# built how (the calling script's variable `recipe`) and of the machine's kind.
# What was interrupted goes on where it stopped: Go's modules and its cache, and programs that are done, stay in
# NAME.work until all of it is built; then the set gets its name, in one step. Everything there may be deleted at any time.

fail() {
  echo "error: $missing: $1. Reach a network, and run it again." >&2
  exit 5
}

sum() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

whole() {
  for program in $programs; do
    [ -x "$1/bin/$program" ] || return 1
  done
}

# Make .tools/NAME a link to the set at $1.
link() {
  [ "$(readlink "$PWD/.tools/$name")" != "$1" ] || return 0
  mkdir -p .tools
  [ -L ".tools/$name" ] || rm -rf ".tools/$name"
  ln -sfn "$1" ".tools/$name"
}

# Use the set that is there.
found() {
  for cache in "$@"; do
    if whole "$cache/$digest"; then
      link "$cache/$digest"
      return 0
    fi
  done
  return 1
}

# kept NAME MINUTES PINS...: whether the set is there. If not, everything is ready for `build` afterwards.
kept() {
  name=$1 minutes=$2
  shift 2
  digest=$({ cat "$@" && echo "$programs $recipe" && uname -sm; } | sum)
  digest=${digest%% *}
  set -- "$PWD/.tools/kept"
  case ${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}} in
  /*) set -- "${XDG_CACHE_HOME:-$HOME/.cache}/gpustack-tools" "$@" ;;
  esac
  ! found "$@" || return 0
  for cache in "$@"; do
    # As root everything seems to be writable, so try.
    mkdir -p "$cache" 2>/dev/null && probe=$(mktemp -d "$cache/.XXXXXX" 2>/dev/null) && rmdir "$probe" && break
    cache=
  done
  [ -n "$cache" ] || fail "nothing can be written below .tools"
  go=$(tools/go.sh) || fail "there is no Go to build it with (the reason stands above)"
  work=$cache/$name.work
  # Two at once would do the same work twice; where the system has flock, the second waits for the first.
  exec 9>"$cache/$name.lock"
  ! command -v flock >/dev/null || flock 9
  ! found "$cache" || return 0
  mkdir -p "$work/$digest/bin"
  # -modcacherw: otherwise Go writes its modules read-only, and the folder could not be removed.
  export GOFLAGS=-modcacherw GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0 GOPATH="$work/path" GOCACHE="$work/cache" \
    GOMODCACHE="$work/path/pkg/mod"
  echo "building $what (once, about $minutes minutes on 2 cores)" >&2
  return 1
}

# Go prints each package that it compiles: count them, and let its other words (errors) through.
progress() {
  awk -v of="$1" '
    /^[A-Za-z0-9._~\/-]+$/ { if (++n % 200 == 0) print "  " n " of at most " of " packages"; fflush(); next }
    /^go: downloading / { next }
    { print; fflush() }' >&2
}

# build PROGRAM PACKAGE FOLDER [LDFLAGS]
build() {
  target=$work/$digest/bin/$1
  [ ! -x "$target" ] || return 0
  echo "building $1" >&2
  rm -f "$work/built"
  (
    cd "$3"
    all=$("$go" list -deps "$2" | wc -l)
    # A pipe's status is its last part's, so that Go's is kept as a file.
    { "$go" build -v -trimpath -ldflags "-s -w ${4-}" -o "$target.new" "$2" 2>&1 && touch "$work/built"; } | progress "$all"
  )
  [ -f "$work/built" ] || fail "Go could not build $1 (its own words stand above)"
  mv "$target.new" "$target"
}

# Give the set its name.
keep() {
  rm -rf "${cache:?}/$digest"
  mv "$work/$digest" "$cache/$digest"
  rm -rf "$work"
  link "$cache/$digest"
}
