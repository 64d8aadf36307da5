// Pick-and-place: how episodes end, what is measured, what is listed and filtered by.

const KINDS = {
  success: ["Success", "the object is where it should be, let go of and at rest; without a target, held aloft"],
  not_released: ["Not released", "was in the target, but the gripper held it or it was not free and at rest long enough"],
  left_target: ["Left the target", "was in the target for a while, but not at the end"],
  not_placed: ["Not placed", "lifted and still held at the end, but not in the target"],
  dropped: ["Dropped", "lifted, then let go of outside the target"],
  not_lifted: ["Not lifted", "held, but never as high as it had to be"],
  not_grasped: ["Not grasped", "the hand came to the object, but both fingers never had hold of it"],
  never_reached: ["Never reached", "the hand never came to the object"],
  knocked_down: ["Knocked down", "the object fell before it was ever held"],
  agent_fault: ["Agent fault", "the agent raised an error, did not answer as it has to, or chose an action that does not exist"],
  evaluator_fault: ["Evaluator fault", "the evaluator failed; not scored"],
  unavailable: ["Unavailable", "the agent was not there when the episode began; not scored"],
  unknown_fault: ["Unknown fault", "its process was killed from outside; not scored"],
};
const MARKS = {
  success: "✓", not_released: "◉", left_target: "↷", not_placed: "◌", dropped: "↓", not_lifted: "▁", not_grasped: "⊃",
  never_reached: "○", knocked_down: "⤓", agent_fault: "!", evaluator_fault: "?", unavailable: "∅", unknown_fault: "¿",
};
const KINDS_NOTE = "Found from what hand and object did. Choose a number to see its episodes.";
const PHASES = { r: "reach", g: "grasp", l: "lift", p: "place" };

const ROWS_NOTE = () => "Dist.: straight line from the object to its target at the end.";

const SCORES = [
  ["success", "Success rate", "SR", 1, "%", "placed, let go of and at rest at the end"],
  ["completion_rate", "Completion rate", "CR", 1, "", "how far through reach, grasp, lift and place"],
  ["trajectory_similarity", "Trajectory similarity", "Sim", 1, "", "how alike the joints moved to the reference"],
  ["success_any_step", "Success at any step", "SR any", 1, "%", "grasped, lifted and at the target at some time"],
  ["time_to_success_s", "Time to success", "Time", -1, "s", "of successes only"],
  ["final_distance_m", "Distance at the end", "Dist", -1, "cm", "straight line from the object to its target", 100],
  ["drops", "Drops per episode", "Drops", -1, "", "times the object was lost on its way"],
  ["table_collisions", "Steps touching furniture", "Bumps", -1, "", "per episode"],
];
const SHARES = ["completion_rate", "trajectory_similarity"];
const PRIVILEGED = "is told where everything is";

function scoresNote() {
  const tolerances = [...new Set(DATA.episodes.map((episode) => episode.near).filter(Number.isFinite))].sort((a, b) => a - b);
  const told = tolerances.map((metres) => +(100 * metres).toFixed(1));
  return `Definitions of ${DATA.definition}.` +
    (told.length ? ` Tolerance of a target position: ${told.length > 1 ? `${told[0]} to ${told[told.length - 1]}` : told[0]} cm.` : "");
}

function spreads() {
  return [
    histograms("Straight-line distance from the target at the end", "cm", (row) => (row.episode.goal ? 100 * row.end : NaN)),
    histograms("Path of the hand", "m", (row) => row.m.hand_path_m),
    histograms("Steps", "steps", (row) => row.steps),
  ];
}

const STAGES = ["reached", "grasped", "lifted", "placed", "succeeded"];
const ORDERED = ["nothing", ...STAGES];
const GROUPS = {
  "target type": (row) => row.episode.target,
  object: (row) => row.episode.object,
  split: (row) => row.episode.split,
  language: (row) => row.episode.language,
  scene: (row) => row.episode.scene,
  "got as far as": (row) => ORDERED[row.got ?? 0],
};
const BY = ["target type", "object", "split", "language", "scene"];
const FILTERS = [["got as far as", "Got as far as", "anything"], ["target type", "Target", "any"], ["scene", "Scene", "all"]];

