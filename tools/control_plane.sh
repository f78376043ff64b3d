#!/bin/sh
# Build the control plane of tests/control_plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl.
#
# They come from Go modules that tests/control_plane/go pins with hashes, into .tools/control-plane/bin, once; a copy of
# the pins beside the programs says what they were built from. It takes about 9 minutes on 2 cores. What was interrupted
# goes on where it stopped: Go's modules and its cache stay in .tools/control-plane/work until all of it is built.
# Nothing outside the checkout is written, and neither a home folder nor a C compiler is needed.
set -eu
cd "$(dirname "$0")/.."

module=tests/control_plane/go
home=$PWD/.tools/control-plane
stamp=$home/.from
programs="kube-apiserver kube-controller-manager kube-scheduler kubectl"
from() {
  cat $module/go.mod $module/go.sum $module/etcd/go.mod $module/etcd/go.sum
}
current() {
  for program in etcd $programs; do
    [ -x "$home/bin/$program" ] || return 1
  done
  from | cmp -s - "$stamp"
}
! current || exit 0

fail() {
  echo "error: there is no control plane to test with: $1. Reach a network, and run it again." >&2
  exit 5
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
  echo "building $1" >&2
  (
    cd "$3"
    all=$("$go" list -deps "$2" | wc -l)
    # A pipe's status is its last part's, so that Go's is kept as a file.
    { "$go" build -v -trimpath -ldflags "-s -w ${4-}" -o "$work/new/$1" "$2" 2>&1 && touch "$work/built"; } | progress "$all"
  )
  rm "$work/built" || fail "Go could not build $1 (its own words stand above)"
}

go=$(tools/go.sh) || fail "there is no Go to build it with (the reason stands above)"
work=$home/work
mkdir -p "$work"
# Two at once would do the same work twice; where the system has flock, the second waits for the first.
exec 9>"$work/lock"
! command -v flock >/dev/null || flock 9
! current || exit 0

rm -rf "$work/new" "$work/built"
mkdir -p "$work/new" "$home/bin"
# -modcacherw: otherwise Go writes its modules read-only, and the folder could not be removed.
export GOFLAGS=-modcacherw GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0 GOPATH="$work/path" GOCACHE="$work/cache" \
  GOMODCACHE="$work/path/pkg/mod"

echo "building the tests' control plane (once, about 9 minutes on 2 cores)" >&2
build etcd go.etcd.io/etcd/server/v3 $module/etcd
release=$(sed -n 's/^require k8s.io\/kubernetes v\([0-9.]*\).*/\1/p' $module/go.mod)
minor=${release#*.}
as=k8s.io/component-base/version
for program in $programs; do
  build "$program" "k8s.io/kubernetes/cmd/$program" $module \
    "-X $as.gitVersion=v$release -X $as.gitMajor=1 -X $as.gitMinor=${minor%%.*}"
done

rm -f "$stamp"
mv "$work"/new/* "$home/bin"
from >"$stamp"
rm -rf "$work"
