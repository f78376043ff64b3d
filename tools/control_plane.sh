#!/bin/sh
# Build the control plane of tests/control_plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl.
#
# They come from Go modules that tests/control_plane/go pins with hashes, once, in about 9 minutes on 2 cores; kept.sh says
# where they are kept. Neither a home folder nor a C compiler is needed.
set -eu
cd "$(dirname "$0")/.."
. tools/kept.sh

module=tests/control_plane/go
what="the tests' control plane"
missing="there is no control plane to test with"
kubernetes="kube-apiserver kube-controller-manager kube-scheduler kubectl"
programs="etcd $kubernetes"
recipe=1
pins="$module/go.mod $module/go.sum $module/etcd/go.mod $module/etcd/go.sum"
# shellcheck disable=SC2086 # file names without blanks
! kept control-plane 9 $pins || exit 0

build etcd go.etcd.io/etcd/server/v3 $module/etcd
release=$(sed -n 's/^require k8s.io\/kubernetes v\([0-9.]*\).*/\1/p' $module/go.mod)
minor=${release#*.}
as=k8s.io/component-base/version
for program in $kubernetes; do
  build "$program" "k8s.io/kubernetes/cmd/$program" $module \
    "-X $as.gitVersion=v$release -X $as.gitMajor=1 -X $as.gitMinor=${minor%%.*}"
done
keep
