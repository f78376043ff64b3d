#!/bin/sh
# vfio-manage.sh bind|unbind --all: hand all NVIDIA GPUs of this node to vfio-pci, or leave them to no driver.
# A GPU with displays brings further functions, such as audio, that a virtual machine must get along with it.
set -eu

devices=/sys/bus/pci/devices

driver_of() {
    [ -e "$devices/$1/driver" ] && basename "$(readlink -f "$devices/$1/driver")"
}

release() {
    driver=$(driver_of "$1") || return 0
    echo "taking $1 from $driver"
    echo "$1" > "$devices/$1/driver/unbind"
    echo > "$devices/$1/driver_override"
}

hand_over() {
    if [ "$(driver_of "$1")" = vfio-pci ]; then
        echo "$1 is bound to vfio-pci"
        return 0
    fi
    release "$1"
    echo "binding $1 to vfio-pci"
    echo vfio-pci > "$devices/$1/driver_override"
    echo "$1" > /sys/bus/pci/drivers/vfio-pci/bind
}

# Every GPU with the functions that depend on it: class 0x0302 is a 3D controller, 0x0300 one with displays.
gpus() {
    for path in "$devices"/*; do
        [ "$(cat "$path/vendor")" = 0x10de ] || continue
        class=$(cat "$path/class")
        case "$class" in
            0x0300*|0x0302*) basename "$path" ;;
            *) continue ;;
        esac
        case "$class" in
            0x0300*) for link in "$path"/consumer:pci:*; do [ ! -e "$link" ] || echo "${link##*consumer:pci:}"; done ;;
        esac
    done
}

case "${1:-} ${2:-}" in
    'bind --all')
        chroot /host modprobe vfio-pci
        for device in $(gpus); do hand_over "$device"; done
        ;;
    'unbind --all')
        for device in $(gpus); do release "$device"; done
        ;;
    *)
        echo "usage: $0 bind|unbind --all" >&2
        exit 2
        ;;
esac