const COLUMNS = [
  ["Ended as", (row) => KINDS[row.kind][0], (row) => mark(row.kind)],
  ["Episode", (row) => row.episode.id, (row) => el("a.one-line", { href: linkTo(row), title: row.episode.id }, row.episode.id)],
  ["Policy", (row) => row.run.name, (row) => keyOf(row.run)],
  ["Target", (row) => row.episode.target || "", (row, value) => value],
  ["Instruction and what happened", (row) => row.episode.text, (row) => el("div", null, el("div.clamp", null, row.episode.text), el("div.clamp.dim", null, row.say))],
  ["Compl.", (row) => row.m.completion_rate ?? NaN, (row, value) => number(value, 2)],
  ["Simil.", (row) => row.m.trajectory_similarity ?? NaN, (row, value) => number(value, 2)],
  ["Drops", (row) => row.m.drops ?? NaN, (row, value) => number(value, 0)],
  ["Bumps", (row) => row.bump.length, (row, value) => value],
  ["Dist. cm", (row) => (row.episode.goal ? 100 * row.end : NaN), (row, value) => number(value, 1)],
  ["Steps", (row) => row.steps, (row, value) => value],
];

const seconds = (row, step) => (row.episode.period ? `${number(step * row.episode.period, 1)} s` : null);

/** Return names and values of what is told of an episode. */
function factsOf(row) {
  const { episode, m } = row;
  const stages = row.stages || {};
  const shown = (name, digits) => m[name] !== undefined && number(m[name], digits);
  return [
    ["scene", episode.scene], ["policy", row.run.name + (row.run.privileged ? " ★" : "")], ["split", episode.split], ["object", episode.object],
    ["target", episode.target && episode.target + (episode.into ? `: ${episode.into}` : "")], ["completion rate", shown("completion_rate", 2)], ["trajectory similarity", shown("trajectory_similarity", 2)],
    ["steps", `${row.steps}${episode.limit ? ` of ${episode.limit}` : ""}`], ["time", seconds(row, row.steps)], ...Object.keys(stages).map((name) => [name, `step ${stages[name]}`]),
    ["distance at the end (straight line)", episode.goal && `${number(100 * row.end, 1)} cm`], ["drops", shown("drops", 0)], ["bumps", row.bump.length],
    ["path of the hand", m.hand_path_m !== undefined && `${number(m.hand_path_m, 2)} m`], ["clamped commands", shown("clamped_commands", 0)],
  ];
}

const FRAMED = {
  recorded: "The head's camera, recorded during the run.",
  replayed: "The head's camera and, in the corner, the wrist's. Drawn again by repeating the recorded actions; the hand's path is the same.",
};
const FILM_BESIDE = true;

/** Return the picture of an episode's paths: an object with `node` and `moveTo`. */
const pictureOf = (row) => new HandViews(row);

function stepsKey() {
  return el("ul.map-key", { "aria-label": "Phases" }, ...Object.entries(PHASES).map(([letter, name]) => el("li", null, el(`i.phase-${letter}`), name)),
    el("li", null, el("i.k-held"), "held by both fingers"), el("li", null, el("i.k-bump"), "bump"));
}

function frameCaption(row, step) {
  const [, label] = (row.moments || []).find(([at]) => at === step) || [step, ""];
  return [label, `step ${step}`, seconds(row, step)].filter(Boolean).join(" · ");
}

/** Return the points of a path in metres, each with as many numbers as asked for. */
function pathOf(steps, size) {
  const points = [];
  const at = new Array(size).fill(0);
  for (let i = 0; i < (steps || []).length; i += size) {
    for (let axis = 0; axis < size; axis += 1) at[axis] += steps[i + axis];
    points.push(at.map((value) => value / 1000));
  }
  return points;
}
