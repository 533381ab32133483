// SPDX-License-Identifier: BSD-2-Clause
// What each vCPU did, by time, with the phases above: SVG with d3's scales and axes.
import { axisBottom } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { create } from "d3-selection";
import { MODES } from "./data.js";

const LANE_PIXELS = 34;
const PHASE_PIXELS = 16;
const PHASES_SHOWN = 8;
const LEFT = 76;
const RIGHT = 10;
const AXIS_PIXELS = 20;
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

function phases_draw(svg, recording, x) {
  recording.phases.slice(0, PHASES_SHOWN).forEach((phase, i) => {
    const row = svg.append("g").attr("class", "phase").attr("transform", `translate(0,${i * PHASE_PIXELS})`);
    row.append("text").attr("x", LEFT - 8).attr("y", 12).attr("text-anchor", "end").text(phase.name.length > 10 ? `${phase.name.slice(0, 9)}…` : phase.name)
      .append("title").text(phase.name);
    row.selectAll("rect").data(phase.spans).join("rect").attr("x", ([begin]) => x(Math.max(begin, 0)))
      .attr("width", ([begin, end]) => Math.max(x(end) - x(Math.max(begin, 0)), 1)).attr("y", 3).attr("height", PHASE_PIXELS - 5)
      .append("title").text(([begin, end]) => `${phase.name}: ${seconds(begin)} to ${seconds(end)}`);
  });
  return Math.min(recording.phases.length, PHASES_SHOWN) * PHASE_PIXELS;
}

function column_text(column, order) {
  return order.filter((kind) => column.kinds.has(kind))
    .map((kind) => `${MODES.includes(kind) ? kind : `exit ${kind}`} ${(100 * column.kinds.get(kind) / column.sum).toFixed(1)} %`).join(", ");
}

// Has a range of time chosen by drawing over the lanes; a click there chooses all.
function range_choose(svg, x, height, choose) {
  const node = svg.node();
  const band = svg.append("rect").attr("class", "drawn").attr("y", 0).attr("height", height).attr("visibility", "hidden");
  const pixel = (event) => Math.min(Math.max(event.clientX - node.getBoundingClientRect().left, x.range()[0]), x.range()[1]);
  let from;
  svg.on("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = pixel(event);
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
    if (event.type === "pointerup") choose(ends[1] - ends[0] < CLICK_PIXELS ? undefined : ends.map((end) => x.invert(end)));
  });
}

// What is not chosen stands back.
function range_show(svg, x, height, range) {
  const [left, right] = x.range();
  for (const [from, to] of [[left, x(range[0])], [x(range[1]), right]]) {
    svg.append("rect").attr("class", "outside").attr("x", from).attr("width", Math.max(to - from, 0)).attr("y", 0).attr("height", height);
  }
}

// colour: kind and its number among the exits -> CSS colour; range: undefined or [from, to] in nanoseconds, which choose
// is called with. Returns the element.
export function timeline_draw(recording, profile, pixels, colour, range, choose) {
  const cpus = [...new Set(profile.timeline.cells.map((cell) => cell.cpu))].sort((a, b) => a - b).slice(0, CPUS_SHOWN);
  const { order, exits } = kinds_of(profile);
  const slices = Math.ceil(recording.length_ns / profile.timeline.slice_ns) + 1;
  const slice_ns = profile.timeline.slice_ns * Math.ceil(slices * cpus.length / COLUMNS_MAX);
  const { columns, most } = columns_of(profile, cpus, slice_ns);
  const end = Math.max(recording.length_ns, 1);
  const x = scaleLinear([0, end], [LEFT, pixels - RIGHT]).clamp(true);
  const svg = create("svg").attr("class", "timeline").attr("width", pixels).attr("role", "img").attr("aria-label", "timeline");
  const top = phases_draw(svg, recording, x);
  const height = top + cpus.length * LANE_PIXELS;

  cpus.forEach((cpu, i) => {
    svg.append("rect").attr("class", "lane").attr("x", LEFT).attr("width", pixels - RIGHT - LEFT)
      .attr("y", top + i * LANE_PIXELS + 3).attr("height", LANE_PIXELS - 5);
    svg.append("text").attr("x", LEFT - 8).attr("y", top + (i + 0.5) * LANE_PIXELS + 4).attr("text-anchor", "end").text(`vCPU ${cpu}`);
  });
  for (const column of columns) {
    const width = Math.max(x(column.begin + slice_ns) - x(column.begin), 0.5);
    const group = svg.append("g").attr("class", "column");
    let y = top + (column.lane + 1) * LANE_PIXELS - 2;
    group.append("title").text(`${seconds(Math.max(column.begin, 0))}: ${column_text(column, order)}`);
    for (const kind of order) {
      const tall = (column.kinds.get(kind) ?? 0) / most * (LANE_PIXELS - 5);
      if (tall === 0) continue;
      y -= tall;
      group.append("rect").attr("x", x(column.begin)).attr("width", width).attr("y", y).attr("height", tall)
        .attr("fill", colour(kind, exits.indexOf(kind)));
    }
  }
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height})`)
    .call(axisBottom(x).ticks(Math.max(2, Math.floor(pixels / 130))).tickFormat(seconds).tickSizeOuter(0));
  svg.attr("height", height + AXIS_PIXELS);
  if (range !== undefined) range_show(svg, x, height, range);
  range_choose(svg, x, height, choose);
  return svg.node();
}
