// SPDX-License-Identifier: BSD-2-Clause
// Colours: warm for the kernel, green for user space, blue for time outside the guest, violet for waits, as in `vprof export --to svg`;
// when two recordings are compared, red for what takes more and blue for what takes less.
import { MODES } from "./data.js";

const HUES = { kernel: [22, 78], user: [122, 38], vmm: [214, 55], other: [220, 8], waiting: [270, 38], group: [220, 8] };
const EXIT_HUES = [214, 262, 188, 300, 238, 170];

function hash(text) {
  let value = 0;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) >>> 0;
  return value;
}

// Lighter and darker by the name, so that neighbours differ.
export function frame_colour(frame, is_dark) {
  const [hue, saturation] = HUES[MODES[frame.mode]];
  const shade = hash(frame.name) % 100 / 100;
  return `hsl(${hue + Math.round(shade * 14) - 7} ${saturation}% ${is_dark ? 40 + shade * 10 : 66 + shade * 12}%)`;
}

export function kind_colour(kind, exit, is_dark) {
  if (exit < 0) {
    const [hue, saturation] = HUES[kind];
    return `hsl(${hue} ${saturation}% ${is_dark ? 48 : 60}%)`;
  }
  return `hsl(${EXIT_HUES[exit % EXIT_HUES.length]} 55% ${is_dark ? 60 : 50}%)`;
}

export const CHANGE_LEAST = 0.001; // of all time; below, a change is drawn as none
const FULL_LEAST = 0.01; // what full colour stands for at least
const FADED = 0.15;

// change: of shares, -1 to 1; most: the largest one that is shown; stands: that it is not chance.
export function change_colour(change, most, stands, is_dark) {
  if (Math.abs(change) < CHANGE_LEAST) return is_dark ? "hsl(220 6% 40%)" : "hsl(220 8% 86%)";
  const strength = stands ? Math.min(1, Math.sqrt(Math.abs(change) / Math.max(most, FULL_LEAST))) : FADED;
  const hue = change > 0 ? 6 : 214;
  return is_dark ? `hsl(${hue} ${20 + 50 * strength}% ${40 + 8 * strength}%)` : `hsl(${hue} ${40 + 45 * strength}% ${86 - 26 * strength}%)`;
}
