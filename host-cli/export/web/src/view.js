// SPDX-License-Identifier: BSD-2-Clause
// What is shown, in the hash of the page's address, so that a copied address shows it again. An address comes from
// anyone: each part is bounded here, and is used only if the page has what it names.

const HASH_MAX = 16384;
const TEXT_MAX = 500;
const DEPTH_MAX = 256;
const TEXTS = ["event", "shape", "group", "width", "scale", "search", "comm", "pid", "cgroup", "vcpu", "mode", "phase"];
const TIMES = ["time", "time-new"]; // of each recording, in seconds since its first sample
const PATHS = ["zoom", "select"]; // names of frames, the outermost first

function time_read(text) {
  const found = /^(\d{1,9}(?:\.\d{1,9})?),(\d{1,9}(?:\.\d{1,9})?)$/.exec(text);
  if (found === null) return undefined;
  const range = [Math.round(found[1] * 1e9), Math.round(found[2] * 1e9)];
  return range[0] < range[1] ? range : undefined;
}

const seconds = (ns) => (ns / 1e9).toFixed(9).replace(/\.?0+$/, "");

// "#event=cycles&time=1.5,2" -> {event: "cycles", ranges: [[1500000000, 2000000000], undefined], zoom: [], ...}
export function view_read(hash) {
  const words = new URLSearchParams(hash.length <= HASH_MAX ? hash.replace(/^#/, "") : "");
  const view = {};
  for (const name of TEXTS) view[name] = (words.get(name) ?? "").slice(0, TEXT_MAX);
  for (const name of PATHS) view[name] = words.getAll(name).slice(0, DEPTH_MAX);
  view.ranges = TIMES.map((name) => time_read(words.get(name) ?? ""));
  view.function = words.getAll("function").slice(0, 3);
  return view;
}

// What is empty is left out; paths that would not fit, too.
export function view_write(view) {
  const words = new URLSearchParams();
  for (const name of TEXTS) if (view[name] !== "" && view[name] !== undefined && view[name].length <= TEXT_MAX) words.set(name, view[name]);
  view.ranges.forEach((range, side) => {
    if (range !== undefined) words.set(TIMES[side], range.map(seconds).join(","));
  });
  for (const name of ["function", ...PATHS]) {
    const before = words.toString();
    for (const text of view[name]) words.append(name, text);
    if (words.toString().length > HASH_MAX) return before;
  }
  return words.toString();
}
