#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# From a clean clone to a result, on Debian 12:
#   sudo ./bootstrap.sh demo    installs what is missing, builds, profiles the built-in guest
#   sudo ./bootstrap.sh unit    installs what is missing, builds, runs the tests that need no guest
#   sudo ./bootstrap.sh test    installs what is missing, builds with each compiler and sanitizer, runs every test
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

packages_build=(build-essential cmake ninja-build pkg-config libglib2.0-dev libjansson-dev libelf-dev libdw-dev
	libarchive-dev libzstd-dev libseccomp-dev libedit-dev libcapstone-dev libncurses-dev libdebuginfod-dev libvirt-dev libcurl4-openssl-dev libbpf-dev bpftool clang)
packages_unit=(check clang-format git python3 python3-yaml acpica-tools libxml2-utils mandoc zsh)
packages_test=("${packages_unit[@]}" libclang-rt-14-dev golang-go busybox-static libarchive-tools linux-perf
	chromium chromium-driver e2fsprogs kmod mmdebstrap socat strace tmux util-linux libvirt-daemon-system libvirt-clients qemu-system-x86 linux-source-6.1 bc bison flex libssl-dev xz-utils
	protobuf-compiler)
# For the HTML page, which a build does without where they are missing. Programs that are installed already are used.
command -v node >/dev/null || packages_test+=(nodejs)
command -v npm >/dev/null || packages_test+=(npm)

usage() {
	sed -n '3,6s/^# //p' "$0"
	exit "$1"
}

say() {
	printf '\n== %s\n' "$*"
}

packages_missing() {
	local package
	for package in "$@"; do
		[[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || echo "$package"
	done
}

install_packages() {
	local missing
	if ! command -v apt-get dpkg-query >/dev/null; then
		echo "bootstrap: this is not Debian; install the contents of these Debian 12 packages, where they are missing:" >&2
		printf '  %s\n' "$*" >&2
		return
	fi
	mapfile -t missing < <(packages_missing "$@")
	((${#missing[@]})) || return 0
	say "Installing ${missing[*]}"
	if ((EUID != 0)); then
		echo "bootstrap: this needs root: sudo apt-get install ${missing[*]}" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# build PRESET [cmake argument...]
build() {
	cmake --preset "$@" >/dev/null && cmake --build --preset "$1" -- --quiet
}

run_demo() {
	install_packages "${packages_build[@]}"
	say "Building"
	build release -DBUILD_TESTING=OFF
	say "vprof run --demo"
	build/release/bin/vprof run --demo -o build/demo.data
}

run_unit() {
	install_packages "${packages_build[@]}" "${packages_unit[@]}"
	say "Building"
	build release -DBUILD_TESTING=ON
	say "Testing"
	ctest --preset release -L 'unit|golden' -j "$(nproc)"
}

# More failures than these are not caused by the machine.
readonly RERUN_MAX=5
passed=0 failures=() skips=() seconds=()

# check NAME COMMAND...: one check that is not a test of CTest's.
check() {
	say "$1"
	if "${@:2}"; then
		passed=$((passed + 1))
	else
		failures+=("$1")
	fi
}

# Before the tests, on what is built: how much longer than usual they may take.
slowness=1
measure_slowness() {
	slowness=$(VPROF_BIN=$PWD/build/release/bin VPROF_SOURCE=$PWD tests/support/slowness.py) || slowness=1
	say "Time limits: $slowness times those of a fast machine"
}

# verdicts PRESET [ctest argument...]: runs tests; a line for each, "passed|failed|skipped NAME[: REASON]", into build/PRESET/verdicts.
verdicts() {
	local preset=$1 junit=$PWD/build/$1/junit.xml
	rm -f "$junit"
	ctest --test-dir "build/$preset" --no-tests=error --output-on-failure --output-junit "$junit" "${@:2}" || true
	tests/support/junit_verdicts.py "$junit" >"build/$preset/verdicts" || echo "failed report" >"build/$preset/verdicts"
}

# run_tests PRESET [ctest argument...]: adds what came out to the totals. What fails beside other tests is run once more
# alone, on a machine that is shared, and is listed as such when it passes then.
run_tests() {
	local preset=$1 verdict name failed=()
	say "Testing $preset"
	verdicts "$preset" -j "$(nproc)" "${@:2}"
	while read -r verdict name; do
		case $verdict in
		passed) passed=$((passed + 1)) ;;
		skipped) skips+=("$preset/$name") ;;
		*) failed+=("${name%%:*}") ;;
		esac
	done <"build/$preset/verdicts"
	((${#failed[@]} > 0 && ${#failed[@]} <= RERUN_MAX)) || { failures+=("${failed[@]/#/$preset/}"); return; }
	say "Testing $preset again: ${failed[*]}"
	verdicts "$preset" -R "^($(IFS='|' && echo "${failed[*]}"))\$"
	while read -r verdict name; do
		case $verdict in
		passed) passed=$((passed + 1)) seconds+=("$preset/$name") ;;
		*) failures+=("$preset/$name") ;;
		esac
	done <"build/$preset/verdicts"
}

check_format() {
	git -c safe.directory='*' ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
}

run_suite() {
	install_packages "${packages_build[@]}" "${packages_test[@]}"
	check "Formatting" check_format
	check "Building release" build release -DBUILD_TESTING=ON
	measure_slowness
	check "Building release with these limits" build release "-DVPROF_TEST_SLOWNESS=$slowness"
	check "Building with clang" build clang
	check "Building asan" build asan "-DVPROF_TEST_SLOWNESS=$slowness"
	check "Building tsan" build tsan "-DVPROF_TEST_SLOWNESS=$slowness"
	run_tests release
	run_tests asan -L 'unit|golden'
	run_tests tsan -R '^unit/(ring|session|control|client|counter|virtio)'

	((${#seconds[@]} == 0)) || { say "Passed alone, after failing beside others"; printf '%s\n' "${seconds[@]}"; }
	((${#failures[@]} == 0)) || { say "Failed"; printf '%s\n' "${failures[@]}"; }
	((${#skips[@]} == 0)) || { say "Skipped"; printf '%s\n' "${skips[@]}"; }
	echo
	echo "$passed passed, ${#failures[@]} failed, ${#skips[@]} skipped"
	((${#failures[@]} == 0))
}

case ${1-} in
demo) run_demo ;;
unit) run_unit ;;
test) run_suite ;;
-h | --help) usage 0 ;;
*) usage 2 >&2 ;;
esac
