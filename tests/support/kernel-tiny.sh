#!/bin/sh
# kernel-tiny.sh: prints the path of a tiny Linux vmlinux (its bzImage is beside it). It has ORC tables, as the kernels of distributions,
# and frame pointers as well, so that the same stack can be walked both ways. Built from Debian's linux-source-6.1 on the first call
# and kept in the user's cache folder, keyed by source version, compiler and configuration.
set -eu
# No option that can be set gives both, so the unwinder's gets to select what that of the other one selects.
selects='ARCH_WANT_FRAME_POINTERS FRAME_POINTER'
# Its types and lines are wanted, but not where each variable is, which takes a tenth of the time.
flags=-fno-var-tracking
# Its code begins and ends at 2 MiB, which is most of it, and ORC has a table for all.
pages='s/= ALIGN(PMD_SIZE)/= ALIGN(PAGE_SIZE)/'
here=$(cd "$(dirname "$0")" && pwd)
source=/usr/src/linux-source-6.1.tar.xz
[ -r "$source" ] || { echo "kernel-tiny: $source is missing; install the package linux-source-6.1" >&2; exit 77; }

cache=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/kernels
key=$( { dpkg-query -W -f '${Version}' linux-source-6.1; gcc -dumpfullversion; cat "$here/tiny-kernel.config"; echo "$selects $flags $pages"; } |
	sha256sum | cut -c1-16)
out=$cache/tiny-$key
if [ ! -r "$out/vmlinux" ]; then
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
fi
if [ ! -r "$out/vmlinux" ]; then
	echo "kernel-tiny: building into $out, this takes a few minutes once" >&2
	build=$(mktemp -d "$cache/build.XXXXXX")
	trap 'rm -rf "$build"' EXIT
	trap 'exit 130' INT TERM
	tar -xf "$source" -C "$build" --strip-components=1
	for option in $selects; do
		sed -i "/^config UNWINDER_ORC\$/,/^\thelp/s/^\tselect OBJTOOL\$/&\n\tselect $option/" "$build/arch/x86/Kconfig.debug"
	done
	sed -i "$pages" "$build/arch/x86/kernel/vmlinux.lds.S"
	make -s -C "$build" tinyconfig >&2
	(cd "$build" && scripts/kconfig/merge_config.sh -m .config "$here/tiny-kernel.config" >/dev/null)
	make -s -C "$build" olddefconfig >&2
	make -s -C "$build" -j"$(nproc)" KCFLAGS="$flags" vmlinux bzImage >&2
	mkdir -p "$out"
	cp "$build/.config" "$out/config"
	cp "$build/arch/x86/boot/bzImage" "$out/bzImage"
	mv "$build/vmlinux" "$out/vmlinux"
fi
echo "$out/vmlinux"
