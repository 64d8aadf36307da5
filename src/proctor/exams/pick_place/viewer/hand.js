// The path of the hand from above and from the side, coloured by phase, with the object, the base and the tabletop.

const HAND_MARGIN_M = 0.12;

class HandViews {
  constructor(row) {
    this.row = row;
    this.hand = pathOf(row.hand, 3, 1000);
    this.thing = pathOf(row.thing, 3, 1000);
    this.base = pathOf(row.base, 2, 1000);
    if (!this.hand.length) {
      this.node = el("div.map-side", null, el("p.dim", null, "No paths were kept: the episode never began."));
      return;
    }
    const [ox, oy, dx, dy] = row.episode.side;
    const along = ([x, y]) => (x - ox) * dx + (y - oy) * dy;
    this.views = [
      new HandView(this, "top", "From above", (p) => [p[0], p[1]], "top"),
      new HandView(this, "side", "From the side", (p) => [along(p), p[2]], "side"),
    ];
    this.node = el("div.map-side", null, ...this.views.map((view) => view.figure), handKey(row));
  }

  moveTo(step) {
    for (const view of this.views || []) view.moveTo(step);
  }
}

/** One of the two projections. `flat` turns a point of the world into right and up. */
class HandView {
  constructor(paths, name, title, flat, outline) {
    Object.assign(this, { paths, name, flat, outline });
    const { row } = paths;
    this.svg = svg("svg", { class: `map hand-${name}`, role: "img", "aria-label": `${title}: path of the hand by phase, path of the object, target` });
    const note = name === "top" ? "x to the right, y up" : row.episode.sideways;
    this.figure = el("figure.view", null, el("figcaption", null, el("b", null, title), el("span.dim", null, ` · ${note}`)), this.svg);
    this.draw();
  }

  /** Return the shown part of the plane: all paths and the target with some room around them. */
  box(points) {
    const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
    const box = [Math.min(...xs) - HAND_MARGIN_M, Math.min(...ys) - HAND_MARGIN_M, Math.max(...xs) + HAND_MARGIN_M, Math.max(...ys) + HAND_MARGIN_M];
    const short = [(box[3] - box[1]) * 1.5, (box[2] - box[0]) * 0.42];
    for (const axis of [0, 1]) {
      const lack = Math.max(0, short[axis] - (box[axis + 2] - box[axis])) / 2;
      box[axis] -= lack;
      box[axis + 2] += lack;
    }
    return box;
  }

  draw() {
    const { row, hand, thing, base } = this.paths;
    const { episode } = row;
    const flat = (points) => points.map(this.flat);
    const [hands, things] = [flat(hand), flat(thing)];
    const goal = episode.goal && episode.goal.map((mm) => mm / 1000);
    const shown = [...hands, ...things, ...(goal ? [this.flat(goal)] : []), ...(this.name === "top" ? base.flatMap(([x, y]) => [[x - 0.12, y - 0.12], [x + 0.12, y + 0.12]]) : [])];
    const [x0, y0, x1, y1] = this.box(shown);
    this.svg.setAttribute("viewBox", `${x0} ${-y1} ${x1 - x0} ${y1 - y0}`);
    const u = Math.max(x1 - x0, (y1 - y0) * 1.5) / 100;
    this.unit = u;
    const layers = [svg("rect", { x: x0 - 100, y: -y1 - 100, width: x1 - x0 + 200, height: y1 - y0 + 200, class: "paper" })];
    if (this.name === "side") layers.push(svg("rect", { x: x0 - 100, y: 0, width: x1 - x0 + 200, height: 100, class: "floor" }));
    for (const shape of episode.shapes || []) layers.push(this.shape(shape));
    if (goal) layers.push(...this.goal(this.flat(goal)));
    if (this.name === "top") layers.push(line(base, "base-path"));
    layers.push(line(things, "thing-path casing"), line(things, "thing-path"));
    layers.push(line(hands, "casing"), ...byPhase(hands, row.phase));
    layers.push(svg("circle", { cx: hands[0][0], cy: -hands[0][1], r: 1.1 * u, class: "start" }, svg("title", null, "the hand at the start")));
    for (const step of row.bump) if (hands[step]) layers.push(cross(hands[step], 0.7 * u, step));
    for (const [step, label] of row.moments || []) layers.push(this.moment(hands[step], step, label));
    this.arm = svg("line", { class: "arm" });
    this.robot = svg("g", { class: "base" }, svg("rect", { x: -0.17, y: -0.165, width: 0.34, height: 0.33, rx: 0.05 }), svg("path", { d: "M0.15,0 L0.05,-0.07 L0.05,0.07 Z" }));
    this.carried = svg("rect", { x: -1.1 * u, y: -1.1 * u, width: 2.2 * u, height: 2.2 * u, rx: 0.4 * u, class: "carried" }, svg("title", null, "the object"));
    this.fingers = svg("circle", { r: 1.5 * u, class: "fingers" }, svg("title", null, "the hand"));
    if (this.name === "top") layers.push(this.robot, this.arm);
    layers.push(this.carried, this.fingers, this.scaleBar(x0, y0, x1));
    this.svg.replaceChildren(...layers);
    this.flats = { hands, things };
    this.moveTo(this.step ?? 0);
  }

