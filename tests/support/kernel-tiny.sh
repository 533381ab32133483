#!/bin/sh
# kernel-tiny.sh: prints the path of a tiny Linux vmlinux (its bzImage is beside it). It has ORC tables, as the kernels of distributions,
# and frame pointers as well, so that the same stack can be walked both ways. Built from Debian's linux-source-6.1 on the first call
# and kept in the user's cache folder, keyed by source version, compiler, configuration and this script.
set -eu
# No option that can be set gives both, so the unwinder's gets to select what that of the other one selects.
selects='ARCH_WANT_FRAME_POINTERS FRAME_POINTER'
# Types and lines are wanted, but not where each variable is, nor code for the units of a processor. The sources are not ours to be warned of.
flags='-fno-var-tracking -fno-tree-vectorize -fno-schedule-insns2 -w'
# Its code begins and ends at 2 MiB, which is most of it, and ORC has a table for all.
pages='s/= ALIGN(PMD_SIZE)/= ALIGN(PAGE_SIZE)/'
# Half of the time would go into headers, which most files share: GCC reads them once, as a part of what Kbuild includes first. It takes
# the result only where all macros are as they were, so to Kbuild all files are of one name.
headers='compiler-version kconfig compiler_types kernel sched mm fs slab module device interrupt syscalls uaccess seq_file'
first=include/linux/compiler-version.h
one_name='s/^\(__modname\|modfile\) = .*/\1 = tiny/; /^basename_flags/s/$(basetarget)/tiny/'
here=$(cd "$(dirname "$0")" && pwd)
source=/usr/src/linux-source-6.1.tar.xz
[ -r "$source" ] || { echo "kernel-tiny: $source is missing; install the package linux-source-6.1" >&2; exit 77; }

# Without most of what is not compiled. Kconfig reads its files of all architectures and drivers.
unpack() {
	top=linux-source-6.1
	tar -xf "$source" --strip-components=1 --exclude="$top/Documentation/*/*" --exclude="$top/arch/[!x]*.[chS]" --exclude="$top/arch/[!x]*.dts*" \
		--exclude="$top/drivers/[!bcrt]*.[ch]" --exclude="$top/net/*.[ch]" --exclude="$top/samples/*.[chS]" --exclude="$top/sound/*.[ch]" \
		--exclude="$top/tools/perf" --exclude="$top/tools/testing"
	for option in $selects; do
		sed -i "/^config UNWINDER_ORC\$/,/^\thelp/s/^\tselect OBJTOOL\$/&\n\tselect $option/" arch/x86/Kconfig.debug
	done
	sed -i "$pages" arch/x86/kernel/vmlinux.lds.S
	sed -i "$one_name" scripts/Makefile.lib
	# It has a member of the name of a macro in headers that it does not include.
	sed -i '1i #undef swap' lib/sort.c
}

# As tinyconfig does, with ours on top.
configure() {
	cat kernel/configs/tiny-base.config kernel/configs/tiny.config arch/x86/configs/tiny.config "$here/tiny-kernel.config" >all.config
	compile KCONFIG_ALLCONFIG=all.config allnoconfig
}

# The programs of the build run for seconds.
compile() {
	make -s -j"$(nproc)" HOSTCFLAGS=-O0 KCFLAGS="$flags" "$@" >&2
}

# By the command that compiles a file of the kernel.
precompile() {
	compile kernel/range.o
	for header in $headers; do
		echo "#include <linux/$header.h>"
	done >include/linux/tiny.h
	command=$(sed -n 's/^[a-z]*cmd_kernel[^ ]* := \([^;]*\).*/\1/p' kernel/.range.o.cmd |
		sed "s,-include [^ ]*,,g; s, -Wp[^ ]*,,; s,-c -o kernel/range.o kernel/range.c,-x c-header -o $first.gch include/linux/tiny.h,")
	eval "$command"
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/kernels
key=$( { dpkg-query -W -f '${Version}' linux-source-6.1; gcc -dumpfullversion; grep -hv '^\s*#' "$here/tiny-kernel.config" "$here/kernel-tiny.sh"; } |
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
	cd "$build"
	unpack
	configure
	precompile
	# A newer source may have a file that does not compile with it.
	compile vmlinux bzImage || { rm -f "$first.gch"; compile vmlinux bzImage; }
	mkdir -p "$out"
	cp .config "$out/config"
	cp arch/x86/boot/bzImage "$out/bzImage"
	mv vmlinux "$out/vmlinux"
fi
echo "$out/vmlinux"
