// Navigation: how episodes end, what is measured, what is listed and filtered by.

/** Return by which distance the ends of episodes are judged, as people say it. */
const endDistance = () => [...new Set(DATA.runs.map((run) => run.distance))].join(" or ");
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const LENGTH_EDGES = [0, 5, 10, 15, 20, 30];

/** Return the bin of an episode's reference length, such as "5–10 m". */
function lengthBin(episode) {
  const length = episode.length ?? episode.far;
  if (length === undefined) return null;
  const index = LENGTH_EDGES.findLastIndex((edge) => length >= edge);
  const next = LENGTH_EDGES[index + 1];
  return next === undefined ? `${LENGTH_EDGES[index]} m and more` : `${LENGTH_EDGES[index]}–${next} m`;
}

Object.assign(EXAM, {
  kinds: {
    success: ["Success", "said STOP within the threshold", "✓"],
    passed_goal: ["Passed the goal", "was within the threshold, but did not say STOP there", "»"],
    stopped_early: ["Stopped early", "said STOP on the way, within 1 m of the reference path but short of the goal", "‹"],
    wrong_first_turn: ["Wrong first turn", "left the reference path for good at its first turn or before", "↱"],
    stopped_far: ["Stopped elsewhere", "said STOP at a wrong place", "□"],
    looped: ["Looped", "drove 2 m or more over ground it had covered before, in the same direction", "↺"],
    stuck: ["Stuck", "spent its last 10 steps or more within half a metre, bumping", "■"],
    collided: ["Collided", "a bump ended the episode", "×"],
    timeout: ["Timeout", "ran out of steps", "…"],
    no_stop: ["No STOP", "ended without STOP before its steps ran out, as a prediction may", "–"],
    never_moved: ["Never moved", "never got 0.2 m away from its start", "○"],
  },
  kindsNote: "Found from the driven paths. Choose a number to see its episodes.",
  privileged: "is told the goal",
  meanings: { navigation_error: () => `${capital(endDistance())} to the goal at the end` },
  rowsNote: () => `NE: navigation error, the ${endDistance()} to the goal at the end.`,

  /** Return by what definitions and which threshold was measured. */
  scoresNote() {
    const near = [...new Set(DATA.episodes.map((episode) => episode.near).filter(Number.isFinite))].sort((a, b) => a - b);
    return `Definitions of ${DATA.definition}, by ${endDistance()}.` +
      (near.length ? ` Threshold: ${near.length > 1 ? `${near[0]} to ${near[near.length - 1]}` : near[0]} m.` : "");
  },

  spreads() {
    const shortest = (row) => row.episode.far ?? row.episode.length;
    return [
      histograms(`${capital(endDistance())} to the goal at the end`, "m", (row) => row.m.navigation_error ?? row.end),
      histograms("Path driven ÷ shortest path", "", (row) => row.m.path_length / shortest(row)),
      histograms("Steps", "steps", (row) => row.steps),
    ];
  },

  order: ["short", "medium", "long"],
  groups: { "reference length": (row) => lengthBin(row.episode), "instruction level": (row) => row.episode.level, ...EXAM.groups },
  filters: [["scene", "Scene", "all"], ["reference length", "Length", "any"]],
  numbers: () => [
    ["Length m", (row) => row.episode.length ?? row.episode.far ?? NaN, (row, value) => number(value, 1)],
    ["Steps", (row) => row.steps, (row, value) => value],
    ["Bumps", (row) => row.bump.length, (row, value) => value],
    ...metricColumns("navigation_error", "spl", "ndtw"),
  ],
  factsOf(row) {
    const { episode } = row;
    return [
      ["scene", episode.scene], ["policy", row.run.name + (row.run.privileged ? " ★" : "")], ["instruction level", episode.level], ["split", episode.split],
      ["reference", episode.length && `${number(episode.length, 1)} m`], ["steps", stepsText(row)], metricFact(row, "path_length", "driven"), ["bumps", row.bump.length],
      [`navigation error (${row.endBy})`, row.m.navigation_error !== undefined && `${number(row.m.navigation_error, 2)} m`],
      ...["spl", "ndtw", "cls"].map((name) => metricFact(row, name)),
    ];
  },
  framed: { recorded: "Recorded during the run.", replayed: "Drawn again by driving the recorded actions; the path is the same." },
  actions: { F: "FORWARD", L: "LEFT", R: "RIGHT", S: "STOP" },
});
