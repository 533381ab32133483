// SPDX-License-Identifier: BSD-2-Clause
// The call tree that is shown: of the samples that were selected, below the groups that were chosen, and of two
// recordings at once when they are compared.
import { GROUP, frame_key } from "./data.js";

// Functions are compared without what a compiler hangs on for its own copies, as `vprof diff` does.
function plain(name) {
  const dot = name.indexOf(".", 1);
  return dot > 0 ? name.slice(0, dot) : name;
}

// Frames by name, module and mode, from as many recordings as there are.
class Frames {
  constructor(cut_names) {
    this.list = [];
    this.numbers = new Map();
    this.name_of = cut_names ? plain : (name) => name;
  }

  number(frame) {
    const name = this.name_of(frame.name);
    const key = frame_key({ ...frame, name });
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.list.length;
      this.numbers.set(key, number);
      this.list.push({ name, module: frame.module, mode: frame.mode });
    }
    return number;
  }
}

class Builder {
  constructor(frames, sides) {
    this.frames = frames;
    this.parent = [0];
    this.frame = [-1];
    this.self = Array.from({ length: sides }, () => [0]);
    this.samples = Array.from({ length: sides }, () => [0]);
    // Parent and frame -> node; the nodes of one recording are distinct as they are.
    this.children = sides > 1 ? new Map() : undefined;
  }

  child(parent, frame) {
    const key = parent * 0x1000000 + frame;
    const known = this.children?.get(key);
    if (known !== undefined) return known;
    const node = this.parent.length;
    this.children?.set(key, node);
    this.parent.push(parent);
    this.frame.push(frame);
    for (const list of this.self) list.push(0);
    for (const list of this.samples) list.push(0);
    return node;
  }
}

export const GROUPINGS = {
  none: { title: "nothing" },
  comm: { title: "process name", of: (recording, rows, i) => recording.tasks[rows.task[i]].comm },
  process: { title: "process", of: (recording, rows, i) => recording.tasks[rows.task[i]].process },
  cpu: { title: "vCPU", of: (recording, rows, i) => `vCPU ${rows.cpu[i]}` },
  phase: { title: "phase", of: (recording, rows, i) => recording.phase_sets[rows.phases[i]].join(" + ") || "no phase" },
};

// The slices that a range of time touches, from the first one on and without the last.
export function slices_of(rows, [from, to]) {
  const number = (ns) => (ns - rows.first_slice_ns) / rows.slice_ns;
  const first = Math.floor(number(from));
  return [first, Math.max(Math.ceil(number(to)), first + 1)];
}

function is_selected(recording, rows, i, selection, slices) {
  return (slices === undefined || (rows.slice[i] >= slices[0] && rows.slice[i] < slices[1]))
    && (selection.cpu === "" || String(rows.cpu[i]) === selection.cpu)
    && (selection.process === "" || recording.tasks[rows.task[i]].process === selection.process)
    && (selection.phase === "" || recording.phase_sets[rows.phases[i]].includes(selection.phase));
}

// The numbers of the selected rows, by group.
function rows_by_group(recording, rows, selection, slices, group_of) {
  const groups = new Map();
  for (let i = 0; i < rows.n; i++) {
    if (!is_selected(recording, rows, i, selection, slices)) continue;
    const group = group_of === undefined ? "" : group_of(recording, rows, i);
    const list = groups.get(group);
    if (list === undefined) groups.set(group, [i]);
    else list.push(i);
  }
  return groups;
}

// Adds the samples of one recording. Nodes of its tree become nodes of ours once for each group.
function side_add(builder, side, recording, profile, selection, group_of) {
  const { nodes, rows } = profile;
  const frame_of = profile.frames.map((frame) => builder.frames.number(frame));
  const ours = new Int32Array(nodes.n).fill(-1);
  const range = selection.ranges[side];
  const slices = range === undefined ? undefined : slices_of(rows, range);
  for (const [group, list] of rows_by_group(recording, rows, selection, slices, group_of)) {
    const seen = [];
    const path = [];
    ours[0] = group_of === undefined ? 0 : builder.child(0, builder.frames.number({ name: group, module: "", mode: GROUP }));
    for (const i of list) {
      let node = rows.node[i];
      for (; ours[node] < 0; node = nodes.parent[node]) path.push(node);
      while (path.length !== 0) {
        const next = path.pop();
        ours[next] = builder.child(ours[node], frame_of[nodes.frame[next]]);
        seen.push(next);
        node = next;
      }
      builder.self[side][ours[node]] += rows.period[i];
      builder.samples[side][ours[node]] += rows.samples[i];
    }
    for (const node of seen) ours[node] = -1;
  }
}

