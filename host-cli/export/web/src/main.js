// SPDX-License-Identifier: BSD-2-Clause
// The page: what is chosen in it, and how that is shown.
import { CHANGE_LEAST, change_colour, frame_colour, kind_colour } from "./colour.js";
import { GROUP, MODES, frame_key, read } from "./data.js";
import { Flame } from "./flame.js";
import { Table } from "./table.js";
import { kinds_of, seconds, timeline_draw } from "./timeline.js";
import { GROUPINGS, functions_of, share_of, slices_of, tree_build } from "./tree.js";

const by_id = (id) => document.getElementById(id);
const { recordings, fates, standing, repetitions } = read(by_id("profile").textContent);
by_id("profile").remove();
const is_comparison = recordings.length > 1;

let profiles; // of the chosen event, one of each recording
let tree;
let functions;
let matches; // frame -> whether the search has found it; undefined without a search
let zoomed = 0;
const ranges = recordings.map(() => undefined); // of each the time that is shown, [from, to] in ns; undefined: all

const flame = new Flame(by_id("flame"), { zoom, hover });
const table = new Table(by_id("functions"), { pick: (row) => search_for(row.name), fate: (row) => fate_of(row, row.total) });

const percent = (share) => `${(100 * share).toFixed(2)} %`;
const value_of = (id) => by_id(id).value;

function is_dark() {
  return document.documentElement.dataset.theme === "dark";
}

// What a period is worth in the picture: of each side its share, or itself.
function scales() {
  return tree.total.map((total) => (value_of("scale") === "share" && is_comparison ? (total[0] > 0 ? 1 / total[0] : 0) : 1));
}

function width_function() {
  const [base, now] = scales();
  if (!is_comparison) return (node) => tree.total[0][node];
  if (value_of("width") === "base") return (node) => tree.total[0][node] * base;
  if (value_of("width") === "new") return (node) => tree.total[1][node] * now;
  return (node) => tree.total[0][node] * base + tree.total[1][node] * now;
}

function amount(value, profile) {
  if (!tree.has_periods) return `${value.toLocaleString("en")} samples`;
  if (profile.unit !== "ns") return `${value.toLocaleString("en")} ${profile.event}`;
  return value >= 1e9 ? `${(value / 1e9).toFixed(3)} s` : `${(value / 1e6).toFixed(2)} ms`;
}

// What has become of a frame that only one side has; total: of each.
function fate_of(frame, total) {
  if (total[0] !== 0 && total[1] !== 0) return "";
  const side = total[0] === 0 ? 1 : 0;
  return fates[side].get(frame_key(frame)) ?? (side === 1 ? "new" : "gone");
}

function describe(node) {
  const frame = node === 0 ? undefined : tree.frames[tree.frame[node]];
  const name = frame === undefined ? "all" : frame.mode === GROUP ? frame.name : `${frame.name} (${MODES[frame.mode]}, ${frame.module})`;
  const sides = tree.total.map((total, side) => {
    const share = total[0] > 0 ? total[node] / total[0] : 0;
    return `${percent(share)}, ${amount(total[node], profiles[side])}, ${tree.samples[side][node].toLocaleString("en")} samples`;
  });
  if (!is_comparison) return `${name}: ${sides[0]}`;
  const fate = node === 0 ? "" : fate_of(frame, tree.total.map((total) => total[node])).replace(/^./, "; $&");
  return `${name}: base ${sides[0]}; new ${sides[1]}${fate}`;
}

// Statistics are made of the first event.
function is_tested() {
  return value_of("event") === recordings[0].profiles[0].event && repetitions !== undefined;
}

// Of each node what functions that stand have changed in it, themselves: what changed above and below them.
function standing_changes(scale) {
  const stands = tree.frames.map((frame) => is_tested() && standing.has(frame_key(frame)));
  const sums = new Float64Array(tree.n);
  for (let node = tree.n - 1; node > 0; node--) {
    if (stands[tree.frame[node]]) sums[node] += tree.self[1][node] * scale[1] - tree.self[0][node] * scale[0];
    sums[tree.parent[node]] += sums[node];
  }
  return sums;
}

