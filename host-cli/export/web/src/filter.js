// SPDX-License-Identifier: BSD-2-Clause
// Which samples are shown: the filters of the command line (vprof-report(1)), in the page.
import { MODES } from "./data.js";

const VALUES_MAX = 64;

const values_of = (text) => text.split(",").map((value) => value.trim()).filter((value) => value !== "").slice(0, VALUES_MAX);

// "kworker*,bash" -> text -> whether one of them matches; undefined: all do. Without backtracking beyond the last "*".
function pattern_fits(pattern, text) {
  let [at, in_text, star, mark] = [0, 0, -1, 0];
  while (in_text < text.length) {
    if (pattern[at] === "*") {
      star = at++;
      mark = in_text;
    } else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[in_text])) {
      at++;
      in_text++;
    } else if (star >= 0) {
      at = star + 1;
      in_text = ++mark;
    } else {
      return false;
    }
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}

function texts_test(text) {
  const patterns = values_of(text);
  return patterns.length === 0 ? undefined : (value) => patterns.some((pattern) => pattern_fits(pattern, value));
}

// "3,5-7"; what is no number matches nothing.
function numbers_test(text) {
  const ranges = values_of(text).map((value) => /^(\d+)(?:-(\d+))?$/.exec(value)).map((found) => found && [Number(found[1]), Number(found[2] ?? found[1])]);
  return ranges.length === 0 ? undefined : (value) => ranges.some((range) => range !== null && value >= range[0] && value <= range[1]);
}

export const FILTERS = ["comm", "pid", "cgroup", "vcpu", "mode", "phase"];

// The slices that a range of time touches, from the first one on and without the last.
export function slices_of(rows, [from, to]) {
  const number = (ns) => (ns - rows.first_slice_ns) / rows.slice_ns;
  const first = Math.floor(number(from));
  return [first, Math.max(Math.ceil(number(to)), first + 1)];
}

// filters: {comm, pid, ...}, each "" or as in the command line; range: undefined or [from, to] in nanoseconds.
// Returns: the number of a row -> whether it is shown.
export function row_test(recording, profile, filters, range) {
  const { rows } = profile;
  const [comm, pid, cgroup] = [texts_test(filters.comm), numbers_test(filters.pid), texts_test(filters.cgroup)];
  const vcpu = numbers_test(filters.vcpu);
  const mode = MODES.indexOf(filters.mode);
  const tasks = recording.tasks.map((task) => (comm === undefined || comm(task.comm)) && (cgroup === undefined || cgroup(task.cgroup))
    && (pid === undefined || (task.pid !== undefined && pid(task.pid))));
  const phases = recording.phase_sets.map((set) => filters.phase === "" || set.includes(filters.phase));
  const modes = profile.frames.map((frame) => mode < 0 || frame.mode === mode);
  const [first, end] = range === undefined ? [-Infinity, Infinity] : slices_of(rows, range);
  return (i) => tasks[rows.task[i]] && phases[rows.phases[i]] && (modes[profile.nodes.frame[rows.node[i]]] ?? mode < 0)
    && (vcpu === undefined || vcpu(rows.cpu[i])) && rows.slice[i] >= first && rows.slice[i] < end;
}
