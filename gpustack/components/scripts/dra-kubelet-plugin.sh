#!/bin/sh
# Starts a kubelet plugin of the DRA driver, whose name is put in when this is rendered, with what validation found out
# about the node's driver. Another pod's validation may be writing its answer anew at this moment.
ready=/run/nvidia/validations/driver-ready
until [ -f "$ready" ]; do
  echo "waiting for the driver: no $ready yet"
  sleep 1
done
set -a
. "$ready"
set +a

# A masked copy of the driver's parameters keeps the plugin from making device nodes that are missing on purpose, as on
# nodes that are themselves containers.
params=/proc/driver/nvidia/params
if [ "${MASK_NVIDIA_DRIVER_PARAMS:-}" = true ]; then
  sed 's/^ModifyDeviceFiles: 1$/ModifyDeviceFiles: 0/' "$params" >/root/gpu-params
  mount --bind /root/gpu-params "$params"
fi
exec PLUGIN -v "$LOG_VERBOSITY"