function colour_function() {
  const dark = is_dark();
  if (!is_comparison) return (node) => (node === 0 ? frame_colour({ name: "", mode: GROUP }, dark) : frame_colour(tree.frames[tree.frame[node]], dark));
  const whole = Math.max(...tree.total.map((total, side) => total[0] * scales()[side])); // in which changes are shares
  const scale = scales().map((factor) => (whole > 0 ? factor / whole : 0));
  const told = standing_changes(scale);
  const most = told.reduce((largest, change) => Math.max(largest, Math.abs(change)), 0);
  return (node) => {
    const change = tree.total[1][node] * scale[1] - tree.total[0][node] * scale[0];
    return Math.abs(told[node]) >= CHANGE_LEAST ? change_colour(told[node], most, true, dark) : change_colour(change, most, false, dark);
  };
}

function flame_show() {
  flame.inverted = value_of("shape") === "icicle";
  flame.show({ tree, width: width_function(), zoomed, root_name: "all", colour: colour_function(), describe,
    marked: (node) => matches !== undefined && node !== 0 && matches[tree.frame[node]] });
  by_id("reset").disabled = zoomed === 0;
  details_show();
}

// The status line: the frame under the pointer, else what the search has found, else what is shown.
function details_show(node) {
  let text = describe(node ?? zoomed);
  if (node === undefined && matches !== undefined) {
    const shares = share_of(tree, matches, zoomed).map(percent);
    const n = matches.reduce((sum, is_match) => sum + (is_match ? 1 : 0), 0);
    const where = zoomed === 0 ? "" : ` of ${flame.name_of(zoomed)}`;
    text = `${n === 1 ? "1 function matches" : `${n} functions match`}: ${is_comparison ? `base ${shares[0]}, new ${shares[1]}` : shares[0]}${where}`;
  }
  by_id("details").textContent = text;
}

function hover(node) {
  details_show(node ?? flame.selected);
}

function zoom(node) {
  zoomed = node;
  flame.selected = undefined;
  flame_show();
}

function pattern_of(text) {
  const expression = /^\/(.+)\/$/.exec(text);
  if (expression === null) return (name) => name.toLowerCase().includes(text.toLowerCase());
  const pattern = new RegExp(expression[1], "i");
  return (name) => pattern.test(name);
}

function search_read() {
  const text = value_of("search").trim();
  by_id("search").removeAttribute("aria-invalid");
  matches = undefined;
  if (text === "") return;
  try {
    const fits = pattern_of(text);
    matches = tree.frames.map((frame) => fits(frame.name) || (frame.module !== "" && fits(frame.module)));
  } catch (error) {
    by_id("search").setAttribute("aria-invalid", "true");
    by_id("details").textContent = error.message;
  }
}

function functions_show() {
  table.show(functions, tree.total.map((total) => total[0]), matches);
}

function search() {
  search_read();
  if (by_id("search").hasAttribute("aria-invalid")) return;
  flame_show();
  functions_show();
}

function search_for(text) {
  by_id("search").value = text;
  search();
}

function tree_show() {
  const selection = { cpu: value_of("cpu"), process: value_of("process"), phase: value_of("phase"), ranges };
  tree = tree_build(recordings, profiles, selection, value_of("grouping"));
  functions = functions_of(tree);
  zoomed = 0;
  flame.selected = undefined;
  search();
}

// What is shown of a recording: whole slices, of which samples know in which one they are.
function shown_range(side) {
  if (ranges[side] === undefined) return undefined;
  const { rows } = profiles[side];
  const ends = slices_of(rows, ranges[side]).map((slice) => rows.first_slice_ns + slice * rows.slice_ns);
  return [Math.max(ends[0], 0), Math.min(ends[1], recordings[side].length_ns)];
}

function range_show() {
  const texts = recordings.map((recording, side) => {
    const range = shown_range(side);
    return range && `${is_comparison ? `${side === 0 ? "base" : "new"}: ` : ""}${seconds(range[0])} to ${seconds(range[1])} only`;
  }).filter(Boolean);
  by_id("range-text").textContent = texts.join(", ");
  by_id("range").hidden = texts.length === 0;
}

function range_choose(sides, range) {
  for (const side of sides) ranges[side] = range;
  timelines_show();
  range_show();
  tree_show();
}

const all_sides = () => [...recordings.keys()];

// A tenth of the time, from its begin on, and then the next or the last one as wide.
function range_move(steps) {
  const length = Math.max(...recordings.map((recording) => recording.length_ns));
  const now = ranges.find((range) => range !== undefined);
  const wide = now === undefined ? length / 10 : now[1] - now[0];
  const from = now === undefined ? (steps > 0 ? 0 : length - wide) : Math.min(Math.max(now[0] + steps * wide, 0), length - wide);
  range_choose(all_sides(), [from, from + wide]);
}

