#!/bin/sh
# Installs the container toolkit once the driver is validated, with what validation found out about it.
ready=/run/nvidia/validations/driver-ready
until [ -f "$ready" ]; do
  echo "waiting for the driver: no $ready yet"
  sleep 5
done
set -a
. "$ready"
set +a

# The toolkit restarts containerd, and some versions of it lose a container that started only a moment before.
sleep 5
exec nvidia-toolkit
