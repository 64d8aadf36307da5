// The map of an episode: plan, reference, driven path, and the robot at a step. Metres, +y up.

const PROGRESS = [[43, 58, 160], [125, 44, 160], [200, 50, 110], [233, 110, 45], [240, 165, 30]];

/** Return the colour of a share of the path: dark blue at the start, amber at the end. */
function progressColor(share) {
  const at = clamp(share, 0, 1) * (PROGRESS.length - 1);
  const index = Math.min(Math.floor(at), PROGRESS.length - 2);
  const mix = PROGRESS[index].map((v, i) => Math.round(v + (at - index) * (PROGRESS[index + 1][i] - v)));
  return `rgb(${mix.join(",")})`;
}

class EpisodeMap {
  constructor(row, others) {
    this.row = row;
    this.others = others;
    this.points = pathOf(row.xy, 2, 100);
    this.whole = false;
    this.svg = svg("svg", { class: "map", role: "img", "aria-label": `Map of ${row.episode.id}: reference path, driven path, goal` });
    this.draw();
  }

  /** Return the shown part of the world: the paths with some room around them, or the whole plan. */
  view() {
    const plan = planOf(this.row);
    const points = [...this.points, ...pairs(this.row.episode.ref), ...pairs(this.row.episode.goal), ...this.others.flatMap((other) => pathOf(other.xy, 2, 100))];
    const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
    let box = [Math.min(...xs) - 1.2, Math.min(...ys) - 1.2, Math.max(...xs) + 1.2, Math.max(...ys) + 1.2];
    if (this.whole && plan) box = box.map((v, i) => (i < 2 ? Math.min(v, plan.box[i]) : Math.max(v, plan.box[i])));
    const short = 0.7 * Math.max(box[2] - box[0], box[3] - box[1]);
    for (const axis of [0, 1]) {
      const lack = Math.max(0, short - (box[axis + 2] - box[axis])) / 2;
      box[axis] -= lack;
      box[axis + 2] += lack;
    }
    return box;
  }

  draw() {
    const { row, points } = this;
    const [x0, y0, x1, y1] = this.view();
    this.svg.setAttribute("viewBox", `${x0} ${-y1} ${x1 - x0} ${y1 - y0}`);
    this.unit = Math.max(x1 - x0, y1 - y0) / 100;
    const u = this.unit;
    const plan = planOf(row);
    const layers = [svg("rect", { x: x0 - 100, y: -y1 - 100, width: x1 - x0 + 200, height: y1 - y0 + 200, class: "paper" })];
    if (plan) {
      const [a, b, c, d] = plan.box;
      layers.push(svg("image", { href: plan.image, x: a, y: -d, width: c - a, height: d - b, class: "plan", preserveAspectRatio: "none" }));
    }
    const [goal] = pairs(row.episode.goal);
    if (goal) {
      if (row.episode.near) layers.push(svg("circle", { cx: goal[0], cy: -goal[1], r: row.episode.near, class: "goal-zone" }, svg("title", null, `goal, within ${row.episode.near} m`)));
      layers.push(svg("path", { d: star(goal[0], -goal[1], 1.9 * u), class: "goal" }));
    }
    if (row.episode.ref) layers.push(line(pairs(row.episode.ref), "reference"));
    for (const other of this.others) layers.push(line(pathOf(other.xy, 2, 100), "other casing"), svg("g", { css: { stroke: other.run.color } }, line(pathOf(other.xy, 2, 100), "other")));
    layers.push(line(points, "casing"), ...colouredPieces(points));
    for (const [name, x, y, height] of (plan && plan.rooms) || []) layers.push(svg("text", { x, y: -y, "font-size": Math.max(height, 1.9 * u), "stroke-width": 0.5 * u, class: "room" }, name));
    layers.push(svg("circle", { cx: points[0][0], cy: -points[0][1], r: 1.3 * u, class: "start" }, svg("title", null, "start")));
    for (const step of row.bump) if (points[step]) layers.push(cross(points[step], 0.75 * u, step));
    if (row.kind !== "success" && points[row.step]) {
      const [x, y] = points[row.step];
      layers.push(svg("g", { class: "wrong" }, svg("title", null, row.say), svg("circle", { cx: x, cy: -y, r: 2.6 * u }),
        svg("path", { d: `M${x + 1.9 * u},${-y - 1.9 * u} l${1.6 * u},${-1.6 * u}` }),
        svg("circle", { cx: x + 4.8 * u, cy: -y - 4.8 * u, r: 1.9 * u, class: "flag" }),
        svg("text", { x: x + 4.8 * u, y: -y - 4.8 * u, "font-size": 2.9 * u }, "!")));
    }
    this.robot = svg("path", { d: `M${2.4 * u},0 L${-1.6 * u},${-1.5 * u} L${-0.8 * u},0 L${-1.6 * u},${1.5 * u} Z`, class: "robot" });
    layers.push(this.robot, ...this.end(points[points.length - 1]), this.scaleBar([x0, y0, x1, y1]));
    this.svg.replaceChildren(...layers);
    this.moveTo(this.step ?? 0);
  }