function timelines_show() {
  const host = by_id("timelines");
  host.replaceChildren();
  recordings.forEach((recording, side) => {
    if (is_comparison) {
      const head = document.createElement("h2");
      head.textContent = `${side === 0 ? "Base" : "New"}: ${recording.path}`;
      host.append(head);
    }
    if (profiles[side].timeline.cells.length === 0) return;
    host.append(timeline_draw(recording, profiles[side], host.clientWidth, (kind, exit) => kind_colour(kind, exit, is_dark()), shown_range(side),
      (range) => range_choose([side], range)));
  });
}

function legend_item(colour, text) {
  const item = document.createElement("span");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  rect.setAttribute("width", 12);
  rect.setAttribute("height", 12);
  rect.setAttribute("fill", colour);
  svg.append(rect);
  item.append(svg, text);
  return item;
}

function legend_show() {
  const dark = is_dark();
  const items = [];
  if (is_comparison) {
    items.push(legend_item(change_colour(1, 1, true, dark), "takes more than in base"), legend_item(change_colour(-1, 1, true, dark), "takes less"),
      legend_item(change_colour(1, 1, false, dark), "more, may be chance"), legend_item(change_colour(-1, 1, false, dark), "less, may be chance"),
      legend_item(change_colour(0, 1, false, dark), "the same"), "In the timelines:");
  }
  const { order, exits } = kinds_of(profiles[profiles.length - 1]);
  for (const kind of order.slice(0, 12)) {
    const exit = exits.indexOf(kind);
    items.push(legend_item(kind_colour(kind, exit, dark), exit < 0 ? kind : `exit ${kind}`));
  }
  by_id("legend").replaceChildren(...items);
}

function theme_set(name) {
  document.documentElement.dataset.theme = name;
}

function options_fill(id, first, names) {
  by_id(id).replaceChildren(...[["", first], ...names.map((name) => [name, name])].map(([value, text]) => new Option(text, value)));
  by_id(id).parentElement.hidden = names.length < 2;
}

const distinct = (list) => [...new Set(list)];

function choices_fill() {
  const cpus = distinct(profiles.flatMap((profile) => [...profile.rows.cpu])).sort((a, b) => a - b);
  const weights = new Map();
  recordings.forEach((recording, side) => {
    const { rows } = profiles[side];
    for (let i = 0; i < rows.n; i++) {
      const { process } = recording.tasks[rows.task[i]];
      weights.set(process, (weights.get(process) ?? 0) + rows.period[i]);
    }
  });
  const processes = [...weights.keys()].sort((a, b) => weights.get(b) - weights.get(a)).slice(0, 1000);
  const phases = distinct(recordings.flatMap((recording) => recording.phases.map((phase) => phase.name)));
  options_fill("cpu", "all", cpus.map(String));
  options_fill("process", "all", processes);
  options_fill("phase", "all", phases);
  by_id("phase").parentElement.hidden = phases.length === 0;
}

function event_choose() {
  const event = value_of("event");
  profiles = recordings.map((recording) => recording.profiles.find((profile) => profile.event === event));
  choices_fill();
  legend_show();
  timelines_show();
  range_show();
  tree_show();
}

function title_show() {
  const text = (recording, side) => {
    const bold = document.createElement("b");
    bold.textContent = recording.path;
    const facts = [`${recording.profiles.reduce((sum, profile) => sum + profile.samples, 0).toLocaleString("en")} samples over ${(recording.length_ns / 1e9).toFixed(3)} s`,
      recording.release, recording.selected_phase && `phase ${recording.selected_phase} only`].filter(Boolean);
    return [side > 0 ? " against " : "", bold, ` (${facts.join(", ")})`];
  };
  by_id("what").replaceChildren(...[...recordings.entries()].reverse().flatMap(([side, recording]) => (is_comparison ? text(recording, 1 - side) : text(recording, 0))));
  document.title = `vprof: ${recordings.map((recording) => recording.path).reverse().join(" against ")}`;
  const notes = recordings.flatMap((recording) => [
    recording.lost > 0 && `${recording.path}: ${recording.lost.toLocaleString("en")} records were lost; what fell into them is missing here`,
    recording.phases_left_out > 0 && `${recording.path}: ${recording.phases_left_out.toLocaleString("en")} further names of phases are not told apart`,
  ]).filter(Boolean);
  if (is_comparison && repetitions === undefined) notes.push("The recordings' units differ: nothing was tested, each change may be chance");
  else if (is_comparison && standing.size === 0) {
    notes.push(`No function's change can be told from chance, with ${repetitions[0]} and ${repetitions[1]} repetitions (vprof run --repeat makes them)`);
  }
  by_id("notes").textContent = notes.join("\n");
  by_id("notes").hidden = notes.length === 0;
}