  shape(shape) {
    const flat = shape[this.outline];
    const corners = [];
    for (let i = 0; i < flat.length; i += 2) corners.push(`${flat[i] / 1000},${-flat[i + 1] / 1000}`);
    const into = shape.name === this.paths.row.episode.into;
    return svg("polygon", { points: corners.join(" "), class: `shape${shape.big ? " big" : ""}${into ? " into" : ""}`, css: { fill: onPaper(shape.rgb, shape.big ? 0.35 : 0.6) } }, svg("title", null, shape.name));
  }

  goal([x, y]) {
    const { episode } = this.paths.row;
    const marks = [];
    if (episode.target === "position" && this.name === "top") marks.push(svg("circle", { cx: x, cy: -y, r: episode.zone, class: "goal-around" }, svg("title", null, "the zone of the target")));
    if (episode.target === "position") marks.push(svg("circle", { cx: x, cy: -y, r: episode.near, class: "goal-zone" }, svg("title", null, `the target, within ${+(100 * episode.near).toFixed(1)} cm`)));
    return [...marks, svg("path", { d: star(x, -y, 1.5 * this.unit), class: "goal" }, svg("title", null, "the target"))];
  }

  moment([x, y], step, label) {
    if (!label || label === "start") return svg("g");
    const u = this.unit;
    const isBad = label.includes("went wrong");
    // From above, reaching, grasping and lifting are at one place: only the side view has room for words.
    const word = this.name === "side" && svg("text", { x: x + 1.5 * u, y: -y + (label === "reach" ? 2.9 : -1.3) * u, "font-size": 2.1 * u, "stroke-width": 0.7 * u }, label);
    return svg("g", { class: isBad ? "moment bad" : "moment" }, svg("circle", { cx: x, cy: -y, r: 0.85 * u }), ...[word].filter(Boolean), svg("title", null, `${label}, step ${step}`));
  }

  scaleBar(x0, y0, x1) {
    const length = tickStep(x1 - x0, 7);
    const u = this.unit;
    const [x, y] = [x0 + 2.5 * u, -y0 - 2.5 * u];
    const said = length < 1 ? `${+(100 * length).toFixed(1)} cm` : `${length} m`;
    return svg("g", { class: "scale-bar" }, svg("rect", { x: x - u, y: y - 3.9 * u, width: length + 2 * u, height: 4.9 * u, rx: u }), svg("path", { d: `M${x},${y - u} v${u} h${length} v${-u}` }),
      svg("text", { x: x + length / 2, y: y - 1.3 * u, "font-size": 2.2 * u }, said));
  }

  moveTo(step) {
    this.step = step;
    const { row, base } = this.paths;
    const last = this.flats.hands.length - 1;
    const [hx, hy] = this.flats.hands[Math.min(step, last)];
    const [tx, ty] = this.flats.things[Math.min(step, last)];
    this.fingers.setAttribute("transform", `translate(${hx},${-hy})`);
    this.fingers.classList.toggle("holds", row.held[step] === "1");
    this.carried.setAttribute("transform", `translate(${tx},${-ty})`);
    const [bx, by] = base[Math.min(step, base.length - 1)];
    this.robot.setAttribute("transform", `translate(${bx},${-by}) rotate(${-(row.yaw[step] ?? 0)})`);
    for (const [name, value] of Object.entries({ x1: bx, y1: -by, x2: hx, y2: -hy })) this.arm.setAttribute(name, value);
  }
}

/** Return a colour as it looks on paper when it is thin: what stands in front still hides what is behind. */
const onPaper = (rgb, share) => `rgb(${rgb.map((value) => Math.round(250 + share * (value - 250))).join(",")})`;

/** Return a path in pieces, one for each stretch of a phase. */
function byPhase(points, phases) {
  const pieces = [];
  for (let from = 0; from < points.length - 1;) {
    let to = from + 1;
    while (to < points.length - 1 && phases[to + 1] === phases[from + 1]) to += 1;
    pieces.push(line(points.slice(from, to + 1), `driven phase-${phases[to]}`));
    from = to;
  }
  return pieces;
}

function handKey(row) {
  const used = [...Object.entries(PHASES).map(([letter, name]) => [`phase-${letter}`, `hand: ${name}`, row.phase.includes(letter)]),
    ["k-thing", row.episode.object ? `the object (${row.episode.object})` : "the object", true], ["k-base", "the base", true], ["k-goal", "target", Boolean(row.episode.goal)],
    ["k-bump", "bump", row.bump.length > 0]];
  return el("ul.map-key", { "aria-label": "Legend" }, ...used.filter(([, , there]) => there).map(([kind, text]) => el("li", null, el(`i.${kind}`), text)));
}
