#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# From a clean clone to a result, on Debian 12; demo and unit also on Fedora and Arch Linux, package on Fedora:
#   sudo ./bootstrap.sh demo    installs what is missing, builds, profiles the built-in guest
#   sudo ./bootstrap.sh unit    installs what is missing, builds, runs the tests that need no guest
#   sudo ./bootstrap.sh package   installs what is missing, builds, makes this distribution's packages in build/packages
#   sudo ./bootstrap.sh fuzz [MINUTES]   builds the fuzz targets with clang, runs each for its share of the time (10)
#   sudo ./bootstrap.sh test    installs what is missing, builds with each compiler and sanitizer, runs every test
# On a terminal it asks before it installs. It builds as the user who called sudo.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

packages_build=(build-essential cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev libglib2.0-dev libjansson-dev libelf-dev libdw-dev
	libarchive-dev libiberty-dev zlib1g-dev liblzo2-dev libzstd-dev libseccomp-dev libedit-dev libcapstone-dev libncurses-dev libdebuginfod-dev libvirt-dev libcurl4-openssl-dev libmicrohttpd-dev libbpf-dev bpftool clang)
packages_unit=(check clang-format git python3 python3-jsonschema python3-yaml acpica-tools libxml2-utils mandoc fish zsh)
packages_test=("${packages_unit[@]}" libclang-rt-14-dev lld golang-go busybox-static libarchive-tools linux-perf
	chromium chromium-driver e2fsprogs kmod mmdebstrap socat strace tmux util-linux libvirt-daemon-system libvirt-clients qemu-system-x86 linux-source-6.1 bc bison flex libssl-dev xz-utils
	protobuf-compiler lintian rpm rpmlint systemd-container bochs bochsbios bochs-term vgabios isolinux syslinux-common xorriso pahole runsc)
# For the build and the tests of preset arm64, of Debian's other architecture.
packages_arm64=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm qemu-user check:arm64 libarchive-dev:arm64 libiberty-dev:arm64 libbpf-dev:arm64 libcapstone-dev:arm64
	libdw-dev:arm64 libelf-dev:arm64 libfdt-dev:arm64 libglib2.0-dev:arm64 libjansson-dev:arm64 libncurses-dev:arm64 libprotobuf-c-dev:arm64 libseccomp-dev:arm64 libzstd-dev:arm64 zlib1g-dev:arm64)
packages_package=(dpkg-dev file)
packages_fuzz=(libclang-rt-14-dev)

# What these are called elsewhere. Debian's libc6-dev has the static C library, too, which vprof-agent is linked with.
fedora_build=(gcc cmake ninja-build pkgconf-pkg-config glibc-static glib2-devel jansson-devel elfutils-libelf-devel elfutils-devel
	libarchive-devel binutils-devel zlib-devel lzo-devel libzstd-devel libseccomp-devel libedit-devel capstone-devel ncurses-devel elfutils-debuginfod-client-devel
	libvirt-devel libcurl-devel libmicrohttpd-devel libbpf-devel bpftool clang protobuf-c-compiler protobuf-c-devel)
fedora_unit=(check-devel clang-tools-extra git python3 python3-jsonschema python3-pyyaml acpica-tools libxml2 mandoc fish zsh)
fedora_package=(rpm-build)
arch_build=(base-devel cmake ninja pkgconf glib2 glib2-devel jansson libelf libarchive zlib lzo zstd libseccomp libedit capstone ncurses debuginfod
	libvirt curl libmicrohttpd libbpf bpf clang protobuf protobuf-c)
arch_unit=(check clang git python python-jsonschema python-yaml acpica libxml2 mandoc fish zsh)
# Device trees.
if [[ $(uname -m) == aarch64 ]]; then
	packages_build+=(libfdt-dev) fedora_build+=(libfdt-devel) arch_build+=(dtc)
fi

# For the HTML page, which a build does without where they are missing. Programs that are installed already are used.
command -v node >/dev/null || packages_test+=(nodejs)
command -v npm >/dev/null || packages_test+=(npm)

usage() {
	sed -n '3,9s/^# //p' "$0"
	exit "$1"
}

say() {
	printf '\n== %s\n' "$*"
}

# What packages this system has: "debian", "fedora", "arch", or nothing.
distribution() {
	local ID='' ID_LIKE='' id
	# shellcheck source=/dev/null
	. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null || true
	for id in $ID $ID_LIKE; do
		case $id in
		debian | fedora | arch) echo "$id"; return ;;
		rhel | centos) echo fedora; return ;;
		esac
	done
}

