// SPDX-License-Identifier: BSD-2-Clause
// The profiles that vprof has written into the page: export/page_data.h says how.

export const MODES = ["kernel", "user", "vmm", "other", "waiting", "group"];
export const STATES = ["running", "runnable", "sleeping", "disk-sleep", "stopped", "traced", "idle", "parked"];
export const GROUP = 5; // the mode of a frame that stands for a process, a vCPU or a phase

// Nanoseconds since `from`, both as the text of whole numbers.
function since(time, from) {
  return Number(BigInt(time) - BigInt(from));
}

function frames_of(profile, strings) {
  const frames = [];
  for (let i = 0; i < profile.frames.length; i += 3) {
    frames.push({ name: strings[profile.frames[i]], module: strings[profile.frames[i + 1]], mode: profile.frames[i + 2] });
  }
  return frames;
}

// Node 0 is the root; callers stand before what they call.
function nodes_of(list) {
  const n = list.length / 2 + 1;
  const parent = new Int32Array(n);
  const frame = new Int32Array(n).fill(-1);
  for (let i = 1; i < n; i++) {
    parent[i] = i - list[2 * i - 2];
    frame[i] = list[2 * i - 1];
  }
  return { n, parent, frame };
}

const ROW = 9;
function rows_of(profile, recording) {
  const list = profile.rows;
  const n = list.length / ROW;
  const slice_ns = profile["row-slice-ns"];
  const rows = { n, node: new Int32Array(n), cpu: new Float64Array(n), task: new Int32Array(n), phases: new Int32Array(n),
    state: new Uint8Array(n), waker: new Int32Array(n), slice: new Int32Array(n), samples: new Float64Array(n), period: new Float64Array(n), slice_ns,
    // Where slice 0 begins, since the first sample.
    first_slice_ns: since(BigInt(profile["first-row-slice"]) * BigInt(slice_ns), recording["first-ns"]) };
  for (let i = 0, at = 0, node = 0; i < n; i++, at += ROW) {
    node += list[at];
    rows.node[i] = node;
    rows.cpu[i] = list[at + 1];
    rows.task[i] = list[at + 2];
    rows.phases[i] = list[at + 3];
    rows.state[i] = list[at + 4];
    rows.waker[i] = list[at + 5];
    rows.slice[i] = list[at + 6];
    rows.samples[i] = list[at + 7];
    rows.period[i] = list[at + 8];
  }
  return rows;
}

const CELL = 5;
function timeline_of(profile, recording) {
  const cells = [];
  const slice_ns = profile["slice-ns"];
  const offset = since(BigInt(profile["first-slice"]) * BigInt(slice_ns), recording["first-ns"]);
  for (let at = 0, slice = 0; at < profile.cells.length; at += CELL) {
    slice += profile.cells[at];
    const mode = profile.cells[at + 2];
    cells.push({ begin: offset + slice * slice_ns, cpu: profile.cells[at + 1],
      kind: MODES[mode] === "vmm" ? recording.strings[profile.cells[at + 3]] : MODES[mode], period: profile.cells[at + 4] });
  }
  return { cells, slice_ns };
}

function pairs(list) {
  return Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]]);
}

const THREAD = 3;
const THREAD_CELL = 4;
// What threads did over time: {threads, cells, slice_ns, left_out}; undefined in a recording without waits.
function states_of(raw) {
  if (raw.states === undefined) return undefined;
  const { threads, cells, "slice-ns": slice_ns, "left-out": left_out } = raw.states;
  const offset = since(BigInt(raw.states["first-slice"]) * BigInt(slice_ns), raw["first-ns"]);
  const list = [];
  for (let i = 0; i < threads.length; i += THREAD) list.push({ comm: raw.strings[threads[i]], pid: threads[i + 1], tid: threads[i + 2], cells: [] });
  for (let at = 0, slice = 0; at < cells.length; at += THREAD_CELL) {
    slice += cells[at];
    list[cells[at + 1]].cells.push({ begin: offset + slice * slice_ns, state: cells[at + 2], ns: cells[at + 3] });
  }
  return { threads: list, slice_ns, left_out };
}

function recording_of(raw) {
  const { strings } = raw;
  const tasks = [];
  for (let i = 0; i < raw.tasks.length; i += 3) {
    const comm = strings[raw.tasks[i]];
    const pid = raw.tasks[i + 1];
    tasks.push({ comm, pid: pid < 0 ? undefined : pid, process: pid < 0 ? comm : `${comm} (${pid})`, cgroup: strings[raw.tasks[i + 2]] });
  }
  const phases = raw.phases.map((phase) => ({
    name: strings[phase.name],
    spans: pairs(phase.spans.map((time) => since(time, raw["first-ns"]))),
  }));
  return {
    path: raw.path,
    facts: pairs(raw.facts),
    lost: raw.lost,
    lost_others: raw["lost-others"],
    selected_phase: raw["selected-phase"],
    phases_left_out: raw["phases-left-out"],
    length_ns: since(raw["last-ns"], raw["first-ns"]),
    tasks,
    phases,
    // The names of each set, "" for none: what samples are grouped by.
    phase_sets: raw["phase-sets"].map((set) => set.map((phase) => phases[phase].name)),
    states: states_of(raw),
    wakers: strings, // by the numbers that rows have; "": not told
    profiles: raw.profiles.map((profile) => ({
      event: profile.event,
      rate: profile.rate,
      is_joined: profile.joined, // of two events that are there, too
      unit: profile.unit,
      samples: profile.samples,
      period: profile.period,
      frames: frames_of(profile, strings),
      nodes: nodes_of(profile.nodes),
      rows: rows_of(profile, raw),
      timeline: timeline_of(profile, raw),
    })),
  };
}

export function frame_key({ name, module, mode }) {
  return `${mode}\n${name}\n${module}`;
}

// What is said of frames that only one side has, by key: of the base's, and of the new one's.
function fates_of(list) {
  const texts = [new Map(), new Map()];
  for (const { fate, mode, name, module, other, "other-module": other_module } of list) {
    const of = (its_module) => (module === other_module ? "" : ` of ${its_module}`);
    if (fate === "inlined") texts[0].set(frame_key({ name, module, mode }), `inlined into ${other}?`);
    else if (fate === "split") texts[1].set(frame_key({ name, module, mode }), `split off ${other}?`);
    else {
      texts[0].set(frame_key({ name, module, mode }), `now ${other}${of(other_module)}?`);
      texts[1].set(frame_key({ name: other, module: other_module, mode }), `was ${name}${of(module)}?`);
    }
  }
  return texts;
}

export function read(text) {
  const document = JSON.parse(text);
  if (document.version !== 5) throw new Error(`this page reads version 5 of its data, not ${document.version}`);
  const { fates = [], standing = [], repetitions } = document;
  // standing: the keys of functions with a change that is not chance, in the first event; repetitions: of each side,
  // undefined where nothing was tested.
  return { recordings: document.recordings.map(recording_of), fates: fates_of(fates), standing: new Set(standing.map(frame_key)), repetitions };
}
