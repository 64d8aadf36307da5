// Navigation: how episodes end, what is measured, what is listed and filtered by.

const KINDS = {
  success: ["Success", "said STOP within the threshold"],
  passed_goal: ["Passed the goal", "was within the threshold, but did not say STOP there"],
  stopped_early: ["Stopped early", "said STOP on the way, within 1 m of the reference path but short of the goal"],
  wrong_first_turn: ["Wrong first turn", "left the reference path for good at its first turn or before"],
  stopped_far: ["Stopped elsewhere", "said STOP at a wrong place"],
  looped: ["Looped", "drove 2 m or more over ground it had covered before, in the same direction"],
  stuck: ["Stuck", "spent its last 10 steps or more within half a metre, bumping"],
  collided: ["Collided", "a bump ended the episode"],
  timeout: ["Timeout", "ran out of steps"],
  no_stop: ["No STOP", "ended without STOP before its steps ran out, as a prediction may"],
  never_moved: ["Never moved", "never got 0.2 m away from its start"],
  agent_fault: ["Agent fault", "the agent raised an error, did not answer as it has to, or chose an action that does not exist"],
  evaluator_fault: ["Evaluator fault", "the evaluator failed; not scored"],
  unavailable: ["Unavailable", "the agent was not there when the episode began; not scored"],
  unknown_fault: ["Unknown fault", "its process was killed from outside; not scored"],
};
const MARKS = {
  success: "✓", passed_goal: "»", stopped_early: "‹", wrong_first_turn: "↱", stopped_far: "□", looped: "↺",
  stuck: "■", collided: "×", timeout: "…", no_stop: "–", never_moved: "○", agent_fault: "!", evaluator_fault: "?", unavailable: "∅", unknown_fault: "¿",
};
const KINDS_NOTE = "Found from the driven paths. Choose a number to see its episodes.";
const ACTIONS = { S: "STOP", F: "FORWARD", L: "LEFT", R: "RIGHT", "?": "?" };

/** Return by which distance the ends of episodes are judged, as people say it. */
const endDistance = () => [...new Set(DATA.runs.map((run) => run.distance))].join(" or ");
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const ROWS_NOTE = () => `NE: navigation error, the ${endDistance()} to the goal at the end.`;

const SCORES = [
  ["success", "Success rate", "SR", 1, "%", "STOP within the threshold"],
  ["spl", "SPL", "SPL", 1, "", "success, weighted by path length"],
  ["ndtw", "nDTW", "nDTW", 1, "", "how well the path follows the reference"],
  ["navigation_error", "Navigation error", "NE", -1, "m", () => `${endDistance()} to the goal at the end`],
  ["oracle_success", "Oracle success", "OSR", 1, "%", "was within the threshold at any time"],
  ["success_at_0.2m", "Success within 0.2 m", "SR@0.2", 1, "%", "the strict threshold"],
  ["collisions", "Bumps per episode", "Bumps", -1, "", "steps in which the robot touched something"],
];
const SHARES = ["spl", "ndtw"];
const PRIVILEGED = "is told the goal";

/** Return by what definitions and which threshold was measured. */
function scoresNote() {
  const near = [...new Set(DATA.episodes.map((episode) => episode.near).filter(Number.isFinite))].sort((a, b) => a - b);
  return `Definitions of ${DATA.definition}, by ${endDistance()}.` +
    (near.length ? ` Threshold: ${near.length > 1 ? `${near[0]} to ${near[near.length - 1]}` : near[0]} m.` : "");
}

function spreads() {
  const shortest = (row) => row.episode.far ?? row.episode.length;
  return [
    histograms(`${capital(endDistance())} to the goal at the end`, "m", (row) => row.m.navigation_error ?? row.end),
    histograms("Path driven ÷ shortest way", "", (row) => row.m.path_length / shortest(row)),
    histograms("Steps", "steps", (row) => row.act.length),
  ];
}

/** Navigation has no stages. */
function drawStages() {}

const LENGTH_EDGES = [0, 5, 10, 15, 20, 30];

/** Return the bin of an episode's reference length, such as "5–10 m". */
function lengthBin(episode) {
  const length = episode.length ?? episode.far;
  if (length === undefined) return null;
  const index = LENGTH_EDGES.findLastIndex((edge) => length >= edge);
  const next = LENGTH_EDGES[index + 1];
  return next === undefined ? `${LENGTH_EDGES[index]} m and more` : `${LENGTH_EDGES[index]}–${next} m`;
}