function repaint() {
  legend_show();
  timelines_show();
  flame_show();
}

function theme_change() {
  theme_set(is_dark() ? "light" : "dark");
  repaint();
}

// The next choice of a list, as the keys g, i and w have it.
function next_choice(id) {
  const list = by_id(id);
  list.selectedIndex = (list.selectedIndex + 1) % list.length;
  list.dispatchEvent(new Event("change"));
}

function keys_show() {
  by_id("keys").hidden = !by_id("keys").hidden;
  by_id("keys-button").setAttribute("aria-expanded", String(!by_id("keys").hidden));
}

function escape() {
  if (matches !== undefined || value_of("search") !== "") {
    by_id("search").blur();
    search_for("");
  } else if (zoomed !== 0) {
    zoom(0);
  } else if (ranges.some((range) => range !== undefined)) {
    range_choose(all_sides(), undefined);
  }
}

function move(way) {
  const next = flame.selected === undefined ? zoomed : flame.neighbour(flame.selected, way);
  if (next !== undefined && flame.select(next)) details_show(next);
}

const KEYS = {
  "/": () => by_id("search").focus(),
  "?": keys_show,
  "ArrowUp": () => move(flame.inverted ? "out" : "in"),
  "ArrowDown": () => move(flame.inverted ? "in" : "out"),
  "ArrowLeft": () => move("left"),
  "ArrowRight": () => move("right"),
  "Enter": () => flame.selected !== undefined && zoom(flame.selected),
  "Backspace": () => zoom(tree.parent[zoomed]),
  "i": () => next_choice("shape"),
  "g": () => next_choice("grouping"),
  "w": () => is_comparison && next_choice("width"),
  "t": theme_change,
  "[": () => range_move(-1),
  "]": () => range_move(1),
};

function key_down(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    escape();
    return;
  }
  // What has a meaning for keys of its own keeps it.
  const action = event.target.closest("input, select, button") === null ? KEYS[event.key] : undefined;
  if (action === undefined) return;
  event.preventDefault();
  action();
}

function start() {
  const events = recordings[0].profiles.map((profile) => profile.event)
    .filter((event) => recordings.every((recording) => recording.profiles.some((profile) => profile.event === event)));
  theme_set(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  title_show();
  for (const label of document.querySelectorAll(".two")) label.hidden = !is_comparison;
  if (events.length === 0) {
    by_id("details").textContent = "There are no events to compare: the recordings have none in common.";
    return;
  }
  by_id("event").replaceChildren(...events.map((event) => new Option(event, event)));
  by_id("event-label").hidden = events.length < 2;
  by_id("grouping").replaceChildren(...Object.entries(GROUPINGS).map(([value, { title }]) => new Option(title, value)));
  event_choose();
  by_id("event").addEventListener("change", event_choose);
  for (const id of ["grouping", "cpu", "process", "phase"]) by_id(id).addEventListener("change", tree_show);
  for (const id of ["shape", "width", "scale"]) by_id(id).addEventListener("change", flame_show);
  by_id("search").addEventListener("input", search);
  by_id("controls").addEventListener("submit", (event) => event.preventDefault());
  by_id("reset").addEventListener("click", () => zoom(0));
  by_id("range-reset").addEventListener("click", () => range_choose(all_sides(), undefined));
  by_id("theme").addEventListener("click", theme_change);
  by_id("keys-button").addEventListener("click", keys_show);
  document.addEventListener("keydown", key_down);
  let pixels = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === pixels) return;
    pixels = innerWidth;
    timelines_show();
    flame_show();
  });
}

start();
// From the start of the navigation, for the benchmark: until what is drawn could be painted.
requestAnimationFrame(() => setTimeout(() => { document.documentElement.dataset.drawnMs = performance.now().toFixed(0); }));
