#!/bin/sh
# Tells whether the driver is up: its module is loaded, and nvidia-smi talks to the GPUs. For drivers that don't say
# whether their daemons are ready.
# Then leaves a file for the pods that wait for the driver, with the features that it was started with.
set -u
validations=/run/nvidia/validations
ready="$validations/.driver-ctr-ready"

fail() {
  echo "$1" >&2
  exit 1
}

mkdir -p "$validations" || fail "can't create $validations"
[ -e /sys/module/nvidia/refcnt ] || fail "the nvidia module is not loaded"
nvidia-smi || fail "nvidia-smi failed"

# Readers poll for the file, so it must appear complete.
cat >"$ready.tmp" <<EOF || fail "can't write $ready.tmp"
GDRCOPY_ENABLED: ${GDRCOPY_ENABLED:-false}
GDS_ENABLED: ${GDS_ENABLED:-false}
GPU_DIRECT_RDMA_ENABLED: ${GPU_DIRECT_RDMA_ENABLED:-false}
EOF
mv -f "$ready.tmp" "$ready" || fail "can't write $ready"
