// SPDX-License-Identifier: BSD-2-Clause
// The page: what is chosen in it, and how that is shown.
import { CHANGE_LEAST, change_colour, frame_colour, kind_colour, state_colour } from "./colour.js";
import { GROUP, MODES, STATES, frame_key, read } from "./data.js";
import { FILTERS, slices_of } from "./filter.js";
import { Flame } from "./flame.js";
import { ruler_draw } from "./ruler.js";
import { Table } from "./table.js";
import { Timeline, kinds_of, seconds } from "./timeline.js";
import { GROUPINGS, functions_of, is_waiting, path_find, path_of, sandwich_build, share_of, tree_build } from "./tree.js";
import { view_read, view_write } from "./view.js";

const by_id = (id) => document.getElementById(id);
const { recordings, fates, standing, repetitions } = read(by_id("profile").textContent);
by_id("profile").remove();
const is_comparison = recordings.length > 1;

let profiles; // of the chosen event, one of each recording
let tree;
let functions;
let matches; // frame -> whether the search has found it; undefined without a search
let zoomed = 0;
let centre; // the frame in the middle of callers and callees; undefined: the flame graph
const ranges = recordings.map(() => undefined); // of each the time that is shown, [from, to] in ns; undefined: all

const flame = new Flame(by_id("flame"), { pick: zoom, hover, out: () => zoom(tree.parent[zoomed]) });
const sandwich = ["callers", "callees"].map((id) => new Flame(by_id(id), {
  pick: (node) => centre_at(sandwich[id === "callers" ? 0 : 1].tree.frame[node]), hover: (node) => hover_in(id, node), out: () => centre_at(undefined) }));
const table = new Table(by_id("functions"), { pick: (row) => search_for(row.name), centre: (row) => centre_at(row.frame),
  fate: (row) => fate_of(row, row.total) });
const timelines = recordings.map((recording, side) => new Timeline(timeline_host(recording, side),
  `Timeline${is_comparison ? ` of ${recording.path}` : ""}: arrow keys move, Shift extends, Enter chooses the time`,
  { choose: (range) => range_choose([side], range), say: (text) => { by_id("details-text").textContent = text; }, pick: thread_pick }));

const counts = new Intl.NumberFormat("en");
const count = (n) => counts.format(n);
const percent = (share) => `${(100 * share).toFixed(2)} %`;
const value_of = (id) => by_id(id).value;

function is_dark() {
  return document.documentElement.dataset.theme === "dark";
}

// What a period is worth in the picture: of each side its share, or itself.
function scales() {
  return tree.total.map((total) => (value_of("scale") === "share" && is_comparison ? (total[0] > 0 ? 1 / total[0] : 0) : 1));
}

function width_function(of = tree) {
  const [base, now] = scales();
  if (!is_comparison) return (node) => of.total[0][node];
  if (value_of("width") === "base") return (node) => of.total[0][node] * base;
  if (value_of("width") === "new") return (node) => of.total[1][node] * now;
  return (node) => of.total[0][node] * base + of.total[1][node] * now;
}

function amount(value, profile) {
  if (!tree.has_periods) return `${count(value)} samples`;
  if (profile.unit !== "ns") return `${count(value)} ${profile.event}`;
  return value >= 1e9 ? `${(value / 1e9).toFixed(3)} s` : `${(value / 1e6).toFixed(2)} ms`;
}

// What has become of a frame that only one side has; total: of each.
function fate_of(frame, total) {
  if (total[0] !== 0 && total[1] !== 0) return "";
  const side = total[0] === 0 ? 1 : 0;
  return fates[side].get(frame_key(frame)) ?? (side === 1 ? "new" : "gone");
}

function frame_text(frame) {
  return frame.mode === GROUP ? frame.name : `${frame.name} (${MODES[frame.mode]}, ${frame.module})`;
}

