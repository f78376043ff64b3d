#!/bin/sh
# Starts the Kata manager; with CDI once the node's GPUs are bound to vfio-pci, because it describes them.
if [ "$CDI_ENABLED" = true ]; then
  until [ -f /run/nvidia/validations/vfio-pci-ready ]; do
    echo "waiting for the sandbox validator to find the GPUs bound to vfio-pci"
    sleep 5
  done
fi
exec k8s-kata-manager
