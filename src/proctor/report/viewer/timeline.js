// The steps of an episode from left to right: distance to the goal, actions, bumps.

const LEFT = 34;
const RIGHT = 10;

class Timeline {
  constructor(row, onStep) {
    this.row = row;
    this.last = row.xy.length / 2 - 1;
    this.svg = svg("svg", { class: "timeline", role: "img", "aria-label": "Distance to the goal, actions and bumps by step" });
    this.range = el("input", { type: "range", min: 0, max: this.last, value: 0, step: 1, "aria-label": "Step", oninput: () => onStep(Number(this.range.value)) });
    this.readout = el("output.readout", { "aria-live": "off" });
    this.svg.addEventListener("pointerdown", (event) => this.follow(event, onStep));
    this.svg.addEventListener("pointermove", (event) => event.buttons && this.follow(event, onStep));
  }

  follow(event, onStep) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    onStep(clamp(Math.round(share * this.last), 0, this.last));
  }

  x(step) {
    return LEFT + ((this.width - LEFT - RIGHT) * step) / Math.max(this.last, 1);
  }

  draw(width) {
    this.width = width;
    const { row } = this;
    const curve = row.d ? 108 : 14;
    const strip = curve + 8;
    const height = strip + 40;
    const parts = [];
    if (row.d) parts.push(...this.curve(curve));
    const cell = (width - LEFT - RIGHT) / Math.max(this.last, 1);
    for (let i = 0; i < row.act.length; i += 1) {
      const action = row.act[i];
      const x = this.x(i);
      parts.push(svg("rect", { x: x + (cell > 4 ? 0.5 : 0), y: strip, width: Math.max(cell - (cell > 4 ? 1 : 0), 0.6), height: 18, class: `act act-${action === "?" ? "x" : action}` },
        svg("title", null, `step ${i + 1}: ${ACTIONS[action]}`)));
      if (cell >= 11) parts.push(svg("text", { x: x + cell / 2, y: strip + 13, class: `letter letter-${action === "?" ? "x" : action}` }, action));
    }
    for (const step of row.bump) {
      const x = this.x(step - 0.5);
      parts.push(svg("path", { d: `M${x - 3},${strip + 22} l6,6 m0,-6 l-6,6`, class: "bump" }, svg("title", null, `bump at step ${step}`)));
    }
    if (row.kind !== "success") parts.push(svg("line", { x1: this.x(row.step), x2: this.x(row.step), y1: 2, y2: strip + 20, class: "wrong-line" }), svg("text", { x: this.x(row.step), y: 11, class: "wrong-text", dx: row.step > this.last / 2 ? -5 : 5, "text-anchor": row.step > this.last / 2 ? "end" : "start" }, "went wrong"));
    this.cursor = svg("line", { y1: 0, y2: strip + 30, class: "cursor" });
    parts.push(this.cursor);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(...parts);
    this.moveTo(this.step ?? 0);
  }

  curve(high) {
    const metres = this.row.d.map((cm) => cm / 100);
    const top = Math.max(...metres, this.row.episode.near || 0) || 1;
    const y = (value) => 16 + (high - 16) * (1 - value / top);
    const spots = metres.map((value, step) => `${this.x(step).toFixed(1)},${y(value).toFixed(1)}`);
    const ticks = tickStep(top, 3);
    const parts = [];
    for (let value = 0; value <= top; value += ticks) {
      parts.push(svg("line", { x1: LEFT, x2: this.width - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
        svg("text", { x: LEFT - 5, y: y(value) + 3.5, class: "tick", "text-anchor": "end" }, value ? `${+value.toFixed(1)} m` : "0"));
    }
    if (this.row.episode.near) parts.push(svg("rect", { x: LEFT, y: y(this.row.episode.near), width: this.width - LEFT - RIGHT, height: y(0) - y(this.row.episode.near), class: "zone" }, svg("title", null, "within the success threshold")));
    parts.push(svg("polyline", { points: spots.join(" "), class: "curve" }));
    return parts;
  }

  moveTo(step) {
    this.step = step;
    this.range.value = step;
    const x = this.x(step);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const { row } = this;
    const said = [`step ${step} of ${this.last}`, step ? ACTIONS[row.act[step - 1]] || "" : "start"];
    if (row.d) said.push(`${number(row.d[step] / 100, 1)} m from the goal`);
    if (row.bump.includes(step)) said.push("bump");
    this.readout.textContent = said.filter(Boolean).join(" · ");
  }
}
