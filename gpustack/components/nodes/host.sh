#!/bin/sh
#   check   tell what differs, change nothing; exit status 1 if anything does
#   apply   set it up; exit status 0, and /run/gpustack-host.reboot is there if the host has to restart
# GPUSTACK_ROOT is a folder that stands for the root of the file system, for trials.
set -eu
root=${GPUSTACK_ROOT:-}
mode=${1:-check}
case $mode in
check | apply) ;;
*)
  echo "usage: $0 check|apply" >&2
  exit 64
  ;;
esac
differences=0

differs() { # TEXT
  echo "differs: $1"
  differences=1
  [ "$mode" = apply ]
}

restart() {
  mkdir -p "$root/run"
  : >"$root/run/gpustack-host.reboot"
}

file() { # PATH CONTENT
  case $1 in /etc/containerd/*) containerd_reads "$1" ;; esac
  if [ -f "$root$1" ] && printf '%s' "$2" | cmp -s - "$root$1"; then return; fi
  if differs "file $1"; then
    mkdir -p "$root${1%/*}"
    printf '%s' "$2" >"$root$1.gpustack-new"
    chmod 0644 "$root$1.gpustack-new"
    mv -f "$root$1.gpustack-new" "$root$1"
    case $1 in /etc/containerd/*) systemctl try-restart containerd.service ;; esac
  fi
}

containerd_reads() { # PATH
  if sed 's/#.*//' "$root/etc/containerd/config.toml" 2>/dev/null | tr '\n' ' ' |
    grep -q 'imports *= *\[[^]]*/etc/containerd/conf\.d/'; then return; fi
  if differs "/etc/containerd/config.toml doesn't import $1"; then
    echo "error: add imports = [\"/etc/containerd/conf.d/*.toml\"] to it, and run this again" >&2
    exit 1
  fi
}

sysctl_is() { # KEY VALUE
  at="$root/proc/sys/$(printf '%s' "$1" | tr . /)"
  if [ "$(cat "$at" 2>/dev/null)" = "$2" ]; then return; fi
  if differs "sysctl $1"; then
    printf '%s\n' "$2" >"$at" || true
    if [ "$(cat "$at" 2>/dev/null)" != "$2" ]; then restart; fi # as with large pages in memory that is in use
  fi
}

absent() { # MODULE
  if ! grep -qs "^$1 " "$root/proc/modules"; then return; fi
  if differs "module $1 is loaded"; then restart; fi
}

enabled() { # SERVICE
  if systemctl is-enabled --quiet "$1" 2>/dev/null; then return; fi
  if differs "service $1 is off"; then systemctl enable --now "$1"; fi
}

masked() { # SERVICE
  if [ "$(systemctl is-enabled "$1" 2>/dev/null)" = masked ]; then return; fi
  if differs "service $1 isn't masked"; then systemctl mask --now "$1"; fi
}

has() { # ARGUMENT
  for word in $(cat "$root/proc/cmdline"); do
    if [ "$word" = "$1" ]; then return 0; fi
  done
  return 1
}

arguments() { # ARGUMENT...
  for each in "$@"; do
    if has "$each"; then continue; fi
    if ! differs "kernel argument $each"; then continue; fi
    if command -v grubby >/dev/null; then
      grubby --update-kernel=ALL --args="$*"
    elif command -v pbl >/dev/null; then
      for one in "$@"; do pbl --add-option "$one"; done
      pbl --config
    elif command -v update-grub >/dev/null; then
      mkdir -p "$root/etc/default/grub.d"
      printf 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX %s"\n' "$*" >"$root/etc/default/grub.d/50-gpustack.cfg"
      update-grub
    else
      echo "error: no grubby, pbl or update-grub here to set kernel arguments with: $*" >&2
      exit 1
    fi
    restart
    return
  done
}

held() { # KERNEL
  if [ "$(uname -r)" != "$1" ]; then
    if differs "the host runs kernel $(uname -r), not $1"; then
      echo "error: install that one, restart, and run this again: once kernels are held, none can be installed" >&2
      exit 1
    fi
  fi
  if command -v apt-get >/dev/null; then
    file /etc/apt/preferences.d/gpustack-kernel "Package: linux-image-* linux-headers-* linux-modules-*
Pin: release *
Pin-Priority: -1
"
  elif command -v dnf >/dev/null; then
    if grep -qsE '^(excludepkgs|exclude) *=.*kernel' "$root/etc/dnf/dnf.conf"; then return; fi
    if differs "kernel packages aren't held"; then
      if grep -qsE '^(excludepkgs|exclude) *=' "$root/etc/dnf/dnf.conf"; then
        sed -i -E 's/^(excludepkgs|exclude) *=/& kernel* /' "$root/etc/dnf/dnf.conf"
      else
        printf 'excludepkgs=kernel*\n' >>"$root/etc/dnf/dnf.conf"
      fi
    fi
  elif command -v zypper >/dev/null; then
    if zypper --quiet locks | grep -q 'kernel-default'; then return; fi
    if differs "kernel packages aren't held"; then zypper --non-interactive addlock 'kernel-default*'; fi
  else
    echo "error: no apt-get, dnf or zypper here to hold the kernel with" >&2
    exit 1
  fi
}

GPUSTACK_CALLS

if [ "$mode" = check ]; then exit $differences; fi
