// SPDX-License-Identifier: BSD-2-Clause
// Colours: warm for the kernel, green for user space, blue for time outside the guest, as in `vprof export --to svg`, and
// violet for tasks that wait; when two recordings are compared, red for what takes more and blue for what takes less.
// Labels are dark on the light page and light on the dark one: tests/web/page.py holds both to a contrast of 4.5.
import { MODES } from "./data.js";

const WAITING = [268, 46];
const HUES = { kernel: [24, 80], user: [128, 36], vmm: [214, 58], other: [220, 8], waiting: WAITING, group: [220, 10] };
const EXIT_HUES = [214, 262, 188, 300, 238, 170];

function hash(text) {
  let value = 0;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) >>> 0;
  return value;
}

// Lighter and darker by the name, so that neighbours differ.
export function frame_colour(frame, is_dark, waits = false) {
  const [hue, saturation] = waits ? WAITING : HUES[MODES[frame.mode]];
  const shade = hash(frame.name) % 100 / 100;
  const turned = hue + Math.round(shade * 12) - 6;
  return is_dark ? `hsl(${turned} ${Math.round(saturation * 0.62)}% ${26 + shade * 7}%)` : `hsl(${turned} ${saturation}% ${72 + shade * 11}%)`;
}

export function kind_colour(kind, exit, is_dark) {
  if (exit < 0) {
    const [hue, saturation] = HUES[kind];
    return `hsl(${hue} ${saturation}% ${is_dark ? 52 : 60}%)`;
  }
  return `hsl(${EXIT_HUES[exit % EXIT_HUES.length]} 55% ${is_dark ? 62 : 52}%)`;
}

// Of a task's states: it ran, waited for a vCPU, slept, slept without interruption, or something else; sleep stands back.
const STATE_HUES = [[128, 40, 52, 46], [42, 85, 55, 50], [268, 34, 86, 27], [350, 65, 56, 52], [220, 8, 76, 36]];

export function state_colour(state, is_dark) {
  const [hue, saturation, light, dark] = STATE_HUES[Math.min(state, STATE_HUES.length - 1)];
  return `hsl(${hue} ${saturation}% ${is_dark ? dark : light}%)`;
}

export const CHANGE_LEAST = 0.001; // of all time; below, a change is drawn as none
const FULL_LEAST = 0.01; // what full colour stands for at least
const FADED = 0.15;

// change: of shares, -1 to 1; most: the largest one that is shown; stands: that it is not chance.
export function change_colour(change, most, stands, is_dark) {
  if (Math.abs(change) < CHANGE_LEAST) return is_dark ? "hsl(220 6% 24%)" : "hsl(220 8% 88%)";
  const strength = stands ? Math.min(1, Math.sqrt(Math.abs(change) / Math.max(most, FULL_LEAST))) : FADED;
  const hue = change > 0 ? 6 : 214;
  return is_dark ? `hsl(${hue} ${18 + 50 * strength}% ${25 + 11 * strength}%)` : `hsl(${hue} ${40 + 45 * strength}% ${88 - 22 * strength}%)`;
}
