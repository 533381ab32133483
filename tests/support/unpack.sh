# SPDX-License-Identifier: BSD-2-Clause
# To be read by the scripts that need packages of Debian's which are not installed.

# unpack FOLDER [OPTION|PACKAGE]...: packages, as `apt-get download` takes them, unpacked into FOLDER. That is there whole, or not at all.
unpack() (
	folder=$1
	shift
	mkdir -p "${folder%/*}" && unpacked=$(mktemp -d "${folder%/*}/fetch.XXXXXX") || exit
	trap 'rm -rf "$unpacked"' EXIT
	trap 'exit 130' INT TERM
	cd "$unpacked" && apt-get download -q "$@" >&2 || exit
	for package in ./*.deb; do
		dpkg -x "$package" root || exit
	done
	mv -T root "$folder" 2>/dev/null || [ -d "$folder" ]
)
