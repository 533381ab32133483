#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# emulator.sh x86_64|aarch64: prints the QEMU that emulates a whole host, and its first arguments, a word a line. Those before 10.2 are
# too old for that: where an emulated processor starts a guest while another thread raises an interrupt, they lose one of the two or
# deliver it where interrupts are off (CPUState.interrupt_request was no atomic variable), so that hosts and their guests hang or end in
# a triple fault; before 8.1 they easily keep the translation of an instruction that another processor has changed meanwhile; and
# Debian 12's own does not load DR7 at VMRUN, so no breakpoint of a guest hits. So QEMU of Debian 13's backports is downloaded on the
# first call, with its libraries, and kept unpacked in the user's cache folder. Where that cannot be had, the machine's is taken.
set -eu
. "$(dirname "$0")/unpack.sh"
case ${1-} in
x86_64) package=qemu-system-x86 ;;
aarch64) package=qemu-system-arm ;;
*) echo "usage: emulator.sh x86_64|aarch64" >&2; exit 2 ;;
esac
program=qemu-system-$1
installed=$(command -v "$program" || true)
# Whether a QEMU is of 10.2 or later.
new_enough() {
	version=$("$1" --version | sed -n 's/^QEMU emulator version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
	[ -n "$version" ] && [ $((${version% *} * 1000 + ${version#* })) -ge 10002 ]
}
if [ -n "$installed" ] && new_enough "$installed"; then
	echo "$installed"
	exit
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/qemu
fetch() (
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep '/debian/\?$' | head -n 1)
	[ -n "$mirror" ] || exit
	apt=$(mktemp -d)
	trap 'rm -rf "$apt"' EXIT
	trap 'exit 130' INT TERM
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	for suite in trixie trixie-backports; do
		echo "deb [arch=$(dpkg --print-architecture) signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
	done >"$apt/sources.list"
	: >"$apt/status"
	echo "emulator.sh: fetching QEMU of Debian 13's backports" >&2
	set -- -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" \
		-o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -o APT::Default-Release=trixie-backports
	apt-get "$@" update >&2
	# With all that they need: the status file says that nothing is installed.
	apt-get "$@" install --simulate --no-install-recommends qemu-system-x86 qemu-system-arm >"$apt/simulated"
	# shellcheck disable=SC2046
	unpack "$folder" "$@" $(sed -n 's/^Inst \([^ ]*\).*/\1/p' "$apt/simulated")
)

# The loader of that Debian, which may be newer than the machine's.
words() {
	set -- "$folder"/usr/lib/*/ld-linux-*.so.* && [ -x "$1" ] &&
		printf '%s\n' "$1" --library-path "${1%/*}" "$folder/usr/bin/$program" -L "$folder/usr/share/qemu" -L "$folder/usr/share/seabios"
}

[ -d "$folder" ] || [ "$(sed -n 's/^ID=//p' /etc/os-release)" != debian ] || fetch || true
if words >/dev/null; then
	words
elif [ -n "$installed" ]; then
	echo "$installed"
else
	echo "emulator.sh: $program is missing; install the package $package" >&2
	exit 77
fi
