#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernel-debian.sh [SERIES [cloud|amd64|rt|arm64]]: prints the path of the vmlinuz of Debian's newest kernel of that series and flavour,
# 6.1's cloud kernel without arguments, as its package installs it. SERIES is one of tests/matrix/kernels.txt. The package is downloaded on
# the first call and kept unpacked in the user's cache folder, where it is found again without a network.
set -eu
. "$(dirname "$0")/unpack.sh"
kernels=$(dirname "$0")/../matrix/kernels.txt
series=${1:-6.1}
suites=$(sed -n "s/^$series [a-z0-9]* //p" "$kernels" | tr ' ' '\n' | sort -u)
architecture=
case ${2:-cloud} in
cloud) flavour=-cloud-amd64 ;;
amd64) flavour=-amd64 ;;
rt) flavour=-rt-amd64 ;;
arm64) flavour=-arm64 architecture=:arm64 ;;
*) suites= ;;
esac
if [ -z "$suites" ]; then
	echo "usage: kernel-debian.sh [SERIES [cloud|amd64|rt|arm64]], with a series of $kernels" >&2
	exit 2
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/kernels
# 6.1.0-56, 6.12.117+deb12: nothing that is a flavour is part of a version. From 6.19 on, linux-image is empty and linux-binary has the kernel.
packages="^linux-(image|binary)-$series\\.[0-9]+[-+]?[.+a-z0-9]*(-[0-9]+)?$flavour(-unsigned)?\$"

vmlinuz() {
	find "$cache/$1" -name 'vmlinuz*' -type f -size +1M 2>/dev/null | head -n 1
}

# The newest of the packages that apt knows; of a signed one and an unsigned one of a version, the latter.
newest_known() {
	apt-cache pkgnames linux- 2>/dev/null | grep -E "$packages" | grep -vE '^linux-image-(6\.19|[7-9])\.' | sort -V | tail -n 1
}

# Makes apt use lists of the suites of kernels.txt, which are in the cache, verified by Debian's keyring, and fetched once a day.
suites_use() {
	lists=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/suites
	mkdir -p "$lists/lists/partial" "$lists/archives/partial"
	for suite in $(sed -n 's/^[0-9][^ ]* [a-z0-9]* //p' "$kernels" | tr ' ' '\n' | sort -u); do
		echo "deb [arch=amd64,arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
	done >"$lists/sources.list"
	cat >"$lists/apt.conf" <<-EOF
		Dir::State::Lists "$lists/lists";
		Dir::State::Status "/dev/null";
		Dir::Etc::SourceList "$lists/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Cache "$lists";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
	EOF
	export APT_CONFIG="$lists/apt.conf"
	[ -z "$(find "$lists/updated" -mtime -1 2>/dev/null)" ] || return 0
	apt-get update -q >&2 && touch "$lists/updated" || true
}

# Once a day, and never without a network: on an emulated host the search takes 20 seconds. What it found is in the file.
mkdir -p "$cache"
asked=$cache/asked-$series$flavour
newest= found=
if [ -n "$(find "$asked" -mtime -1 2>/dev/null)" ]; then
	read -r found <"$asked" || true
	if [ -e "$found" ]; then
		echo "$found"
		exit
	fi
else
	newest=$(newest_known)
	if [ -z "$newest" ]; then
		suites_use
		newest=$(newest_known)
	fi
fi
if [ -n "$newest" ] && [ -z "$(vmlinuz "$newest")" ]; then
	echo "kernel-debian: fetching $newest" >&2
	unpack "$cache/$newest" "$newest$architecture" || true
fi
for name in "$newest" $(find "$cache" -maxdepth 1 -name "linux-*-$series.*" -printf '%f\n' 2>/dev/null | grep -E "$packages" | sort -rV); do
	[ -n "$name" ] && [ -n "$(vmlinuz "$name")" ] || continue
	found=$(vmlinuz "$name")
	[ "$name" != "$newest" ] || echo "$found" >"$asked"
	echo "$found"
	exit
done
echo "kernel-debian: no kernel $series$flavour in the cache, and no suite of $kernels has it any more" >&2
exit 77