// Of a node of `of`, in shares of all that is shown.
function describe(node, of = tree) {
  const frame = of.frame[node] < 0 ? undefined : of.frames[of.frame[node]];
  const name = frame === undefined ? "all" : frame_text(frame);
  const sides = of.total.map((total, side) => {
    const share = tree.total[side][0] > 0 ? total[node] / tree.total[side][0] : 0;
    const waits = of.waits[side][node];
    const waiting = waits > 0 && waits < total[node] ? `, ${percent(waits / total[node])} of it waiting` : "";
    return `${percent(share)}, ${amount(total[node], profiles[side])}, ${count(of.samples[side][node])} samples${waiting}`;
  });
  if (!is_comparison) return `${name}: ${sides[0]}`;
  const fate = frame === undefined ? "" : fate_of(frame, of.total.map((total) => total[node])).replace(/^./, "; $&");
  return `${name}: base ${sides[0]}; new ${sides[1]}${fate}`;
}

// Statistics are made of the first event.
function is_tested() {
  return value_of("event") === recordings[0].profiles[0].event && repetitions !== undefined;
}

// Of each node what functions that stand have changed in it, themselves: what changed above and below them.
function standing_changes(of, scale) {
  const stands = of.frames.map((frame) => is_tested() && standing.has(frame_key(frame)));
  const sums = new Float64Array(of.n);
  for (let node = of.n - 1; node > 0; node--) {
    if (stands[of.frame[node]]) sums[node] += of.self[1][node] * scale[1] - of.self[0][node] * scale[0];
    sums[of.parent[node]] += sums[node];
  }
  return sums;
}

function colour_function(of = tree) {
  const dark = is_dark();
  const frame_of = (node) => (of.frame[node] < 0 ? { name: "", mode: GROUP } : of.frames[of.frame[node]]);
  if (!is_comparison) return (node) => frame_colour(frame_of(node), dark, is_waiting(of, node));
  const whole = Math.max(...tree.total.map((total, side) => total[0] * scales()[side])); // in which changes are shares
  const scale = scales().map((factor) => (whole > 0 ? factor / whole : 0));
  const told = standing_changes(of, scale);
  const most = told.reduce((largest, change) => Math.max(largest, Math.abs(change)), 0);
  return (node) => {
    const change = of.total[1][node] * scale[1] - of.total[0][node] * scale[0];
    return Math.abs(told[node]) >= CHANGE_LEAST ? change_colour(told[node], most, true, dark) : change_colour(change, most, false, dark);
  };
}

// How much of all that is shown is as wide as the picture.
function ruler_show() {
  const host = by_id("ruler");
  const whole = width_function()(0);
  const share = centre === undefined ? (whole > 0 ? width_function()(zoomed) / whole : 0) : sandwich_share();
  const has_time = !is_comparison && tree.has_periods && profiles[0].unit === "ns";
  host.replaceChildren(ruler_draw(host.clientWidth, share, (at) => `${+(100 * at).toFixed(4)} %${has_time && at > 0 ? ` · ${seconds(at * tree.total[0][0])}` : ""}`));
}

function sandwich_share() {
  const whole = width_function()(0);
  return whole > 0 ? width_function(sandwich[0].tree)(0) / whole : 0;
}

function flame_show() {
  by_id("flame").hidden = centre !== undefined;
  by_id("sandwich").hidden = centre === undefined;
  if (centre === undefined) {
    flame.inverted = value_of("shape") === "icicle";
    flame.show({ tree, width: width_function(), zoomed, root_name: "all", colour: colour_function(), describe,
      marked: (node) => matches !== undefined && node !== 0 && matches[tree.frame[node]] });
  } else {
    sandwich_show();
  }
  ruler_show();
  by_id("reset").disabled = zoomed === 0 && centre === undefined;
  details_show();
  view_changed();
}

function sandwich_show() {
  const name = tree.frames[centre].name;
  const trees = sandwich_build(tree, centre);
  const [callers, callees] = sandwich;
  callees.inverted = true;
  by_id("centre").textContent = name;
  by_id("centre-facts").textContent = describe(0, trees[0]).slice(frame_text(tree.frames[centre]).length + 2);
  [callers, callees].forEach((picture, i) => {
    const of = trees[i];
    picture.selected = undefined;
    picture.show({ tree: of, width: width_function(of), zoomed: 0, root_name: name, colour: colour_function(of), describe: (node) => describe(node, of),
      marked: (node) => matches !== undefined && matches[of.frame[node]] });
  });
}

// Shows the callers and callees of a function, or the flame graph again.
function centre_at(frame) {
  if (frame !== undefined && tree.frames[frame].mode === GROUP) return;
  centre = frame;
  flame_show();
  if (frame !== undefined) by_id("sandwich").scrollIntoView({ block: "nearest" });
}

