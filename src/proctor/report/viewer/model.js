// Runs and episodes of the page, unpacked, and the numbers that are computed from them.

/** Return a name for narrow places: of an address its end, since many agents may be on one machine. */
function shortened(name) {
  const address = name.replace(/^wss?:\/\//, "");
  return address === name || address.length <= 8 ? address : `…${address.slice(-7)}`;
}

/** Return a run's name with its colour before it, in one line. */
const keyOf = (run, ...more) => el("span.key", { css: { "--c": run.color } }, el("span.name", { title: run.name }, run.name), ...more);

const RUNS = DATA.runs.map((run, index) => ({ ...run, index, short: shortened(run.name), color: `var(--run${index % 8})` }));
const ROWS = DATA.results.map((result, index) => {
  const episode = DATA.episodes[result.e];
  const run = RUNS[result.r];
  const text = [episode.id, episode.scene, episode.text, run.name, kindOf(result.kind)[0], result.say, result.error ? result.error.kind : ""];
  return { ...result, index, episode, run, haystack: text.join("\n").toLowerCase() };
});

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

const UNSCORED = ["evaluator_fault", "unavailable", "unknown_fault"];
const scored = (row) => !UNSCORED.includes(row.kind);

/** Return the distinct values of a group in a natural order. */
function valuesOf(group, rows = ROWS) {
  const found = [...new Set(rows.map(EXAM.groups[group]))].filter((value) => value !== null && value !== undefined);
  const rank = (value) => EXAM.order.indexOf(value);
  return found.sort((a, b) => rank(a) - rank(b) || String(a).localeCompare(String(b), "en", { numeric: true }));
}
