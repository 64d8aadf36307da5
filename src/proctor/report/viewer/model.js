// The data of the page, unpacked, and the numbers that are computed from it.

const DATA = JSON.parse($("data").textContent);

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
};
const MARKS = {
  success: "✓", passed_goal: "»", stopped_early: "‹", wrong_first_turn: "↱", stopped_far: "□", looped: "↺",
  stuck: "■", collided: "×", timeout: "…", no_stop: "–", never_moved: "○", agent_fault: "!", evaluator_fault: "?",
};
const ACTIONS = { S: "STOP", F: "FORWARD", L: "LEFT", R: "RIGHT", "?": "?" };

/** Return a name for narrow places: of an address its end, since many agents may be on one machine. */
function shortened(name) {
  const address = name.replace(/^wss?:\/\//, "");
  return address === name || address.length <= 8 ? address : `…${address.slice(-7)}`;
}

const RUNS = DATA.runs.map((run, index) => ({ ...run, index, short: shortened(run.name), color: `var(--run${index % 8})` }));
const ROWS = DATA.results.map((result, index) => {
  const episode = DATA.episodes[result.e];
  const run = RUNS[result.r];
  const text = [episode.id, episode.scene, episode.text, run.name, KINDS[result.kind][0], result.say, result.error ? result.error.kind : ""];
  return { ...result, index, episode, run, haystack: text.join("\n").toLowerCase() };
});

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

/** Return a rate and its Wilson interval, as in the tables of `proctor run`. */
function wilson(successes, n) {
  const z = 1.959963984540054;
  const rate = successes / n;
  const spread = (z * z) / n;
  const centre = (rate + spread / 2) / (1 + spread);
  const half = Math.sqrt(spread * (rate * (1 - rate) + spread / 4)) / (1 + spread);
  return [rate, Math.max(0, centre - half), Math.min(1, Math.max(rate, centre + half)), n];
}

/** Return by what fault a row ended, such as "agent_fault:action_timeout"; undefined if by none. */
const reasonOf = (row) => row.error && `${row.kind}:${row.error.kind}`;
const REASONS = [...new Set(ROWS.map(reasonOf))].filter(Boolean).map((value) => {
  const first = ROWS.find((row) => reasonOf(row) === value);
  return { value, first, kind: first.kind, code: first.error.kind, words: first.error.words };
});

const scored = (row) => row.kind !== "evaluator_fault";
const LENGTH_EDGES = [0, 5, 10, 15, 20, 30];

/** Return the bin of an episode's reference length, such as "5–10 m". */
function lengthBin(episode) {
  const length = episode.length ?? episode.far;
  if (length === undefined) return null;
  const index = LENGTH_EDGES.findLastIndex((edge) => length >= edge);
  const next = LENGTH_EDGES[index + 1];
  return next === undefined ? `${LENGTH_EDGES[index]} m and more` : `${LENGTH_EDGES[index]}–${next} m`;
}

const LEVELS = ["short", "medium", "long"];
const GROUPS = {
  "reference length": (row) => lengthBin(row.episode),
  "instruction level": (row) => row.episode.level,
  split: (row) => row.episode.split,
  language: (row) => row.episode.language,
  scene: (row) => row.episode.scene,
};

/** Return the distinct values of a group in a natural order. */
function valuesOf(group, rows = ROWS) {
  const found = [...new Set(rows.map(GROUPS[group]))].filter((value) => value !== null && value !== undefined);
  const rank = (value) => LEVELS.indexOf(value);
  return found.sort((a, b) => rank(a) - rank(b) || String(a).localeCompare(String(b), "en", { numeric: true }));
}
