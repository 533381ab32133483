#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# package-arm64.sh NAME...: prints the folder where Debian's packages of these names for arm64 are unpacked, in the user's cache. They are
# downloaded on the first call, and need what is installed on this machine only where they are run.
set -eu
. "$(dirname "$0")/unpack.sh"
[ $# != 0 ] || { echo "usage: package-arm64.sh NAME..." >&2; exit 2; }
folder=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/packages-arm64/$1+$(($# - 1))
if [ ! -d "$folder" ]; then
	echo "package-arm64: fetching $*" >&2
	if ! unpack "$folder" $(printf '%s:arm64\n' "$@"); then
		echo "package-arm64: $1:arm64 is not in the cache and cannot be fetched; \`dpkg --add-architecture arm64\` and \`apt-get update\` may help" >&2
		exit 77
	fi
fi
echo "$folder"