packages_missing() {
	local package
	case $distribution in
	debian)
		for package in "$@"; do
			[[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || echo "$package"
		done ;;
	fedora)
		for package in "$@"; do
			rpm -q --quiet --whatprovides "$package" || echo "$package"
		done ;;
	arch) pacman -T "$@" || true ;;
	esac
}

# The command that installs packages.
installer() {
	case $distribution in
	debian) echo "apt-get install --no-install-recommends" ;;
	fedora) echo "dnf install" ;;
	arch) echo "pacman -S --needed" ;;
	esac
}

run_installer() {
	case $distribution in
	debian)
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -q
		apt-get install -q -y --no-install-recommends "$@" ;;
	fedora) dnf install -y "$@" ;;
	arch) pacman -S --needed --noconfirm "$@" ;;
	esac
}

# On a terminal; what runs this without one has decided already.
confirmed() {
	local answer
	[[ -t 0 && -t 1 ]] || return 0
	read -r -p "Install them? [Y/n] " answer
	[[ $answer == "" || $answer == [Yy]* ]]
}

# install_packages GROUP...: build, unit, ...: what is missing of the arrays of these names.
install_packages() {
	local missing group names wanted=()
	for group in "$@"; do
		names=packages_$group
		[[ $distribution == debian || $distribution == "" ]] || names=${distribution}_$group
		if ! declare -p "$names" &>/dev/null; then
			echo "bootstrap: the packages for this are not known by their names on $distribution" >&2
			exit 1
		fi
		names+="[@]"
		wanted+=("${!names}")
	done
	if [[ $distribution == "" ]]; then
		echo "bootstrap: an unknown distribution; install the contents of these Debian 12 packages, where they are missing:" >&2
		printf '  %s\n' "${wanted[*]}" >&2
		return
	fi
	mapfile -t missing < <(packages_missing "${wanted[@]}")
	((${#missing[@]})) || return 0
	if ((EUID != 0)); then
		echo "bootstrap: packages are missing, and installing them needs root: sudo $(installer) ${missing[*]}" >&2
		exit 1
	fi
	say "Packages to install: ${missing[*]}"
	confirmed || { echo "bootstrap: nothing is installed; by hand: $(installer) ${missing[*]}" >&2; exit 1; }
	run_installer "${missing[@]}"
}

# The command as the user who called sudo, if what was built before is theirs.
as_user() {
	if ((EUID == 0)) && [[ ${SUDO_USER:-root} != root && $(stat -c %U . build 2>/dev/null | sort -u) == "$SUDO_USER" ]]; then
		runuser -u "$SUDO_USER" -- env HOME="$(getent passwd "$SUDO_USER" | cut -d: -f6)" "$@"
	else
		"$@"
	fi
}

# Before packages of that architecture are installed, which brings their lists.
add_architecture() {
	if command -v dpkg >/dev/null && ! dpkg --print-foreign-architectures | grep -qx "$1" && ((EUID == 0)); then
		dpkg --add-architecture "$1"
	fi
}

# build PRESET [cmake argument...]: $target, or everything.
build() {
	as_user cmake --preset "$@" >/dev/null && as_user cmake --build --preset "$1" --target "${target:-all}" -- --quiet
}

run_demo() {
	install_packages build
	say "Building"
	build release -DBUILD_TESTING=OFF
	say "vprof run --demo"
	local demo=(build/release/bin/vprof run --demo -o build/demo.data)
	if as_user test -w /dev/kvm; then as_user "${demo[@]}"; else "${demo[@]}"; fi
}

run_unit() {
	install_packages build unit
	say "Building"
	build release -DBUILD_TESTING=ON
	say "Testing"
	as_user ctest --preset release -L 'unit|golden' -j "$(nproc)"
}

run_package() {
	local kind=RPM
	[[ $distribution == fedora ]] || kind=DEB
	install_packages build package
	say "Building"
	build release -DBUILD_TESTING=OFF
	say "Packing"
	as_user rm -rf build/packages # else those of an earlier version are installed as well
	(cd build/release && as_user cpack -G "$kind" -B ../packages)
}

# run_fuzz MINUTES: all targets in turn, on what the repository has; new inputs and findings go to build/fuzz.
run_fuzz() {
	local minutes=$1 target name corpus found=() targets
	[[ $minutes =~ ^[1-9][0-9]{0,4}$ ]] || { echo "bootstrap: fuzz takes a number of minutes, not \"$minutes\"" >&2; exit 2; }
	install_packages build unit fuzz
	say "Building"
	build fuzz -DBUILD_TESTING=ON
	targets=(build/fuzz/bin/fuzz_*)
	for target in "${targets[@]}"; do
		name=${target##*/fuzz_}
		corpus=build/fuzz/corpus/$name
		mkdir -p "$corpus" build/fuzz/found
		say "$name"
		"$target" -max_total_time=$((minutes * 60 / ${#targets[@]} + 1)) -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
			-artifact_prefix="build/fuzz/found/$name-" "$corpus" "tests/fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1 ||
			found+=("$name")
		grep -E '^(stat::number_of_executed_units|SUMMARY|Test unit written|ALARM|==)' "build/fuzz/$name.log" || true
	done
	echo
	echo "${#targets[@]} targets, ${#found[@]} with findings${found[*]:+: ${found[*]}; the inputs are in build/fuzz/found}"
	((${#found[@]} == 0))
}

# More failures than these are not caused by the machine.
readonly RERUN_MAX=12
passed=0 failures=() skips=() flaky=() stages=()

# stage NAME COMMAND...: the command, and how long it took, for the table of stages.
stage() {
	local began=$SECONDS status=0
	"${@:2}" || status=$?
	stages+=("$(printf '%4d s  %s' $((SECONDS - began)) "$1")")
	return "$status"
}

# check NAME COMMAND...: one check that is not a test of CTest's.
check() {
	say "$1"
	if stage "$1" "${@:2}"; then
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

# run_tests PRESET [ctest argument...]: adds the verdicts to the totals. A test that fails next to other tests runs again alone, at
# most twice; one that passes then is flaky.
run_tests() {
	local preset=$1 verdict name failed=() asked again
	say "Testing $preset"
	# A test that computes counts as two. A test that waits runs next to it.
	stage "Testing $preset" verdicts "$preset" -j $((2 * $(nproc) + 1)) "${@:2}"
	tests/support/junit_verdicts.py --times "build/$preset/junit.xml" || true
	while read -r verdict name; do
		case $verdict in
		passed) passed=$((passed + 1)) ;;
		skipped) skips+=("$preset/$name") ;;
		*) failed+=("${name%%:*}") ;;
		esac
	done <"build/$preset/verdicts"
	for again in "again" "once more"; do
		((${#failed[@]} > 0 && ${#failed[@]} <= RERUN_MAX)) || break
		say "Testing $preset $again: ${failed[*]}"
		stage "Testing $preset $again" verdicts "$preset" -R "^($(IFS='|' && echo "${failed[*]}"))\$"
		asked=("${failed[@]}") failed=()
		for name in "${asked[@]}"; do
			if grep -Fqx "passed $name" "build/$preset/verdicts"; then
				passed=$((passed + 1)) flaky+=("$preset/$name")
			else
				failed+=("$name")
			fi
		done
	done
	failures+=("${failed[@]/#/$preset/}")
}

check_format() {
	git -c safe.directory='*' ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
}

run_suite() {
	add_architecture arm64
	stage "Installing packages" install_packages build test arm64
	check "Formatting" check_format
	check "Building release" build release -DBUILD_TESTING=ON -DVPROF_PRECOMPILE=ON
	stage "Measuring the machine" measure_slowness
	check "Building release with these limits" build release "-DVPROF_TEST_SLOWNESS=$slowness"
	check "Building for arm64" build arm64 -DBUILD_TESTING=ON
	check "Building asan, with clang" build asan "-DVPROF_TEST_SLOWNESS=$slowness"
	target=threads check "Building tsan" build tsan "-DVPROF_TEST_SLOWNESS=$slowness"
	run_tests release
	run_tests asan -L 'unit|golden'
	run_tests tsan -L threads

	say "Time by stage"
	printf '%s\n' "${stages[@]}" "$(printf '%4d s  the whole' "$SECONDS")"
	((${#failures[@]} == 0)) || { say "Failed"; printf '%s\n' "${failures[@]}"; }
	((${#skips[@]} == 0)) || { say "Skipped"; printf '%s\n' "${skips[@]}"; }
	echo
	echo "flaky: ${#flaky[@]}${flaky[*]:+: ${flaky[*]}}"
	echo "$passed passed, ${#failures[@]} failed, ${#skips[@]} skipped"
	((${#failures[@]} == 0))
}

distribution=$(distribution)
case ${1-} in
demo) run_demo ;;
unit) run_unit ;;
package) run_package ;;
fuzz) run_fuzz "${2:-10}" ;;
test) run_suite ;;
-h | --help) usage 0 ;;
*) usage 2 >&2 ;;
esac