const ORDERED = ["short", "medium", "long"];
const GROUPS = {
  "reference length": (row) => lengthBin(row.episode),
  "instruction level": (row) => row.episode.level,
  split: (row) => row.episode.split,
  language: (row) => row.episode.language,
  scene: (row) => row.episode.scene,
};
const BY = Object.keys(GROUPS);
const FILTERS = [["scene", "Scene", "all"], ["reference length", "Length", "any"]];

const COLUMNS = [
  ["Ended as", (row) => KINDS[row.kind][0], (row) => mark(row.kind)],
  ["Episode", (row) => row.episode.id, (row) => el("a.one-line", { href: linkTo(row), title: row.episode.id }, row.episode.id)],
  ["Policy", (row) => row.run.name, (row) => keyOf(row.run)],
  ["Scene", (row) => row.episode.scene, (row) => el("span.one-line", { title: row.episode.scene }, row.episode.scene)],
  ["Instruction and what happened", (row) => row.episode.text, (row) => el("div", null, el("div.clamp", null, row.episode.text), el("div.clamp.dim", null, row.say))],
  ["Length m", (row) => row.episode.length ?? row.episode.far ?? NaN, (row, value) => number(value, 1)],
  ["Steps", (row) => row.act.length, (row, value) => value],
  ["Bumps", (row) => row.bump.length, (row, value) => value],
  ["NE m", (row) => row.m.navigation_error ?? NaN, (row, value) => number(value, 1)],
  ["SPL", (row) => row.m.spl ?? NaN, (row, value) => number(value, 2)],
  ["nDTW", (row) => row.m.ndtw ?? NaN, (row, value) => number(value, 2)],
];

/** Return names and values of what is told of an episode. */
function factsOf(row) {
  const { episode, m } = row;
  return [
    ["scene", episode.scene], ["policy", row.run.name + (row.run.privileged ? " ★" : "")], ["instruction level", episode.level], ["split", episode.split],
    ["reference", episode.length && `${number(episode.length, 1)} m`], ["steps", `${row.act.length}${episode.limit ? ` of ${episode.limit}` : ""}`],
    ["driven", m.path_length !== undefined && `${number(m.path_length, 1)} m`], ["bumps", row.bump.length],
    [`navigation error (${row.endBy})`, m.navigation_error !== undefined && `${number(m.navigation_error, 2)} m`], ["SPL", m.spl !== undefined && number(m.spl, 2)],
    ["nDTW", m.ndtw !== undefined && number(m.ndtw, 2)], ["CLS", m.cls !== undefined && number(m.cls, 2)],
  ];
}

const FRAMED = { recorded: "Recorded during the run.", replayed: "Drawn again by driving the recorded actions; the path is the same." };
const FILM_BESIDE = false;

/** Return the picture of an episode's path: an object with `node` and `moveTo`. */
function pictureOf(row, siblings) {
  const map = new EpisodeMap(row, []);
  map.node = el("div.map-side", null, map.svg, mapTools(map, siblings));
  return map;
}

function stepsKey() {
  const used = [["F", "forward"], ["L", "left"], ["R", "right"], ["S", "stop"]];
  return el("ul.map-key", { "aria-label": "Actions" }, ...used.map(([letter, name]) => el("li", null, el(`i.act-${letter}`), name)), el("li", null, el("i.k-bump"), "bump"));
}

function frameCaption(row, step) {
  const last = row.xy.length / 2 - 1;
  return step === 0 ? "start" : step === row.step && row.kind !== "success" ? `step ${step}, went wrong` : step === last ? `step ${step}, end` : `step ${step}`;
}

/** Return the points of a row's path in metres. */
function pathOf(row) {
  const points = [];
  let [x, y] = [0, 0];
  for (let i = 0; i < row.xy.length; i += 2) {
    [x, y] = [x + row.xy[i], y + row.xy[i + 1]];
    points.push([x / 100, y / 100]);
  }
  return points;
}

const pairs = (flat) => (flat || []).reduce((all, v, i) => (i % 2 ? (all[all.length - 1].push(v / 100), all) : [...all, [v / 100]]), []);
