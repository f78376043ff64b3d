#!/bin/sh
# Starts the MIG manager once the driver is validated, with what validation found out about it.
ready=/run/nvidia/validations/driver-ready
until [ -f "$ready" ]; do
  echo "waiting for the driver: no $ready yet"
  sleep 5
done
set -a
. "$ready"
set +a

# Services of the node itself hold its GPUs only where the node brings its own driver; only there are they stopped.
export WITH_SHUTDOWN_HOST_GPU_CLIENTS="$IS_HOST_DRIVER"
exec nvidia-mig-manager