// What lies below each node with it, where callers stand before what they call.
function totals(own, parent) {
  const total = Float64Array.from(own);
  for (let i = total.length - 1; i > 0; i--) total[parent[i]] += total[i];
  return total;
}

// Children of node i: list[first[i]] up to list[first[i + 1]].
function children_of(parent) {
  const n = parent.length;
  const first = new Int32Array(n + 2);
  for (let i = 1; i < n; i++) first[parent[i] + 2]++;
  for (let i = 2; i < n + 2; i++) first[i] += first[i - 1];
  const list = new Int32Array(n - 1);
  for (let i = 1; i < n; i++) list[first[parent[i] + 1]++] = i;
  return { first, list };
}

// profiles: one for each recording; selection: {cpu, process, phase}, each "" or a name, and
// ranges: of each recording undefined or [from, to] in nanoseconds; grouping: of GROUPINGS.
export function tree_build(recordings, profiles, selection, grouping) {
  const builder = new Builder(new Frames(recordings.length > 1), recordings.length);
  recordings.forEach((recording, side) => {
    side_add(builder, side, recording, profiles[side], selection, GROUPINGS[grouping].of);
  });
  const parent = Int32Array.from(builder.parent);
  // The periods of a recording may say nothing; then its samples are counted.
  const has_periods = profiles.every((profile) => profile.period > 0);
  const own = has_periods ? builder.self : builder.samples;
  return {
    n: parent.length,
    parent,
    frame: Int32Array.from(builder.frame),
    frames: builder.frames.list,
    self: own.map((list) => Float64Array.from(list)),
    total: own.map((list) => totals(list, parent)),
    self_samples: builder.samples.map((list) => Float64Array.from(list)),
    samples: builder.samples.map((list) => totals(list, parent)),
    has_periods,
    ...children_of(parent),
  };
}

// Functions: what fell into each itself, and into each and all that it called, recursion counted once.
export function functions_of(tree) {
  const n = tree.frames.length;
  const sides = tree.total.length;
  const make = () => Array.from({ length: sides }, () => new Float64Array(n));
  const [self, total, samples] = [make(), make(), make()];
  const open = new Int32Array(n); // frames on the way from the root
  const stack = [0];
  while (stack.length !== 0) {
    const node = stack.pop();
    if (node < 0) {
      open[tree.frame[~node]]--;
      continue;
    }
    const frame = tree.frame[node];
    if (frame >= 0) {
      for (let side = 0; side < sides; side++) {
        self[side][frame] += tree.self[side][node];
        samples[side][frame] += tree.self_samples[side][node];
        if (open[frame] === 0) total[side][frame] += tree.total[side][node];
      }
      open[frame]++;
      stack.push(~node);
    }
    for (let i = tree.first[node]; i < tree.first[node + 1]; i++) stack.push(tree.list[i]);
  }
  return tree.frames.map((frame, i) => ({ frame: i, ...frame, self: self.map((list) => list[i]),
    total: total.map((list) => list[i]), samples: samples.map((list) => list[i]) }))
    .filter((row) => row.mode !== GROUP);
}

// What matching frames, and all below them, sum up to; each sample once.
export function share_of(tree, matches, node = 0) {
  const sums = tree.total.map(() => 0);
  const stack = [node];
  while (stack.length !== 0) {
    const at = stack.pop();
    if (tree.frame[at] >= 0 && matches[tree.frame[at]]) {
      tree.total.forEach((total, side) => { sums[side] += total[at]; });
      continue;
    }
    for (let i = tree.first[at]; i < tree.first[at + 1]; i++) stack.push(tree.list[i]);
  }
  return sums.map((sum, side) => (tree.total[side][node] > 0 ? sum / tree.total[side][node] : 0));
}
