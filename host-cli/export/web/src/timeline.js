// SPDX-License-Identifier: BSD-2-Clause
// What each vCPU did, by time, with the phases above: SVG with d3's scales and axes.
import { axisBottom } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { create } from "d3-selection";
import { MODES, STATES } from "./data.js";

const LANE_PIXELS = 36;
const PHASE_PIXELS = 22;
const THREAD_PIXELS = 20;
const THREADS_SHOWN = 8; // at first
const TRACKS_SHOWN = 8; // at first
const SPANS_SHOWN = 2000;
const NAME_MAX = 14;
const LEFT = 104;
const RIGHT = 18;
const AXIS_PIXELS = 22;
const CPUS_SHOWN = 64;
const COLUMNS_MAX = 6000;
const CLICK_PIXELS = 4;

// Exits in the order of their weight, behind the modes of the guest.
export function kinds_of(profile) {
  const weights = new Map();
  for (const cell of profile.timeline.cells) weights.set(cell.kind, (weights.get(cell.kind) ?? 0) + cell.period);
  const guest = MODES.filter((mode) => weights.has(mode));
  const exits = [...weights.keys()].filter((kind) => !MODES.includes(kind)).sort((a, b) => weights.get(b) - weights.get(a));
  return { weights, order: [...guest, ...exits], exits };
}

export function seconds(ns) {
  if (ns === 0) return "0 s";
  return ns >= 1e9 ? `${+(ns / 1e9).toFixed(3)} s` : ns >= 1e6 ? `${+(ns / 1e6).toFixed(2)} ms` : `${+(ns / 1e3).toFixed(2)} µs`;
}

// The kinds in each slice of each vCPU, and the fullest of all slices.
function columns_of(profile, cpus, slice_ns) {
  const lane = new Map(cpus.map((cpu, i) => [cpu, i]));
  const columns = new Map();
  let most = 0;
  for (const cell of profile.timeline.cells) {
    if (!lane.has(cell.cpu)) continue;
    const begin = Math.floor(cell.begin / slice_ns) * slice_ns;
    const key = `${cell.cpu} ${begin}`;
    const column = columns.get(key) ?? { lane: lane.get(cell.cpu), begin, kinds: new Map(), sum: 0 };
    column.kinds.set(cell.kind, (column.kinds.get(cell.kind) ?? 0) + cell.period);
    column.sum += cell.period;
    most = Math.max(most, column.sum);
    columns.set(key, column);
  }
  return { columns: [...columns.values()], most };
}

// Phases: names that differ by a number alone (repetitions, warm-ups) share a track.
export function tracks_of(phases) {
  const stem_of = (name) => /^(.*?)[-_ ]?\d+$/.exec(name)?.[1] ?? name;
  const groups = new Map();
  for (const phase of phases) groups.set(stem_of(phase.name), [...(groups.get(stem_of(phase.name)) ?? []), phase]);
  return [...groups].map(([stem, members]) => ({
    name: members.length > 1 ? stem || "phases" : members[0].name,
    spans: members.flatMap((phase) => phase.spans.map(([begin, end]) => ({ begin: Math.max(begin, 0), end, name: phase.name,
      label: members.length > 1 && stem !== "" ? phase.name.slice(stem.length).replace(/^[-_ ]/, "") : phase.name })))
      .sort((a, b) => a.begin - b.begin).slice(0, SPANS_SHOWN),
  }));
}

function column_text(column, order) {
  return order.filter((kind) => column.kinds.has(kind))
    .map((kind) => `${MODES.includes(kind) ? kind : `exit ${kind}`} ${(100 * column.kinds.get(kind) / column.sum).toFixed(1)} %`).join(", ");
}

// Has a range of time chosen by drawing over the lanes; a click on a phase chooses it, elsewhere all of the time.
function range_choose(svg, x, height, choose) {
  const node = svg.node();
  const band = svg.append("rect").attr("class", "drawn").attr("y", 0).attr("height", height).attr("visibility", "hidden");
  const pixel = (event) => Math.min(Math.max(event.clientX - node.getBoundingClientRect().left, x.range()[0]), x.range()[1]);
  let from, span;
  svg.on("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = pixel(event);
    span = event.target.closest(".span")?.__data__;
    node.setPointerCapture(event.pointerId);
  });
  svg.on("pointermove", (event) => {
    if (from === undefined) return;
    const at = pixel(event);
    band.attr("visibility", "visible").attr("x", Math.min(from, at)).attr("width", Math.abs(at - from));
  });
  svg.on("pointerup pointercancel", (event) => {
    if (from === undefined) return;
    const ends = [from, pixel(event)].sort((a, b) => a - b);
    from = undefined;
    band.attr("visibility", "hidden");
    if (event.type !== "pointerup") return;
    if (ends[1] - ends[0] >= CLICK_PIXELS) choose(ends.map((end) => x.invert(end)));
    else choose(span && [span.begin, span.end]);
  });
}

// What is not chosen stands back.
function range_show(svg, x, height, range) {
  const [left, right] = x.range();
  for (const [from, to] of [[left, x(range[0])], [x(range[1]), right]]) {
    svg.append("rect").attr("class", "outside").attr("x", from).attr("width", Math.max(to - from, 0)).attr("y", 0).attr("height", height);
  }
}

