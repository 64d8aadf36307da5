// The data of the page, and what an exam may change of it: EXAM suits any exam, and the exam's own scripts fill it in.

const DATA = JSON.parse($("data").textContent);
const METRICS = Object.fromEntries(DATA.metrics.map((metric) => [metric.name, metric]));

/** Return a value of a metric as people read it, with its unit. */
function inUnit(metric, value) {
  const said = number(metric.scale * value, metric.digits);
  return metric.unit === "%" ? `${said}%` : metric.unit ? `${said} ${metric.unit}` : said;
}

/** Return a column of the table of episodes for a metric; none if no run has it. */
const metricColumns = (...names) => names.filter((name) => METRICS[name]).map((name) => {
  const { heading, scale, digits } = METRICS[name];
  return [heading, (row) => scale * (row.m[name] ?? NaN), (row, value) => number(value, digits)];
});

/** Return the name of a metric, and its value in an episode. */
const metricFact = (row, name, title = METRICS[name] && METRICS[name].title) =>
  [title, METRICS[name] && row.m[name] !== undefined && inUnit(METRICS[name], row.m[name])];

/** Return a histogram of a metric for each run. */
const metricHistogram = (name, title = METRICS[name] && METRICS[name].title) =>
  METRICS[name] && histograms(title, METRICS[name].unit, (row) => METRICS[name].scale * (row.m[name] ?? NaN));

/** Return the points of a path in metres: `steps` is the first point, then from each point to the next. */
function pathOf(steps, size, perMetre) {
  const points = [];
  const at = new Array(size).fill(0);
  for (let i = 0; i < (steps || []).length; i += size) {
    for (let axis = 0; axis < size; axis += 1) at[axis] += steps[i + axis];
    points.push(at.map((value) => value / perMetre));
  }
  return points;
}

const FAULTS = {
  agent_fault: ["Agent fault", "the agent raised an error, did not answer as it has to, or chose an action that does not exist", "!"],
  evaluator_fault: ["Evaluator fault", "the evaluator failed; not scored", "?"],
  unavailable: ["Unavailable", "the agent was not there when the episode began; not scored", "∅"],
  unknown_fault: ["Unknown fault", "its process was killed from outside; not scored", "¿"],
};

/** Metrics that every episode shows in another form: by its mark, its steps and its bumps. */
const TOLD_ANYHOW = ["success", "steps", "collisions"];

const EXAM = {
  /** How episodes end, in the order of the page: a name for people, what it means, a mark. */
  kinds: { success: ["Success", "", "✓"] },
  kindsNote: "Choose a number to see its episodes.",
  privileged: "is shown the truth",
  scoresNote: () => `Definitions of ${DATA.definition || DATA.task}.`,
  /** What is said of a metric where its definition does not say all: functions by name. */
  meanings: {},
  rowsNote: () => "",
  spreads: () => [...DATA.metrics.filter((metric) => metric.hasCard && !metric.isRate && metric.name !== "steps").slice(0, 2).map((metric) => metricHistogram(metric.name)),
    histograms("Steps", "steps", (row) => row.steps)],
  /** Draws a section of its own before the classes. */
  drawStages() {},
  groups: {
    split: (row) => row.episode.split,
    language: (row) => row.episode.language,
    scene: (row) => row.episode.scene,
  },
  /** Values of groups that have an order. */
  order: [],
  /** The groups by which success is shown; all if missing. */
  by: null,
  filters: [["scene", "Scene", "all"]],
  place: ["Scene", (row) => row.episode.scene, (row, value) => el("span.one-line", { title: value }, value)],
  /** The columns of numbers in the table of episodes. */
  numbers: () => [["Steps", (row) => row.steps, (row, value) => value], ["Bumps", (row) => row.bump.length, (row, value) => value],
    ...metricColumns(...DATA.metrics.filter((metric) => metric.hasCard && !TOLD_ANYHOW.includes(metric.name)).slice(0, 5).map((metric) => metric.name))],
  /** Return names and values of what is told of an episode. */
  factsOf: (row) => [["scene", row.episode.scene], ["policy", row.run.name + (row.run.privileged ? " ★" : "")], ["split", row.episode.split],
    ["steps", stepsText(row)], ["bumps", row.bump.length], ...DATA.metrics.filter((metric) => !TOLD_ANYHOW.includes(metric.name)).map((metric) => metricFact(row, metric.name))],
  framed: { recorded: "Recorded during the run.", replayed: "Drawn again by repeating the recorded actions; the path is the same." },
  filmBeside: false,
  /** What the letters, or words, of `act` stand for. */
  actions: {},
  /** Return the picture of an episode's path: an object with `node` and `moveTo`. */
  pictureOf(row, siblings) {
    if (row.xy.length < 4) return { node: el("div.map-side", null, el("p.dim", null, "No path was kept.")), moveTo() {} };
    const map = new EpisodeMap(row, []);
    map.node = el("div.map-side", null, map.svg, mapTools(map, siblings));
    return map;
  },
  timeline: (row, onStep) => new Timeline(row, onStep),
  stepsKey() {
    const words = actionWords();
    return el("ul.map-key", { "aria-label": "Actions" }, ...words.map((word) => el("li", null, el(`i.${actionClass(word)}`), (EXAM.actions[word] || word).toLowerCase())), el("li", null, el("i.k-bump"), "bump"));
  },
  frameCaption(row, step) {
    const last = row.xy.length / 2 - 1;
    return step === 0 ? "start" : step === row.step && row.kind !== "success" ? `step ${step}, went wrong` : step === last ? `step ${step}, end` : `step ${step}`;
  },
};

const stepsText = (row) => `${row.steps}${row.episode.limit ? ` of ${row.episode.limit}` : ""}`;

/** Return name, meaning and mark of how an episode ended; of a kind that nobody has described, its own words. */
function kindOf(kind) {
  const words = kind.replace(/_/g, " ");
  return EXAM.kinds[kind] || FAULTS[kind] || [words[0].toUpperCase() + words.slice(1), "", "•"];
}

/** Return the kinds that occur, those of the exam first and faults last. */
function kindsUsed() {
  const found = new Set(DATA.results.map((result) => result.kind));
  const order = [...Object.keys(EXAM.kinds), ...[...found].filter((kind) => !FAULTS[kind]).sort(), ...Object.keys(FAULTS)];
  return [...new Set(order)].filter((kind) => found.has(kind));
}

const ACTION_CLASSES = ["act-F", "act-L", "act-R", "act-S"];
let coloured = null;

/** Return the actions that have a colour: those that the exam names, or all, if these are few. */
function actionWords() {
  if (!coloured) {
    const found = [...new Set(DATA.results.flatMap((result) => [...(result.act || [])]))].sort();
    coloured = Object.keys(EXAM.actions).length ? Object.keys(EXAM.actions) : found.length > ACTION_CLASSES.length ? [] : found;
  }
  return coloured;
}

const actionClass = (word) => ACTION_CLASSES[actionWords().indexOf(word)] || (word === "?" ? "act-x" : "act-o");
