#!/bin/sh
# Starts the device plugin once the driver is validated, with what validation found out about it.
ready=/run/nvidia/validations/driver-ready
until [ -f "$ready" ]; do
  echo "waiting for the driver: no $ready yet"
  sleep 5
done
set -a
. "$ready"
set +a

# Features follow the modules that the node has loaded, unless the DaemonSet says otherwise.
loaded() { grep -q "^$1 " /proc/modules; }
if loaded gdrdrv; then
  export GDRCOPY_ENABLED="${GDRCOPY_ENABLED:-true}"
fi
if loaded nvidia_fs; then
  export GDS_ENABLED="${GDS_ENABLED:-true}" MOFED_ENABLED="${MOFED_ENABLED:-true}"
fi
exec nvidia-device-plugin
