#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# prometheus.sh: prints the folder of Debian's prometheus and promtool. Its package starts a service, so it is not installed: it is
# downloaded on the first call and kept unpacked in the user's cache folder. What is installed already is taken instead.
set -eu
. "$(dirname "$0")/unpack.sh"
installed=$(command -v prometheus || true)
if [ -n "$installed" ] && command -v promtool >/dev/null; then
	dirname "$installed"
	exit
fi
folder=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/prometheus
if [ ! -d "$folder" ]; then
	echo "prometheus.sh: fetching prometheus" >&2
	unpack "$folder" prometheus || true
fi
if ! "$folder/usr/bin/promtool" --version >/dev/null 2>&1; then
	echo "prometheus.sh: Debian's package prometheus cannot be had" >&2
	exit 77
fi
echo "$folder/usr/bin"