const short = (text) => (text.length > NAME_MAX ? `${text.slice(0, NAME_MAX - 1)}…` : text);

// One row of a recording's timeline: a track of phases, or a vCPU.
function row_begin(svg, name, y, height) {
  const row = svg.append("g").attr("role", "row").attr("aria-label", name);
  row.append("rect").attr("class", "lane").attr("x", LEFT).attr("width", Math.max(svg.attr("width") - RIGHT - LEFT, 0)).attr("y", y + 2).attr("height", height - 4)
    .attr("rx", 2);
  row.append("text").attr("class", "name").attr("x", LEFT - 10).attr("y", y + height / 2 + 4).attr("text-anchor", "end").text(short(name)).append("title").text(name);
  return row;
}

function track_draw(svg, track, y, x) {
  const row = row_begin(svg, track.name, y, PHASE_PIXELS);
  return track.spans.map((span) => {
    const [from, to] = [x(span.begin), Math.max(x(span.end), x(span.begin) + 1)];
    const text = `${span.name}: ${seconds(span.begin)} to ${seconds(span.end)}`;
    const cell = row.append("g").datum(span).attr("class", "span").attr("role", "gridcell").attr("aria-label", text);
    cell.append("rect").attr("x", from + 0.5).attr("width", Math.max(to - from - 1, 1)).attr("y", y + 2).attr("height", PHASE_PIXELS - 4).attr("rx", 2);
    if (to - from > span.label.length * 7 + 8) cell.append("text").attr("x", (from + to) / 2).attr("y", y + PHASE_PIXELS / 2 + 4).attr("text-anchor", "middle").text(span.label);
    cell.append("title").text(text);
    return { begin: span.begin, end: span.end, text, element: cell.node() };
  });
}

function lane_draw(svg, cpu, columns, { y, x, slice_ns, most, order, exits, colour }) {
  const row = row_begin(svg, `vCPU ${cpu}`, y, LANE_PIXELS);
  return columns.map((column) => {
    const width = Math.max(x(column.begin + slice_ns) - x(column.begin), 0.5);
    const begin = Math.max(column.begin, 0);
    const text = `${seconds(begin)}: ${column_text(column, order)}`;
    const cell = row.append("g").attr("class", "column").attr("role", "gridcell").attr("aria-label", `vCPU ${cpu}, ${text}`);
    let top = y + LANE_PIXELS - 2;
    cell.append("title").text(text);
    for (const kind of order) {
      const tall = (column.kinds.get(kind) ?? 0) / most * (LANE_PIXELS - 5);
      if (tall === 0) continue;
      top -= tall;
      cell.append("rect").attr("x", x(column.begin)).attr("width", width).attr("y", top).attr("height", tall)
        .attr("fill", colour(kind, exits.indexOf(kind)));
    }
    return { begin, end: column.begin + slice_ns, text: `vCPU ${cpu}, ${text}`, element: cell.node() };
  });
}

// What a thread did in each slice, from the ground up: it ran, wanted to, or waited; as high as the slice is long.
function thread_draw(svg, thread, { y, x, slice_ns, state_colour, pick }) {
  const row = row_begin(svg, `${thread.comm} ${thread.tid}`, y, THREAD_PIXELS);
  row.select("text.name").classed("pick", true).on("click", () => pick(thread));
  const slices = new Map();
  for (const cell of thread.cells) slices.set(cell.begin, [...(slices.get(cell.begin) ?? []), cell]);
  return [...slices].map(([at, cells]) => {
    const begin = Math.max(at, 0);
    const text = `${seconds(begin)}: ${cells.map(({ state, ns }) => `${STATES[state] ?? "unknown"} ${seconds(ns)}`).join(", ")}`;
    const group = row.append("g").attr("class", "column").attr("role", "gridcell").attr("aria-label", `${thread.comm} ${thread.tid}, ${text}`);
    let top = y + THREAD_PIXELS - 2;
    group.append("title").text(text);
    for (const { state, ns } of cells) {
      const tall = Math.min(ns / slice_ns, 1) * (THREAD_PIXELS - 4);
      top = Math.max(top - tall, y + 2);
      group.append("rect").attr("x", x(at)).attr("width", Math.max(x(at + slice_ns) - x(at), 0.5)).attr("y", top).attr("height", tall).attr("fill", state_colour(state));
    }
    return { begin, end: at + slice_ns, text: `${thread.comm} ${thread.tid}, ${text}`, element: group.node() };
  });
}

// The timeline of one recording, in an element of its own: a grid for the keyboard, of tracks and lanes by time.
export class Timeline {
  // on: {choose([from, to] or undefined), say(text), pick(thread)}; colour: kind and its number among the exits -> CSS colour
  constructor(host, label, on) {
    Object.assign(this, { host, on, threads_shown: THREADS_SHOWN, tracks_shown: TRACKS_SHOWN, n_tracks: 0 });
    this.cursor = undefined; // {row, cell}; anchor: the cell where a choice by keys began
    host.setAttribute("role", "grid");
    host.setAttribute("aria-label", label);
    host.setAttribute("aria-readonly", "true");
    host.tabIndex = 0;
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("blur", () => this.cursor_show(undefined));
  }

