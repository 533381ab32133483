#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# emulator.sh x86_64|aarch64: prints the QEMU that emulates a whole host, and its first arguments, a word a line. Debian 12's is too old
# for that: before 8.1 it easily keeps the translation of an instruction that another processor has changed meanwhile, so a kernel ends
# in "Oops: int3" when its trace points are switched on and off (later ones do it rarely); and it does not load DR7 at VMRUN, so no
# breakpoint of a guest hits. So QEMU of Debian 12's backports is downloaded on the first call, and kept unpacked in the user's cache
# folder. Where that cannot be had, the machine's is taken.
set -eu
. "$(dirname "$0")/unpack.sh"
case ${1-} in
x86_64) suffix=x86 ;;
aarch64) suffix=arm ;;
*) echo "usage: emulator.sh x86_64|aarch64" >&2; exit 2 ;;
esac
program=qemu-system-$1
installed=$(command -v "$program" || true)
major=$([ -z "$installed" ] || "$installed" --version | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p')
if [ "${major:-0}" -ge 10 ]; then
	echo "$installed"
	exit
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/qemu-$suffix
fetch() (
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep '/debian/\?$' | head -n 1)
	[ -n "$mirror" ] || exit
	apt=$(mktemp -d)
	trap 'rm -rf "$apt"' EXIT
	trap 'exit 130' INT TERM
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main" >"$apt/sources.list"
	echo "emulator.sh: fetching $program of Debian's backports" >&2
	set -- -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" \
		-o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root
	apt-get "$@" update >&2 && unpack "$folder" "$@" "qemu-system-$suffix" qemu-system-common qemu-system-data seabios
)

[ -d "$folder" ] || [ "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" != bookworm ] || fetch || true
if "$folder/usr/bin/$program" --version >/dev/null 2>&1; then
	printf '%s\n' "$folder/usr/bin/$program" -L "$folder/usr/share/qemu" -L "$folder/usr/share/seabios"
elif [ -n "$installed" ]; then
	echo "$installed"
else
	echo "emulator.sh: $program is missing; install the package qemu-system-$suffix" >&2
	exit 77
fi
