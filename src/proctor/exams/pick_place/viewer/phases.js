// The steps of an episode from left to right: opening of the gripper, whether it holds the object, phases, bumps.

class PhaseTimeline extends StepStrip {
  constructor(row, onStep) {
    super(row, Math.max((row.phase || "").length - 1, 0), 46, "Opening of the gripper, hold, phases and bumps by step", onStep);
    this.thing = pathOf(row.thing, 3, 1000);
  }

  draw(width) {
    this.width = width;
    const { row } = this;
    const [high, strip] = [96, 128];
    const parts = row.grip ? [...this.curve(high), ...this.runs(row.held, (value) => value === "1" && "held", high + 13, 8, () => "held by both fingers"),
      ...this.runs(row.phase, (letter) => `act phase-${letter}`, strip, 18, (letter) => PHASES[letter])] : [];
    for (const [from, to, letter] of stretches(row.phase || "")) {
      const wide = this.x(to) - this.x(from);
      if (wide > 44) parts.push(svg("text", { x: this.x(from) + wide / 2, y: strip + 13, class: "letter" }, PHASES[letter]));
    }
    parts.push(svg("text", { x: this.left - 5, y: high + 20, class: "tick", "text-anchor": "end" }, "held"), svg("text", { x: this.left - 5, y: strip + 13, class: "tick", "text-anchor": "end" }, "phase"));
    this.fill([...parts, ...this.marks(strip)], strip, strip + 32);
  }

  /** Return the opening of the gripper as a curve, in millimetres. */
  curve(high) {
    const openings = this.row.grip.map((value) => value / 10);
    const top = Math.max(...openings, 1) * 1.05;
    const y = (value) => 16 + (high - 16) * (1 - value / top);
    const parts = this.ticks(top, y, "mm", 1);
    parts.push(svg("polyline", { points: openings.map((value, step) => `${this.x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" "), class: "curve" }, svg("title", null, "opening of the gripper")));
    parts.push(svg("text", { x: this.left + 4, y: 12, class: "tick" }, "gripper opening"));
    return parts;
  }

  /** Return a strip of rectangles, one for each stretch of equal letters that has a class. */
  runs(letters, kindOf, y, height, title) {
    return stretches(letters).filter(([, , letter]) => kindOf(letter)).map(([from, to, letter]) => svg("rect", { x: this.x(from), y, width: Math.max(this.x(to) - this.x(from), 1), height, class: kindOf(letter) },
      svg("title", null, `${title(letter)}, steps ${from + 1} to ${to}`)));
  }

  moveTo(step) {
    this.moveCursor(step);
    const { row } = this;
    const { goal } = row.episode;
    const said = [`step ${step} of ${this.last}`, seconds(row, step), PHASES[(row.phase || "")[step]]];
    if (row.grip) said.push(`gripper ${number(row.grip[step] / 10, 1)} mm`, row.held[step] === "1" && "held");
    if (goal && this.thing[step]) said.push(`object ${number(100 * Math.hypot(...this.thing[step].map((value, axis) => value - goal[axis] / 1000)), 1)} cm from the middle of the target`);
    if (row.bump.includes(step)) said.push("bump");
    this.say(said);
  }
}

/** Return [from, to, letter] of each stretch of steps that ended in the same letter; step k leads from k - 1 to k. */
function stretches(letters) {
  const found = [];
  for (let step = 1; step < letters.length; step += 1) {
    const before = found[found.length - 1];
    if (before && before[2] === letters[step]) before[1] = step;
    else found.push([step - 1, step, letters[step]]);
  }
  return found;
}