// The status line: the frame under the pointer, else what the search has found, else what is shown.
function details_show(node) {
  let text = centre === undefined ? describe(node ?? zoomed) : describe(0, sandwich[0].tree);
  if (node === undefined && matches !== undefined && centre === undefined) {
    const shares = share_of(tree, matches, zoomed).map(percent);
    const n = matches.reduce((sum, is_match) => sum + (is_match ? 1 : 0), 0);
    const where = zoomed === 0 ? "" : ` of ${flame.name_of(zoomed)}`;
    text = `${n === 1 ? "1 function matches" : `${n} functions match`}: ${is_comparison ? `base ${shares[0]}, new ${shares[1]}` : shares[0]}${where}`;
  }
  by_id("details-text").textContent = text;
  const of = tree.frame[flame.selected ?? zoomed] ?? -1;
  by_id("details-centre").hidden = centre !== undefined || of < 0 || tree.frames[of].mode === GROUP;
}

function hover(node) {
  details_show(node ?? flame.selected);
  if (node === flame.selected) view_changed();
}

function hover_in(id, node) {
  const picture = sandwich[id === "callers" ? 0 : 1];
  by_id("details-text").textContent = describe(node ?? picture.selected ?? 0, picture.tree);
}

function zoom(node) {
  zoomed = node;
  flame.selected = undefined;
  flame_show();
}

function pattern_of(text) {
  const expression = /^\/(.+)\/$/.exec(text);
  if (expression === null) return (name) => name.toLowerCase().includes(text.toLowerCase());
  // An address that was sent on may have one in it, and the time that these take has no bound.
  if (/[*+}]\)[*+{]/.test(expression[1])) throw new Error("a repetition of a repetition is not supported");
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
    by_id("details-text").textContent = error.message;
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

function tree_make() {
  const centred = centre === undefined ? undefined : frame_key(tree.frames[centre]);
  const filters = Object.fromEntries(FILTERS.map((name) => [name, value_of(name)]));
  tree = tree_build(recordings, profiles, { filters, ranges }, value_of("grouping"));
  functions = functions_of(tree);
  zoomed = 0;
  centre = centred === undefined ? undefined : frame_find(centred);
  flame.selected = undefined;
  by_id("clear").hidden = FILTERS.every((name) => filters[name] === "");
}

function tree_show() {
  tree_make();
  search();
}