  /** Return a hollow square, so that the robot, or a bump, is seen where it ended. */
  end([x, y]) {
    const half = 2.3 * this.unit;
    const place = { x: x - half, y: -y - half, width: 2 * half, height: 2 * half };
    return [svg("rect", { ...place, class: "end casing" }), svg("rect", { ...place, class: "end" }, svg("title", null, "end"))];
  }

  scaleBar([x0, y0, x1]) {
    const length = tickStep(x1 - x0, 6);
    const u = this.unit;
    const [x, y] = [x0 + 3 * u, -y0 - 3 * u];
    return svg("g", { class: "scale-bar" }, svg("rect", { x: x - u, y: y - 4.6 * u, width: length + 2 * u, height: 5.6 * u, rx: u }), svg("path", { d: `M${x},${y - u} v${u} h${length} v${-u}` }),
      svg("text", { x: x + length / 2, y: y - 1.4 * u, "font-size": 2.6 * u }, `${length} m`));
  }

  moveTo(step) {
    this.step = step;
    const [x, y] = this.points[Math.min(step, this.points.length - 1)];
    this.robot.setAttribute("transform", `translate(${x},${-y}) rotate(${-(this.row.yaw[step] ?? 0)})`);
  }
}

/** Return the driven path in pieces, coloured by how much of the episode was over. */
function colouredPieces(points) {
  const pieces = Math.min(40, points.length - 1);
  return Array.from({ length: Math.max(pieces, 0) }, (_, i) => {
    const [from, to] = [i, i + 1].map((j) => Math.round((j * (points.length - 1)) / pieces));
    const piece = line(points.slice(from, to + 1), "driven");
    piece.style.stroke = progressColor((from + to) / 2 / (points.length - 1));
    return piece;
  });
}

function mapTools(map, siblings) {
  const zoom = el("button.quiet", { type: "button", "aria-pressed": "false", onclick: () => {
    map.whole = !map.whole;
    zoom.setAttribute("aria-pressed", String(map.whole));
    map.draw();
  } }, "Whole plan");
  const boxes = siblings.map((other) => el("label.key", { css: { "--c": other.run.color } }, el("input", { type: "checkbox", onchange: (event) => {
    map.others = event.target.checked ? [...map.others, other] : map.others.filter((row) => row !== other);
    map.draw();
  } }), ` ${other.run.name}`));
  const legend = el("ul.map-key", { "aria-label": "Legend" }, ...[["k-ref", "reference", Boolean(map.row.episode.ref)], ["k-driven", "driven, start to end", true], ["k-start", "start", true], ["k-end", "end", true],
    ["k-goal", map.row.episode.near ? `goal, within ${map.row.episode.near} m` : "goal", Boolean(map.row.episode.goal)], ["k-bump", "bump", map.row.bump.length > 0], ["k-wrong", "went wrong", map.row.kind !== "success"]]
    .filter(([, , there]) => there).map(([kind, text]) => el("li", null, el(`i.${kind}`), text)));
  const others = boxes.length > 0 && el("span.others", null, "Also show:", ...boxes);
  return el("div.map-tools", null, legend, el("div.row", null, planOf(map.row) && zoom, others));
}

/** Return the plan that an episode is drawn on, if there is one. */
const planOf = (row) => (DATA.plans || [])[row.episode.plan];

/** Return points of which x and y were given in turn, in centimetres. */
const pairs = (flat) => (flat || []).reduce((all, v, i) => (i % 2 ? (all[all.length - 1].push(v / 100), all) : [...all, [v / 100]]), []);
