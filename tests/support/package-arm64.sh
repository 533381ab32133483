#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# package-arm64.sh NAME: prints the folder where Debian's package NAME for arm64 is unpacked, in the user's cache. It is downloaded on
# the first call, and needs what is installed on this machine only where it is run.
set -eu
. "$(dirname "$0")/unpack.sh"
[ $# = 1 ] || { echo "usage: package-arm64.sh NAME" >&2; exit 2; }
name=$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/packages-arm64
if [ ! -d "$cache/$name" ]; then
	echo "package-arm64: fetching $name" >&2
	if ! unpack "$cache/$name" "$name:arm64"; then
		echo "package-arm64: $name:arm64 is not in the cache and cannot be fetched; \`dpkg --add-architecture arm64\` and \`apt-get update\` may help" >&2
		exit 77
	fi
fi
echo "$cache/$name"
