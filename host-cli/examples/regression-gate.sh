#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Measures a build and compares it with a baseline: what the jobs in github-actions.yml and gitlab-ci.yml run, and the
# same by hand.
#
# usage: regression-gate.sh [-u] [-r PERCENT] [-p PHASE] -b BASELINE [-o FOLDER] -- ARGUMENTS OF vprof run...
#
#   -b BASELINE  the measurements to compare with, a file to keep in git or in the cache of the jobs
#   -u           make them, or bring them up to date where nothing got slower
#   -r PERCENT   how much slower is no regression (3)
#   -p PHASE     only the phases of this name (all but those of warm-ups)
#   -o FOLDER    where to put the recording, the reports and the page (perf-results)
#
# Exit status: 0 good, 1 a regression, 2 undecided, 3 bad input, as vprof gate has it; 4: the guest did not run.
set -eu

usage() {
	sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2
	exit 3
}

baseline='' update='' limit=3 phase='' folder=perf-results
while getopts ub:r:p:o: option; do
	case $option in
	u) update=--update-baseline ;;
	b) baseline=$OPTARG ;;
	r) limit=$OPTARG ;;
	p) phase=$OPTARG ;;
	o) folder=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ -n "$baseline" ] && [ $# -gt 0 ] || usage

mkdir -p "$folder"
vprof run --no-report -o "$folder/new.data" "$@" || {
	echo "regression-gate: vprof run ended with $?" >&2
	exit 4
}

# A picture of what was measured helps with whatever the verdict is, and is no reason for one.
vprof report -i "$folder/new.data" --html "$folder/profile.html" ||
	vprof export -i "$folder/new.data" --to svg -o "$folder/profile.svg" || true

status=0
vprof gate --baseline "$baseline" ${update:+"$update"} --max-regression "$limit" ${phase:+--phase "$phase"} \
	${GITHUB_ACTIONS:+--github} --markdown "${GITHUB_STEP_SUMMARY:-$folder/gate.md}" --junit "$folder/gate.xml" --html "$folder/gate.html" \
	"$folder/new.data" || status=$?
exit "$status"
