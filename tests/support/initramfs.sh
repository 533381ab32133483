#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# initramfs.sh FILE [INIT [MODULE]]: writes an uncompressed initramfs with a static busybox, and a kernel module. Its /init
# is INIT, a script; without one, it says which processors are online and which kernel runs, does a little work as a program would, and ends the
# machine: by ACPI if there is ACPI, else by a reboot.
set -eu
busybox=$(command -v busybox) || { echo "initramfs: busybox is missing; install the package busybox-static" >&2; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev"
cp "$busybox" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
cat >"$root/init" <<'INIT'
#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
echo "init: processors $(busybox cat /sys/devices/system/cpu/online) online, Linux $(busybox uname -r)"
i=0
while [ $i -lt 200000 ]; do i=$((i + 1)); done
echo "init: counted to $i"
if [ -d /sys/firmware/acpi ]; then
	exec busybox poweroff -f
fi
exec busybox reboot -f
INIT
[ $# -lt 2 ] || cp "$2" "$root/init"
chmod +x "$root/init"
[ $# -lt 3 ] || cp "$3" "$root/bin"
bsdtar -cf "$1" --format newc --uid 0 --gid 0 -C "$root" bin dev init proc sys
