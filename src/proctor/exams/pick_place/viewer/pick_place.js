// Pick-and-place: how episodes end, what is measured, what is listed and filtered by.

const PHASES = { r: "reach", g: "grasp", l: "lift", p: "place" };
const STAGES = ["reached", "grasped", "lifted", "placed", "succeeded"];

const seconds = (row, step) => (row.episode.period ? `${number(step * row.episode.period, 1)} s` : null);

Object.assign(EXAM, {
  kinds: {
    success: ["Success", "the object is where it should be, let go of and at rest; without a target, held aloft", "✓"],
    not_released: ["Not released", "was in the target, but the gripper held it or it was not free and at rest long enough", "◉"],
    left_target: ["Left the target", "was in the target for a while, but not at the end", "↷"],
    not_placed: ["Not placed", "lifted and still held at the end, but not in the target", "◌"],
    dropped: ["Dropped", "lifted, then let go of outside the target", "↓"],
    not_lifted: ["Not lifted", "held, but never as high as it had to be", "▁"],
    not_grasped: ["Not grasped", "the hand came to the object, but both fingers never had hold of it", "⊃"],
    never_reached: ["Never reached", "the hand never came to the object", "○"],
    knocked_down: ["Knocked down", "the object fell before it was ever held", "⤓"],
  },
  kindsNote: "Found from what hand and object did. Choose a number to see its episodes.",
  privileged: "is told where everything is",
  rowsNote: () => "Dist.: straight line from the object to its target at the end.",

  scoresNote() {
    const tolerances = [...new Set(DATA.episodes.map((episode) => episode.near).filter(Number.isFinite))].sort((a, b) => a - b);
    const told = tolerances.map((metres) => +(100 * metres).toFixed(1));
    return `Definitions of ${DATA.definition}.` +
      (told.length ? ` Tolerance of a target position: ${told.length > 1 ? `${told[0]} to ${told[told.length - 1]}` : told[0]} cm.` : "");
  },

  spreads: () => [
    histograms("Straight-line distance from the target at the end", "cm", (row) => (row.episode.goal ? 100 * row.end : NaN)),
    metricHistogram("hand_path_m", "Path of the hand"),
    histograms("Steps", "steps", (row) => row.steps),
  ],

  drawStages: () => drawFunnels(),
  order: ["nothing", ...STAGES],
  groups: {
    "target type": (row) => row.episode.target,
    object: (row) => row.episode.object,
    ...EXAM.groups,
    "got as far as": (row) => EXAM.order[row.got ?? 0],
  },
  by: ["target type", "object", "split", "language", "scene"],
  filters: [["got as far as", "Got as far as", "anything"], ["target type", "Target", "any"], ["scene", "Scene", "all"]],
  place: ["Target", (row) => row.episode.target || "", (row, value) => value],
  numbers: () => [
    ...metricColumns("completion_rate", "trajectory_similarity"),
    ["Drops", (row) => row.m.drops ?? NaN, (row, value) => number(value, 0)],
    ["Bumps", (row) => row.bump.length, (row, value) => value],
    ["Dist. cm", (row) => (row.episode.goal ? 100 * row.end : NaN), (row, value) => number(value, 1)],
    ["Steps", (row) => row.steps, (row, value) => value],
  ],
  factsOf(row) {
    const { episode, m } = row;
    const stages = row.stages || {};
    const count = (name) => m[name] !== undefined && number(m[name], 0);
    return [
      ["scene", episode.scene], ["policy", row.run.name + (row.run.privileged ? " ★" : "")], ["split", episode.split], ["object", episode.object],
      ["target", episode.target && episode.target + (episode.into ? `: ${episode.into}` : "")], metricFact(row, "completion_rate"), metricFact(row, "trajectory_similarity"),
      ["steps", stepsText(row)], ["time", seconds(row, row.steps)], ...Object.keys(stages).map((name) => [name, `step ${stages[name]}`]),
      ["distance at the end (straight line)", episode.goal && `${number(100 * row.end, 1)} cm`], ["drops", count("drops")], ["bumps", row.bump.length],
      metricFact(row, "hand_path_m", "path of the hand"), ["clamped commands", count("clamped_commands")],
    ];
  },
  framed: {
    recorded: "The head's camera, recorded during the run.",
    replayed: "The head's camera and, in the corner, the wrist's. Drawn again by repeating the recorded actions; the hand's path is the same.",
  },
  filmBeside: true,
  pictureOf: (row) => new HandViews(row),
  timeline: (row, onStep) => new PhaseTimeline(row, onStep),
  stepsKey: () => el("ul.map-key", { "aria-label": "Phases" }, ...Object.entries(PHASES).map(([letter, name]) => el("li", null, el(`i.phase-${letter}`), name)),
    el("li", null, el("i.k-held"), "held by both fingers"), el("li", null, el("i.k-bump"), "bump")),
  frameCaption(row, step) {
    const [, label] = (row.moments || []).find(([at]) => at === step) || [step, ""];
    return [label, `step ${step}`, seconds(row, step)].filter(Boolean).join(" · ");
  },
});
