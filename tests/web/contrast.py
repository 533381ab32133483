# SPDX-License-Identifier: BSD-2-Clause
"""The contrast of all text that a page shows, as WCAG 2 computes it (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)."""

CONTRAST_MIN = 4.5  # of text, by success criterion 1.4.3

# [ratio, text, color, background] of the worst, and how many texts were seen. A label in a picture lies on the
# rectangle of its group, or on that of the whole picture.
WORST = """
const parse = (text) => { const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number); return { r, g, b, a: a ?? 1 }; };
const over = (top, under) => { const mix = (k) => top[k] * top.a + under[k] * (1 - top.a); return { r: mix("r"), g: mix("g"), b: mix("b"), a: 1 }; };
const luminance = ({ r, g, b }) => {
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
};
const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? { r: 18, g: 18, b: 18, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
const ground = (element) => {
  const layers = [];
  for (let at = element; at !== null; at = at.parentElement) {
    const rect = at instanceof SVGGElement ? at.querySelector(":scope > rect") : at instanceof SVGSVGElement ? at.querySelector(":scope > rect[width='100%']") : null;
    const style = getComputedStyle(rect ?? at);
    const layer = parse(rect === null ? style.backgroundColor : style.fill);
    if (rect !== null) layer.a *= Number(style.fillOpacity);
    layers.push(layer);
    if (layer.a === 1) break;
  }
  return layers.reduceRight((under, layer) => over(layer, under), canvas);
};
const faded = (element) => { let all = 1; for (let at = element; at !== null; at = at.parentElement) all *= Number(getComputedStyle(at).opacity); return all; };
const seen = [];
const take = (element, text, colour) => {
  const box = element.getBoundingClientRect();
  if (text.trim() === "" || box.width < 2 || box.height < 2) return;
  const under = ground(element);
  const top = parse(colour);
  top.a *= faded(element);
  seen.push([ratio(over(top, under), under), text.trim().slice(0, 40), colour, JSON.stringify(under)]);
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (["SCRIPT", "STYLE", "TITLE", "title", "OPTION", "NOSCRIPT"].includes(element.tagName)) continue;
  const style = getComputedStyle(element);
  take(element, walker.currentNode.textContent, element instanceof SVGElement ? style.fill : style.color);
}
for (const input of document.querySelectorAll("input, select")) {
  const style = getComputedStyle(input);
  take(input, input.value || input.placeholder || "all", input.value || input.tagName === "SELECT" ? style.color : getComputedStyle(input, "::placeholder").color);
}
seen.sort((a, b) => a[0] - b[0]);
return [seen[0], seen.length]"""


def check(test, browser, texts_min, where):
    """All of the texts of the page, of which there are at least so many."""
    worst, count = browser.run(WORST)
    test.assertGreaterEqual(count, texts_min, where)
    test.assertGreaterEqual(worst[0], CONTRAST_MIN, f"{where}: {worst}")
    return worst[0]
