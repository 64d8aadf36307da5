// The steps of an episode from left to right: distance to the goal, actions, bumps.

class Timeline extends StepStrip {
  constructor(row, onStep) {
    super(row, row.xy.length / 2 - 1, 34, "Distance to the goal, actions and bumps by step", onStep);
  }

  draw(width) {
    this.width = width;
    const { row } = this;
    const acts = row.act || [];
    const curve = row.d ? 108 : 14;
    const strip = curve + 8;
    const height = strip + 40;
    const parts = [];
    if (row.d) parts.push(...this.curve(curve));
    const cell = (width - this.left - RIGHT) / Math.max(this.last, 1);
    for (let i = 0; i < acts.length; i += 1) {
      const action = acts[i];
      const x = this.x(i);
      parts.push(svg("rect", { x: x + (cell > 4 ? 0.5 : 0), y: strip, width: Math.max(cell - (cell > 4 ? 1 : 0), 0.6), height: 18, class: `act ${actionClass(action)}` },
        svg("title", null, `step ${i + 1}: ${EXAM.actions[action] || action}`)));
      if (cell >= 11 && action.length === 1) parts.push(svg("text", { x: x + cell / 2, y: strip + 13, class: `letter letter-${action === "?" ? "x" : action}` }, action));
    }
    this.fill([...parts, ...this.marks(strip)], strip, height);
  }

  curve(high) {
    const metres = this.row.d.map((cm) => cm / 100);
    const top = Math.max(...metres, this.row.episode.near || 0) || 1;
    const y = (value) => 16 + (high - 16) * (1 - value / top);
    const spots = metres.map((value, step) => `${this.x(step).toFixed(1)},${y(value).toFixed(1)}`);
    const parts = this.ticks(top, y, "m", 1);
    if (this.row.episode.near) parts.push(svg("rect", { x: this.left, y: y(this.row.episode.near), width: this.width - this.left - RIGHT, height: y(0) - y(this.row.episode.near), class: "zone" }, svg("title", null, "within the success threshold")));
    parts.push(svg("polyline", { points: spots.join(" "), class: "curve" }));
    return parts;
  }

  moveTo(step) {
    this.moveCursor(step);
    const { row } = this;
    const said = [`step ${step} of ${this.last}`, step ? EXAM.actions[(row.act || [])[step - 1]] || (row.act || [])[step - 1] : "start"];
    if (row.d) said.push(`${number(row.d[step] / 100, 1)} m from the goal (${row.by})`);
    if (row.bump.includes(step)) said.push("bump");
    this.say(said);
  }
}
