#!/bin/sh
# Build what tests/engines starts beside the control plane: Argo CD, and Flux's source and kustomize controllers.
#
# They come from Go modules that tests/engines/go pins with hashes, once, in about 12 minutes on 2 cores; kept.sh says where
# they are kept. Redis, by which Argo CD's parts talk, is Debian's. What no program says of itself is beside them: the
# definitions of their kinds, from the same modules.
set -eu
cd "$(dirname "$0")/.."
. tools/kept.sh

argocd=github.com/argoproj/argo-cd/v3
flux=github.com/fluxcd
modules=tests/engines/go
what="Argo CD and Flux for the tests"
missing="there are no engines to test with"
programs="argocd source-controller kustomize-controller"
recipe=1
pins="$modules/argocd/go.mod $modules/argocd/go.sum $modules/flux/go.mod $modules/flux/go.sum"

# crds ENGINE FOLDER MODULE PATH: copy the definitions of MODULE's kinds.
crds() {
  at=$(cd "$2" && "$go" mod download "$3" >&2 && "$go" list -m -f '{{.Dir}}' "$3")
  mkdir -p "$work/$digest/crds/$1"
  cp "$at/$4"/*.yaml "$work/$digest/crds/$1"
  chmod u+w "$work/$digest/crds/$1"/*
}

tools/redis.sh
# shellcheck disable=SC2086 # file names without blanks
! kept engines 12 $pins || exit 0

build source-controller $flux/source-controller $modules/flux
build kustomize-controller $flux/kustomize-controller $modules/flux
release=$(sed -n "s,^[[:space:]]*$argocd v\([0-9.]*\).*,\1,p" $modules/argocd/go.mod)
build argocd $argocd/cmd $modules/argocd "-X $argocd/common.version=$release"
crds flux $modules/flux $flux/source-controller config/crd/bases
crds flux $modules/flux $flux/kustomize-controller config/crd/bases
crds argocd $modules/argocd $argocd manifests/crds
rm -f "$work/$digest/crds"/*/kustomization.yaml
keep
