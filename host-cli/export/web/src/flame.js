// SPDX-License-Identifier: BSD-2-Clause
// The flame graph. d3-flame-graph lays out and draws SVG, a handful of elements for each frame, so it gets only those
// frames that can be seen: the trees of large recordings have hundreds of thousands. For assistive technology it is a
// tree, of which the frame that the keys have reached is active.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import "d3-transition";

const ROW_PIXELS = 20;
const WIDTH_MIN_PIXELS = 1;
const FRAMES_MAX = 3000;

// Children of `node` at least `least` wide, the widest first.
function wide_children(tree, width, node, least) {
  const wide = [];
  for (let i = tree.first[node]; i < tree.first[node + 1]; i++) {
    if (width(tree.list[i]) >= least && width(tree.list[i]) > 0) wide.push(tree.list[i]);
  }
  return wide.sort((a, b) => width(b) - width(a));
}

function count_wide(tree, width, node, least, limit) {
  const stack = [node];
  let n = 0;
  while (stack.length !== 0 && n <= limit) {
    const at = stack.pop();
    n++;
    for (let i = tree.first[at]; i < tree.first[at + 1]; i++) if (width(tree.list[i]) >= least) stack.push(tree.list[i]);
  }
  return n;
}

export class Flame {
  // host: an element; on: {pick(node), hover(node or undefined), out()}
  constructor(host, on) {
    this.host = host;
    this.on = on;
    this.inverted = false;
  }

  // What d3-flame-graph calls data: of `zoomed`, what it called, and the line of its callers.
  data() {
    const { tree, width, zoomed } = this;
    let least = width(zoomed) * WIDTH_MIN_PIXELS / this.host.clientWidth;
    while (count_wide(tree, width, zoomed, least, FRAMES_MAX) > FRAMES_MAX) least *= 1.5;
    const item = (node, value, children, is_caller) => ({ name: this.name_of(node), value, children, node, is_caller });
    const whole = item(zoomed, width(zoomed), [], false);
    const stack = [whole];
    while (stack.length !== 0) {
      const at = stack.pop();
      at.children = wide_children(tree, width, at.node, least).map((child) => item(child, width(child), [], false));
      stack.push(...at.children);
    }
    let top = whole;
    for (let node = zoomed; node !== 0; top = item(node, width(zoomed), [top], true)) node = tree.parent[node];
    return top;
  }

  name_of(node) {
    return node === 0 ? this.root_name : this.tree.frames[this.tree.frame[node]].name;
  }

  // colour: node -> CSS colour; marked: node -> whether the search has found it; describe: node -> text
  show({ tree, width, zoomed, root_name, colour, marked, describe }) {
    Object.assign(this, { tree, width, zoomed, root_name, colour, marked, describe });
    this.draw();
  }

  draw() {
    const pixels = this.host.clientWidth;
    this.host.replaceChildren();
    this.drawn = new Map();
    if (!(this.width(this.zoomed) > 0) || pixels === 0) return;
    this.chart = flamegraph().width(pixels).cellHeight(ROW_PIXELS).transitionDuration(0).inverted(this.inverted)
      .setLabelHandler((d) => this.describe(d.data.node)).setColorMapper((d) => this.colour(d.data.node));
    select(this.host).datum(this.data()).call(this.chart);
    this.finish(pixels);
  }

  // The library moves frames to their places a little later, and zooms by itself.
  finish(pixels) {
    const frames = select(this.host).selectAll("g.frame");
    frames.classed("caller", (d) => d.data.is_caller).classed("match", (d) => this.marked(d.data.node))
      .attr("role", "treeitem").attr("id", (d) => `${this.host.id}-${d.data.node}`).attr("aria-level", (d) => d.depth + 1)
      .attr("aria-selected", "false")
      .on("click", (_, d) => this.on.pick(d.data.node))
      .on("mouseover", (_, d) => this.on.hover(d.data.node))
      .on("mouseout", () => this.on.hover(undefined));
    frames.each(function label() {
      this.setAttribute("aria-label", this.querySelector("title")?.textContent ?? "");
    });
    frames.select("rect").interrupt().attr("width", (d) => (d.x1 - d.x0) * pixels);
    frames.select("div").interrupt().text((d) => d.data.name);
    this.drawn = new Map(frames.nodes().map((element) => [element.__data__.data.node, element]));
    select(this.host).select("svg").attr("height", ROW_PIXELS * (1 + Math.max(...frames.data().map((d) => d.depth))))
      .attr("role", "presentation");
    this.place();
    this.select(this.selected);
  }

  // The library leaves room for a title that the page has elsewhere.
  place() {
    const svg = this.host.querySelector("svg");
    const height = Number(svg.getAttribute("height"));
    select(this.host).selectAll("g.frame").attr("transform", (d) =>
      `translate(${d.x0 * this.host.clientWidth},${this.inverted ? d.depth * ROW_PIXELS : height - (d.depth + 1) * ROW_PIXELS})`);
  }

  // Marks one frame; false when it is not drawn.
  select(node) {
    const mark = (element, is_selected) => {
      element?.classList.toggle("selected", is_selected);
      element?.setAttribute("aria-selected", String(is_selected));
    };
    mark(this.drawn?.get(this.selected), false);
    this.selected = node;
    const element = this.drawn?.get(node);
    mark(element, true);
    if (element === undefined) this.host.removeAttribute("aria-activedescendant");
    else this.host.setAttribute("aria-activedescendant", element.id);
    element?.parentNode.append(element); // its border above its neighbours'
    return element !== undefined;
  }

  // The drawn frame beside `node`: "in" is away from the root.
  neighbour(node, way) {
    const { tree, width, drawn } = this;
    const children = (at) => wide_children(tree, width, at, 0).filter((child) => drawn.has(child));
    if (way === "in") return children(node)[0];
    if (way === "out") return node === 0 ? undefined : tree.parent[node];
    if (node === 0) return undefined;
    const siblings = children(tree.parent[node]);
    return siblings[siblings.indexOf(node) + (way === "right" ? 1 : -1)];
  }

  move(way) {
    const next = this.selected === undefined ? this.zoomed : this.neighbour(this.selected, way);
    if (next === undefined || !this.select(next)) return;
    this.drawn.get(next).scrollIntoView({ block: "nearest" });
    this.on.hover(next);
  }

  // What a key does here; undefined: nothing.
  action(key) {
    const way = { ArrowUp: this.inverted ? "out" : "in", ArrowDown: this.inverted ? "in" : "out", ArrowLeft: "left", ArrowRight: "right" }[key];
    if (key.startsWith("Arrow") && way !== undefined) return () => this.move(way);
    if (key === "Enter" && this.selected !== undefined) return () => this.on.pick(this.selected);
    return key === "Backspace" ? this.on.out : undefined;
  }
}
