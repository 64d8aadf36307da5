// Making elements. Texts go in as text, never as HTML: instructions and messages come from anywhere.

const SVG = "http://www.w3.org/2000/svg";

const $ = (id) => document.getElementById(id);

/** Make an element: el("p.dim", {title: "..."}, "text", child). Handlers are given as onclick etc. */
function el(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  return fill(node, attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [key, v] of Object.entries(value)) node.style.setProperty(key, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const number = (value, digits) =>
  value === null || value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits);
const percent = (share) => `${Math.round(100 * share)}%`;
const milliseconds = (ms) => number(ms, ms >= 10 ? 0 : ms >= 1 ? 1 : 2);
/** Return a text in which no number is parted from its unit. */
const unbroken = (text) => text.replace(/(\d) (?=(?:m|cm|mm|s|ms|%)(?![a-z]))/g, "$1\u00a0");
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Return a round distance between ticks so that there are about `wanted` of them. */
function tickStep(span, wanted) {
  const rough = Math.max(span, 1e-9) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) || 10);
}
