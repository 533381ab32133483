// SPDX-License-Identifier: BSD-2-Clause
// The call tree that is shown: of the samples that were selected, below the groups that were chosen, and of two
// recordings at once when they are compared.
import { GROUP, MODES, STATES, frame_key } from "./data.js";
import { row_test } from "./filter.js";

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
  constructor(frames, sides, merges, root = -1) {
    this.frames = frames;
    this.parent = [0];
    this.frame = [root];
    this.self = Array.from({ length: sides }, () => [0]);
    this.samples = Array.from({ length: sides }, () => [0]);
    this.waits = Array.from({ length: sides }, () => [0]); // of the periods, those of tasks that waited
    // Parent and frame -> node; the nodes of one recording are distinct as they are.
    this.children = merges ? new Map() : undefined;
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
    for (const list of this.waits) list.push(0);
    return node;
  }
}

export const GROUPINGS = {
  none: { title: "nothing" },
  comm: { title: "process name", of: (recording, rows, i) => recording.tasks[rows.task[i]].comm },
  process: { title: "process", of: (recording, rows, i) => recording.tasks[rows.task[i]].process },
  cpu: { title: "vCPU", of: (recording, rows, i) => `vCPU ${rows.cpu[i]}` },
  cgroup: { title: "cgroup", of: (recording, rows, i) => recording.tasks[rows.task[i]].cgroup || "no cgroup" },
  state: { title: "state", of: (recording, rows, i) => STATES[rows.state[i]] ?? "unknown" },
  waker: { title: "waker", of: (recording, rows, i) => recording.wakers[rows.waker[i]] || (rows.state[i] === 0 ? "none" : "unknown") },
  mode: { title: "mode", of: (recording, rows, i, profile) => MODES[profile.frames[profile.nodes.frame[rows.node[i]]].mode] },
  phase: { title: "phase", of: (recording, rows, i) => recording.phase_sets[rows.phases[i]].join(" + ") || "no phase" },
};

// The numbers of the selected rows, by group.
function rows_by_group(recording, profile, is_shown, group_of) {
  const { rows } = profile;
  const groups = new Map();
  for (let i = 0; i < rows.n; i++) {
    if (!is_shown(i)) continue;
    const group = group_of === undefined ? "" : group_of(recording, rows, i, profile);
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
  const is_shown = row_test(recording, profile, selection.filters, selection.ranges[side]);
  for (const [group, list] of rows_by_group(recording, profile, is_shown, group_of)) {
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
      if (rows.state[i] !== 0) builder.waits[side][ours[node]] += rows.period[i];
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

// Whether tasks waited for most of the time in a node of one recording.
export function is_waiting(tree, node) {
  return tree.has_periods && tree.waits[0][node] * 2 > tree.total[0][node];
}

function finish(builder, frames, own, has_periods) {
  const parent = Int32Array.from(builder.parent);
  return {
    n: parent.length,
    parent,
    frame: Int32Array.from(builder.frame),
    frames,
    self: own.map((list) => Float64Array.from(list)),
    total: own.map((list) => totals(list, parent)),
    self_samples: builder.samples.map((list) => Float64Array.from(list)),
    samples: builder.samples.map((list) => totals(list, parent)),
    self_waits: builder.waits.map((list) => Float64Array.from(list)),
    waits: builder.waits.map((list) => totals(list, parent)),
    has_periods,
    ...children_of(parent),
  };
}

// profiles: one for each recording; selection: filters as row_test has them, and ranges: of each recording undefined or
// [from, to] in nanoseconds; grouping: of GROUPINGS.
export function tree_build(recordings, profiles, selection, grouping) {
  const builder = new Builder(new Frames(recordings.length > 1), recordings.length, recordings.length > 1);
  recordings.forEach((recording, side) => {
    side_add(builder, side, recording, profiles[side], selection, GROUPINGS[grouping].of);
  });
  // The periods of a recording may say nothing; then its samples are counted.
  const has_periods = profiles.every((profile) => profile.period > 0);
  return finish(builder, builder.frames.list, has_periods ? builder.self : builder.samples, has_periods);
}

// What a function was called by, and what it called, as two trees with the function as their root: of what fell into
// its outermost calls, so that recursion counts once.
export function sandwich_build(tree, frame) {
  const sides = tree.total.length;
  const callers = new Builder(undefined, sides, true, frame);
  const callees = new Builder(undefined, sides, true, frame);
  const own = [callers, callees].map((builder) => builder.self.map(() => [0])); // as trees count: periods or samples
  const add = (which, builder, node, counted, samples, waits) => {
    for (let side = 0; side < sides; side++) {
      own[which][side][node] = (own[which][side][node] ?? 0) + counted[side];
      builder.samples[side][node] += samples[side];
      builder.waits[side][node] += waits[side];
    }
  };
  const of = (lists, node) => lists.map((list) => list[node]);
  const below = (top) => {
    const stack = [[top, 0]];
    while (stack.length !== 0) {
      const [node, ours] = stack.pop();
      add(1, callees, ours, of(tree.self, node), of(tree.self_samples, node), of(tree.self_waits, node));
      for (let i = tree.first[node]; i < tree.first[node + 1]; i++) stack.push([tree.list[i], callees.child(ours, tree.frame[tree.list[i]])]);
    }
  };
  const stack = [0];
  while (stack.length !== 0) {
    const node = stack.pop();
    if (node === 0 || tree.frame[node] !== frame) {
      for (let i = tree.first[node]; i < tree.first[node + 1]; i++) stack.push(tree.list[i]);
      continue;
    }
    let ours = 0;
    for (let at = tree.parent[node]; at !== 0; at = tree.parent[at]) ours = callers.child(ours, tree.frame[at]);
    add(0, callers, ours, of(tree.total, node), of(tree.samples, node), of(tree.waits, node));
    below(node);
  }
  return [callers, callees].map((builder, which) => finish(builder, tree.frames,
    own[which].map((list) => Array.from({ length: builder.parent.length }, (_, node) => list[node] ?? 0)), tree.has_periods));
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

// The frames of a node by name, the outermost first; and the node of such a list, as far as there is one: of several
// that fit, the largest.
export function path_of(tree, node) {
  const names = [];
  for (let at = node; at !== 0; at = tree.parent[at]) names.push(tree.frames[tree.frame[at]].name);
  return names.reverse();
}

export function path_find(tree, names) {
  let node = 0;
  for (const name of names) {
    let best = -1;
    for (let i = tree.first[node]; i < tree.first[node + 1]; i++) {
      const child = tree.list[i];
      const size = (at) => tree.total.reduce((sum, total) => sum + total[at], 0);
      if (tree.frames[tree.frame[child]].name === name && (best < 0 || size(child) > size(best))) best = child;
    }
    if (best < 0) break;
    node = best;
  }
  return node;
}
