// What all strips of steps have in common: a slider, a line at the present step, and dragging along them.

class StepStrip {
  constructor(row, last, left, label, onStep) {
    Object.assign(this, { row, last, left });
    this.svg = svg("svg", { class: "timeline", role: "img", "aria-label": label });
    this.range = el("input", { type: "range", min: 0, max: last, value: 0, step: 1, "aria-label": "Step", oninput: () => onStep(Number(this.range.value)) });
    this.readout = el("output.readout", { "aria-live": "off" });
    this.svg.addEventListener("pointerdown", (event) => this.follow(event, onStep));
    this.svg.addEventListener("pointermove", (event) => event.buttons && this.follow(event, onStep));
  }

  follow(event, onStep) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - this.left) / (box.width - this.left - RIGHT);
    onStep(clamp(Math.round(share * this.last), 0, this.last));
  }

  x(step) {
    return this.left + ((this.width - this.left - RIGHT) * step) / Math.max(this.last, 1);
  }

  /** Return crosses for the bumps, and a line with a word where things went wrong. */
  marks(strip) {
    const { row, last } = this;
    const parts = row.bump.map((step) => {
      const x = this.x(step - 0.5);
      return svg("path", { d: `M${x - 3},${strip + 22} l6,6 m0,-6 l-6,6`, class: "bump" }, svg("title", null, `bump at step ${step}`));
    });
    if (row.kind === "success") return parts;
    const x = this.x(row.step);
    const isLate = row.step > last / 2;
    return [...parts, svg("line", { x1: x, x2: x, y1: 2, y2: strip + 20, class: "wrong-line" }),
      svg("text", { x, y: 11, class: "wrong-text", dx: isLate ? -5 : 5, "text-anchor": isLate ? "end" : "start" }, "went wrong")];
  }

  /** Put the parts in and the line of the present step on top of them. */
  fill(parts, strip, height) {
    this.cursor = svg("line", { y1: 0, y2: strip + 30, class: "cursor" });
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(...parts, this.cursor);
    this.moveTo(this.step ?? 0);
  }

  /** Return lines across with their values at the left. */
  ticks(top, y, unit, digits) {
    const every = tickStep(top, 3);
    const parts = [];
    for (let value = 0; value <= top; value += every) {
      parts.push(svg("line", { x1: this.left, x2: this.width - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
        svg("text", { x: this.left - 5, y: y(value) + 3.5, class: "tick", "text-anchor": "end" }, value ? `${+value.toFixed(digits)} ${unit}` : "0"));
    }
    return parts;
  }

  /** Show what is known of a step: parts stay whole, lines break between them. */
  say(parts) {
    const shown = parts.filter(Boolean).map((part) => el("span.part", null, part));
    this.readout.replaceChildren(...shown.flatMap((part, index) => (index ? [" · ", part] : [part])));
  }

  moveCursor(step) {
    this.step = step;
    this.range.value = step;
    this.cursor.setAttribute("x1", this.x(step));
    this.cursor.setAttribute("x2", this.x(step));
  }
}

const RIGHT = 10;
