// SPDX-License-Identifier: BSD-2-Clause
// The scale above a flame graph: how wide is how much.
import { scaleLinear } from "d3-scale";
import { create } from "d3-selection";

const HEIGHT = 22;
const TICK_PIXELS = 150; // one at least as far from the other
const LETTER_PIXELS = 6.5; // on the average

// share: of all that is shown, 0 to 1, which is as wide as the picture; text: share -> what it amounts to.
export function ruler_draw(pixels, share, text) {
  const svg = create("svg").attr("class", "ruler").attr("width", pixels).attr("height", HEIGHT).attr("aria-hidden", "true");
  if (!(share > 0)) return svg.node();
  const x = scaleLinear([0, share], [0, pixels]);
  const texts = []; // from the right on, those that have room
  for (const tick of x.ticks(Math.max(2, Math.floor(pixels / TICK_PIXELS))).reverse()) {
    const at = Math.min(x(tick) + 0.5, pixels - 0.5);
    svg.append("line").attr("x1", at).attr("x2", at).attr("y1", HEIGHT - 5).attr("y2", HEIGHT);
    const words = text(tick), width = words.length * LETTER_PIXELS;
    const begin = Math.max(0, Math.min(at - width / 2, pixels - width));
    if (begin + width < (texts.at(-1)?.begin ?? Infinity)) texts.push({ words, begin, middle: begin + width / 2 });
  }
  for (const { words, middle } of texts.reverse()) {
    svg.append("text").attr("x", middle).attr("y", HEIGHT - 8).attr("text-anchor", "middle").text(words);
  }
  svg.append("line").attr("x1", 0).attr("x2", pixels).attr("y1", HEIGHT - 0.5).attr("y2", HEIGHT - 0.5);
  return svg.node();
}
