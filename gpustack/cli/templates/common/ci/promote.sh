#!/bin/sh
# Take changes further that are due, each in a commit of its own: promote.sh KUBECONFIG, on a clean clone of the default branch
#
# KUBECONFIG is a login that may list, with a context for each cluster, called as the cluster is. Nothing is pushed here, and
# nothing happens where there are no rings (policies/fleet.yaml).
set -eu
if [ ! -f policies/fleet.yaml ]; then
  echo "no policies/fleet.yaml: no change goes by rings here"
  exit 0
fi
gpustack=${GPUSTACK:-$(dirname -- "$0")/gpustack}
report=$(mktemp)
trap 'rm -f -- "$report"' EXIT
"$gpustack" verify '*' --kubeconfig "$1" --format json >"$report" || [ $? -eq 2 ] || {
  echo "error: gpustack can't look at the clusters" >&2
  cat -- "$report" >&2
  exit 1
}
"$gpustack" promote --due --verified "$report"
