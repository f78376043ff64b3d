#!/bin/sh
# Starts the device plugin once the driver is validated, with what validation found out about it.
# Releases before v26.3.3: features are what the DaemonSet says, whatever modules the node has loaded.
ready=/run/nvidia/validations/driver-ready
until [ -f "$ready" ]; do
  echo "waiting for the driver: no $ready yet"
  sleep 5
done
set -a
. "$ready"
set +a
exec nvidia-device-plugin