function frame_find(key) {
  const frame = tree.frames.findIndex((one) => frame_key(one) === key);
  return frame < 0 ? undefined : frame;
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

// What a task waited for, or did: its samples alone.
function thread_pick(thread) {
  by_id("pid").value = by_id("pid").value === String(thread.pid) ? "" : String(thread.pid);
  tree_show();
}

const ROWS_STEP = 24;

// A button below a timeline for each kind of row of which some are not shown.
function rests_offer(recording, timeline) {
  const { threads, left_out } = recording.states ?? { threads: [], left_out: 0 };
  const rests = [
    { shown: "tracks_shown", n: timeline.n_tracks, words: "more phases" },
    { shown: "threads_shown", n: threads.length, words: `more tasks${left_out > 0 ? `; ${count(left_out)} that did least are left out` : ""}` },
  ];
  timeline.rests?.forEach((button) => button.remove());
  timeline.rests = rests.filter(({ shown, n }) => n > timeline[shown]).map(({ shown, n, words }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "rest";
    button.textContent = `${n - timeline[shown]} ${words}`;
    button.addEventListener("click", () => {
      timeline[shown] += ROWS_STEP;
      timelines_show();
    });
    return button;
  });
  timeline.host.after(...timeline.rests);
}

function timeline_host(recording, side) {
  const host = document.createElement("div");
  host.id = `timeline-${side}`;
  host.className = "lanes";
  if (is_comparison) {
    const head = document.createElement("h2");
    head.textContent = `${side === 0 ? "Base" : "New"}: ${recording.path}`;
    by_id("timelines").append(head);
  }
  by_id("timelines").append(host);
  return host;
}

function timelines_show() {
  recordings.forEach((recording, side) => {
    timelines[side].host.hidden = profiles[side].timeline.cells.length === 0 && recording.phases.length === 0;
    if (timelines[side].host.hidden) return;
    timelines[side].draw(recording, profiles[side], (kind, exit) => kind_colour(kind, exit, is_dark()), (state) => state_colour(state, is_dark()), shown_range(side));
    rests_offer(recording, timelines[side]);
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
  const states = new Set(recordings.flatMap(({ states: of }) => of?.threads.flatMap(({ cells }) => cells.map(({ state }) => state)) ?? []));
  if (states.size !== 0) {
    items.push("Tasks:", ...[...states].sort((a, b) => a - b).map((state) => legend_item(state_colour(state, dark), STATES[state] ?? "unknown")));
  }
  if (!is_comparison && profiles[0].rows.state.some((state) => state !== 0)) items.push("Frames:", legend_item(frame_colour({ name: "", mode: 0 }, dark, true), "mostly waiting"));
  by_id("legend").replaceChildren(...items);
}

function theme_set(name) {
  document.documentElement.dataset.theme = name;
}

function options_fill(id, first, names) {
  by_id(id).replaceChildren(...[["", first], ...names.map((name) => [name, name])].map(([value, text]) => new Option(text, value)));
}

const SUGGESTIONS = 200;

// The heaviest first.
function suggestions_fill(id, weights) {
  const values = [...weights.keys()].filter((value) => value !== "" && value !== undefined).sort((a, b) => weights.get(b) - weights.get(a));
  by_id(`${id}-list`).replaceChildren(...values.slice(0, SUGGESTIONS).map((value) => new Option(value, value)));
  by_id(id).parentElement.hidden = values.length < 2;
}

const distinct = (list) => [...new Set(list)];

function choices_fill() {
  const weights = { comm: new Map(), pid: new Map(), cgroup: new Map(), vcpu: new Map(), mode: new Map() };
  const add = (name, value, period) => weights[name].set(value, (weights[name].get(value) ?? 0) + period);
  let has_states = false;
  let has_wakers = false;
  recordings.forEach((recording, side) => {
    const { rows, frames, nodes } = profiles[side];
    for (let i = 0; i < rows.n; i++) {
      const task = recording.tasks[rows.task[i]];
      for (const name of ["comm", "pid", "cgroup"]) add(name, task[name], rows.period[i]);
      add("vcpu", rows.cpu[i], rows.period[i]);
      add("mode", MODES[frames[nodes.frame[rows.node[i]]]?.mode], rows.period[i]);
      has_states ||= rows.state[i] !== 0;
      has_wakers ||= rows.waker[i] !== 0;
    }
  });
  for (const name of ["comm", "pid", "cgroup", "vcpu"]) suggestions_fill(name, weights[name]);
  const modes = MODES.filter((mode) => weights.mode.has(mode));
  const phases = distinct(recordings.flatMap((recording) => recording.phases.map((phase) => phase.name)));
  const [mode, phase] = [value_of("mode"), value_of("phase")];
  options_fill("mode", "all", modes);
  options_fill("phase", "all", phases);
  by_id("mode").value = modes.includes(mode) ? mode : "";
  by_id("phase").value = phases.includes(phase) ? phase : "";
  by_id("mode").parentElement.hidden = modes.length < 2;
  by_id("phase").parentElement.hidden = phases.length === 0;
  const absent = { cgroup: weights.cgroup.size < 2, phase: phases.length === 0, state: !has_states, waker: !has_wakers };
  for (const option of by_id("grouping").options) option.hidden = absent[option.value] === true;
}

function event_set() {
  const event = value_of("event");
  profiles = recordings.map((recording) => recording.profiles.find((profile) => profile.event === event));
  choices_fill();
  legend_show();
  timelines_show();
  range_show();
}

function event_choose() {
  event_set();
  tree_show();
}

function fact_show(list, name, text) {
  const [term, definition] = [document.createElement("dt"), document.createElement("dd")];
  term.textContent = name;
  definition.textContent = text;
  definition.title = text;
  const pair = document.createElement("div");
  pair.append(term, definition);
  list.append(pair);
}

const FACTS_FIRST = ["guest", "kernel", "host"];

// What `vprof report` says of a recording, and its events; the timeline has the phases.
function facts_show() {
  const lists = recordings.map((recording) => {
    const list = document.createElement("dl");
    const events = recording.profiles.filter((profile) => !profile.is_joined).map((profile) => `${profile.event}, ${profile.rate}: ${count(profile.samples)} samples`).join("; ");
    const facts = [...recording.facts.filter(([name]) => FACTS_FIRST.includes(name)), ["events", events],
      ...recording.facts.filter(([name]) => !FACTS_FIRST.includes(name) && name !== "phases")];
    for (const [name, text] of is_comparison ? [["recording", recording.path], ...facts] : facts) fact_show(list, name, text);
    return list;
  });
  by_id("facts").prepend(...lists);
}

function facts_toggle() {
  const all = by_id("facts").classList.toggle("all");
  by_id("facts-all").setAttribute("aria-expanded", String(all));
  by_id("facts-all").textContent = all ? "Less" : "More";
}

function title_show() {
  const text = (recording, side) => {
    const bold = document.createElement("b");
    bold.textContent = recording.path;
    return [side > 0 ? " against " : "", bold, recording.selected_phase ? ` (phase ${recording.selected_phase} only)` : ""];
  };
  by_id("what").replaceChildren(...[...recordings.entries()].reverse().flatMap(([side, recording]) => (is_comparison ? text(recording, 1 - side) : text(recording, 0))));
  document.title = `vprof: ${recordings.map((recording) => recording.path).reverse().join(" against ")}`;
  const notes = recordings.flatMap((recording) => [
    recording.lost > 0 && `${recording.path}: ${count(recording.lost)} samples were lost and are missing here`,
    recording.lost_others > 0 && `${recording.path}: ${count(recording.lost_others)} records of other kinds were lost`,
    recording.phases_left_out > 0 && `${recording.path}: ${count(recording.phases_left_out)} further names of phases are not told apart`,
  ]).filter(Boolean);
  if (is_comparison && repetitions === undefined) notes.push("The recordings' units differ: nothing was tested, each change may be chance");
  else if (is_comparison && standing.size === 0) {
    notes.push(`No function's change can be told from chance, with ${repetitions[0]} and ${repetitions[1]} repetitions (vprof run --repeat makes them)`);
  }
  by_id("notes").textContent = notes.join("\n");
  by_id("notes").hidden = notes.length === 0;
  facts_show();
}

// ---- the address ----

const CHOICES = { event: "event", shape: "shape", group: "grouping", width: "width", scale: "scale" }; // part of an address -> list
const WRITE_MS = 200; // browsers bound how often an address may change
let writing;
let written = "";

function view_now() {
  const view = { search: value_of("search").trim(), ranges, zoom: path_of(tree, zoomed), select: flame.selected === undefined ? [] : path_of(tree, flame.selected) };
  // What is as at first is left out.
  for (const [name, id] of Object.entries(CHOICES)) view[name] = by_id(id).selectedIndex === 0 ? "" : value_of(id);
  for (const name of FILTERS) view[name] = value_of(name);
  const { name, module, mode } = centre === undefined ? {} : tree.frames[centre];
  view.function = centre === undefined ? [] : [name, module, MODES[mode]];
  return view;
}

function view_changed() {
  clearTimeout(writing);
  writing = setTimeout(view_save, WRITE_MS);
}

function view_save() {
  clearTimeout(writing);
  const text = view_write(view_now());
  if (text === written) return;
  written = text;
  history.replaceState(null, "", text === "" ? location.pathname + location.search : `#${text}`);
}

// Shows what an address says, as far as this page has it.
function view_restore() {
  const view = view_read(location.hash);
  for (const [name, id] of Object.entries(CHOICES)) {
    const list = by_id(id);
    list.selectedIndex = Math.max([...list.options].findIndex((option) => option.value === view[name]), 0);
  }
  by_id("search").value = view.search;
  recordings.forEach((recording, side) => {
    const range = view.ranges[side];
    ranges[side] = range !== undefined && range[0] < recording.length_ns ? [range[0], Math.min(range[1], recording.length_ns)] : undefined;
  });
  for (const name of FILTERS) by_id(name).value = view[name];
  centre = undefined;
  event_set();
  // Lists have what the event has.
  for (const name of ["mode", "phase"]) {
    by_id(name).value = view[name];
    if (by_id(name).selectedIndex < 0) by_id(name).value = "";
  }
  tree_make();
  zoomed = path_find(tree, view.zoom);
  const [name, module, mode] = view.function;
  if (mode !== undefined) centre = frame_find(frame_key({ name, module, mode: MODES.indexOf(mode) }));
  if (view.select.length !== 0) flame.selected = path_find(tree, view.select);
  search_read();
  if (by_id("search").hasAttribute("aria-invalid")) by_id("search").value = "";
  search();
  view_save();
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
  do list.selectedIndex = (list.selectedIndex + 1) % list.length; while (list.options[list.selectedIndex].hidden);
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
  } else if (centre !== undefined) {
    centre_at(undefined);
  } else if (zoomed !== 0) {
    zoom(0);
  } else if (ranges.some((range) => range !== undefined)) {
    range_choose(all_sides(), undefined);
  }
}

// The frame that the keys have reached, else the one that is zoomed to.
function centre_here() {
  const frame = tree.frame[flame.selected ?? zoomed] ?? -1;
  if (frame >= 0) centre_at(frame);
}

const KEYS = {
  "/": () => by_id("search").focus(),
  "?": keys_show,
  "c": () => (centre === undefined ? centre_here() : centre_at(undefined)),
  "i": () => next_choice("shape"),
  "g": () => next_choice("grouping"),
  "w": () => is_comparison && next_choice("width"),
  "t": theme_change,
  "[": () => range_move(-1),
  "]": () => range_move(1),
};

// The picture that keys move in: the one with the focus, else the first that is shown.
function picture_of(element) {
  return sandwich.find((picture) => picture.host.contains(element)) ?? (centre === undefined ? flame : sandwich[0]);
}

function key_down(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    escape();
    return;
  }
  // What has a meaning for keys of its own keeps it.
  if (event.target.closest("input, select, button") !== null) return;
  const action = Object.prototype.hasOwnProperty.call(KEYS, event.key) ? KEYS[event.key] : picture_of(event.target).action(event.key);
  if (action === undefined) return;
  event.preventDefault();
  action();
}

function filters_clear() {
  for (const name of FILTERS) by_id(name).value = "";
  tree_show();
}

function listen() {
  const on = (id, event, call) => by_id(id).addEventListener(event, call);
  on("event", "change", event_choose);
  for (const id of ["grouping", ...FILTERS]) on(id, "change", tree_show);
  for (const id of ["shape", "width", "scale"]) on(id, "change", flame_show);
  on("search", "input", search);
  on("controls", "submit", (event) => event.preventDefault());
  on("clear", "click", filters_clear);
  on("reset", "click", () => {
    centre = undefined;
    zoom(0);
  });
  on("details-centre", "click", centre_here);
  on("centre-leave", "click", () => centre_at(undefined));
  on("range-reset", "click", () => range_choose(all_sides(), undefined));
  on("facts-all", "click", facts_toggle);
  on("theme", "click", theme_change);
  on("keys-button", "click", keys_show);
  document.addEventListener("keydown", key_down);
  addEventListener("hashchange", () => {
    if (location.hash.replace(/^#/, "") !== written) view_restore();
  });
  let pixels = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === pixels) return;
    pixels = innerWidth;
    timelines_show();
    flame_show();
  });
}

function start() {
  const events = recordings[0].profiles.map((profile) => profile.event)
    .filter((event) => recordings.every((recording) => recording.profiles.some((profile) => profile.event === event)));
  theme_set(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  title_show();
  for (const label of document.querySelectorAll(".two")) label.hidden = !is_comparison;
  if (events.length === 0) {
    by_id("details-text").textContent = "There are no events to compare: the recordings have none in common.";
    return;
  }
  by_id("event").replaceChildren(...events.map((event) => new Option(event, event)));
  by_id("event-label").hidden = events.length < 2;
  by_id("grouping").replaceChildren(...Object.entries(GROUPINGS).map(([value, { title }]) => new Option(title, value)));
  view_restore();
  listen();
}

start();
// From the start of the navigation, for the benchmark: until what is drawn could be painted.
requestAnimationFrame(() => setTimeout(() => { document.documentElement.dataset.drawnMs = performance.now().toFixed(0); }));
