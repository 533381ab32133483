#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# emulator.sh x86_64|aarch64: prints the QEMU that emulates a whole host, and its first arguments, a word a line. Not any will do.
# x86-64: those before 10.2 lose interrupts where an emulated processor starts a guest while another thread raises one
# (CPUState.interrupt_request was no atomic variable), so that hosts and their guests hang or end in a triple fault; before 8.1 they easily
# keep the translation of an instruction that another processor has changed meanwhile; and Debian 12's own does not load DR7 at VMRUN, so
# no breakpoint of a guest hits. arm64: in that of QEMU 11.1, guests of Linux 6.12 were seen to hang, for a reason that is not known.
# So QEMU of a Debian's backports is downloaded on the first call, with its libraries, and kept unpacked in the user's cache folder. Where
# that cannot be had, the machine's is taken.
set -eu
. "$(dirname "$0")/unpack.sh"
case ${1-} in
x86_64) package=qemu-system-x86 suite=trixie first=10.2 last=999 ;;
aarch64) package=qemu-system-arm suite=bookworm first=8.1 last=10.999 ;;
*) echo "usage: emulator.sh x86_64|aarch64" >&2; exit 2 ;;
esac
program=qemu-system-$1
installed=$(command -v "$program" || true)
if [ -n "$installed" ]; then
	version=$("$installed" --version | sed -n 's/^QEMU emulator version \([0-9]*\.[0-9]*\).*/\1/p')
	if [ "$(printf '%s\n' "$first" "$version" "$last" | sort -CV && echo fits)" ]; then
		echo "$installed"
		exit
	fi
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/$program
fetch() (
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep '/debian/\?$' | head -n 1)
	[ -n "$mirror" ] || exit
	apt=$(mktemp -d)
	trap 'rm -rf "$apt"' EXIT
	trap 'exit 130' INT TERM
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	for part in $suite $suite-backports; do
		echo "deb [arch=$(dpkg --print-architecture) signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $part main"
	done >"$apt/sources.list"
	: >"$apt/status"
	echo "emulator.sh: fetching $program of $suite-backports" >&2
	set -- -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" \
		-o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -o APT::Default-Release="$suite-backports"
	apt-get "$@" update >&2
	# With all that it needs: the status file says that nothing is installed.
	apt-get "$@" install --simulate --no-install-recommends "$package" >"$apt/simulated"
	# shellcheck disable=SC2046
	unpack "$folder" "$@" $(sed -n 's/^Inst \([^ ]*\).*/\1/p' "$apt/simulated")
)

# With the loader of that Debian, which may be newer than the machine's.
words() {
	loader=$(find "$folder" -name 'ld-linux-*.so.*' -path '*-linux-gnu/*' 2>/dev/null) && [ -n "$loader" ] || return
	libraries=${loader%/*}
	printf '%s\n' "$loader" --library-path "$libraries:$folder/usr/lib/${libraries##*/}" "$folder/usr/bin/$program" \
		-L "$folder/usr/share/qemu" -L "$folder/usr/share/seabios"
}

[ -d "$folder" ] || [ "$(sed -n 's/^ID=//p' /etc/os-release)" != debian ] || fetch || true
if words; then
	exit
elif [ -n "$installed" ]; then
	echo "$installed"
else
	echo "emulator.sh: $program is missing; install the package $package" >&2
	exit 77
fi