  // range: undefined or [from, to] in nanoseconds; state_colour: number of a state -> CSS colour
  draw(recording, profile, colour, state_colour, range) {
    const pixels = this.host.clientWidth;
    const cpus = [...new Set(profile.timeline.cells.map((cell) => cell.cpu))].sort((a, b) => a - b).slice(0, CPUS_SHOWN);
    const { order, exits } = kinds_of(profile);
    const slices = Math.ceil(recording.length_ns / profile.timeline.slice_ns) + 1;
    const slice_ns = profile.timeline.slice_ns * Math.ceil(slices * cpus.length / COLUMNS_MAX);
    const { columns, most } = columns_of(profile, cpus, slice_ns);
    const x = scaleLinear([0, Math.max(recording.length_ns, 1)], [LEFT, pixels - RIGHT]).clamp(true);
    const svg = create("svg").attr("class", "timeline").attr("width", pixels).attr("role", "presentation");
    const all_tracks = tracks_of(recording.phases);
    const tracks = all_tracks.slice(0, this.tracks_shown);
    this.n_tracks = all_tracks.length;
    this.rows = tracks.map((track, i) => track_draw(svg, track, i * PHASE_PIXELS, x));
    cpus.forEach((cpu, i) => {
      const y = tracks.length * PHASE_PIXELS + i * LANE_PIXELS;
      this.rows.push(lane_draw(svg, cpu, columns.filter((column) => column.lane === i), { y, x, slice_ns, most, order, exits, colour }));
    });
    const threads = (recording.states?.threads ?? []).slice(0, this.threads_shown);
    const above = tracks.length * PHASE_PIXELS + cpus.length * LANE_PIXELS;
    threads.forEach((thread, i) => {
      const row = thread_draw(svg, thread, { y: above + i * THREAD_PIXELS, x, slice_ns: recording.states.slice_ns, state_colour, pick: this.on.pick });
      row.thread = thread;
      this.rows.push(row);
    });
    this.rows = this.rows.filter((row) => row.length !== 0);
    const height = above + threads.length * THREAD_PIXELS;
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height})`)
      .call(axisBottom(x).ticks(Math.max(2, Math.floor(pixels / 130))).tickFormat(seconds).tickSizeOuter(0));
    svg.attr("height", height + AXIS_PIXELS);
    if (range !== undefined) range_show(svg, x, height, range);
    range_choose(svg, x, height, this.on.choose);
    this.host.replaceChildren(svg.node());
    this.cursor_show(this.cursor);
  }

  cell(at) {
    return at && this.rows[at.row]?.[at.cell];
  }

  cursor_show(at) {
    this.host.querySelector(".cursor")?.classList.remove("cursor");
    this.cursor = at;
    const cell = this.cell(at);
    this.host.removeAttribute("aria-activedescendant");
    if (cell === undefined) return;
    cell.element.classList.add("cursor");
    cell.element.id = `${this.host.id}-cursor`;
    for (const other of this.host.querySelectorAll(`#${CSS.escape(cell.element.id)}`)) if (other !== cell.element) other.removeAttribute("id");
    this.host.setAttribute("aria-activedescendant", cell.element.id);
    this.on.say(cell.text);
  }

  // The cell of another row at about the same time.
  beside(row) {
    const { begin } = this.cell(this.cursor);
    const after = this.rows[row].findIndex((cell) => cell.begin > begin);
    return { row, cell: Math.max((after < 0 ? this.rows[row].length : after) - 1, 0) };
  }

  next(key) {
    if (this.cell(this.cursor) === undefined) return this.rows.length === 0 ? undefined : { row: 0, cell: 0 };
    const { row, cell } = this.cursor;
    const last = this.rows[row].length - 1;
    if (key === "ArrowLeft") return { row, cell: Math.max(cell - 1, 0) };
    if (key === "ArrowRight") return { row, cell: Math.min(cell + 1, last) };
    if (key === "Home") return { row, cell: 0 };
    if (key === "End") return { row, cell: last };
    if (key === "ArrowUp" && row > 0) return this.beside(row - 1);
    if (key === "ArrowDown" && row + 1 < this.rows.length) return this.beside(row + 1);
    return this.cursor;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(event.key)) {
      const before = this.cell(this.cursor);
      if (!event.shiftKey) this.anchor = undefined;
      else this.anchor ??= before;
      this.cursor_show(this.next(event.key));
      const cell = this.cell(this.cursor);
      if (this.anchor !== undefined && cell !== undefined) this.on.choose([Math.min(this.anchor.begin, cell.begin), Math.max(this.anchor.end, cell.end)]);
    } else if (event.key === "Enter" && this.cell(this.cursor) !== undefined) {
      const { begin, end } = this.cell(this.cursor);
      this.on.choose([begin, end]);
    } else if (event.key === "p" && this.rows[this.cursor?.row]?.thread !== undefined) {
      this.on.pick(this.rows[this.cursor.row].thread);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
