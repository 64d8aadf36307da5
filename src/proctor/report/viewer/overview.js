// The upper half of the page: who, how well, and why not better.

const LATENCIES = ["median", "p95", "p99"];

function drawOverview() {
  const several = RUNS.length > 1;
  document.title = `${DATA.exam}: ${RUNS.map((run) => run.name).join(", ")} – Proctor report`;
  $("title").textContent = several ? `${DATA.exam}: ${plural(RUNS.length, "policy").replace("policys", "policies")}` : `${DATA.exam}: ${RUNS[0].name}`;
  const scenes = new Set(DATA.episodes.map((episode) => episode.scene)).size;
  const worlds = [...new Set(RUNS.map((run) => run.env))].join(", ");
  $("subtitle").textContent = `${plural(DATA.episodes.length, "episode")} in ${plural(scenes, "scene")}, on ${worlds}`;
  drawNotices();
  $("legend").append(...RUNS.map((run) => keyOf(run,
    run.privileged && el("span.badge", { title: `It ${EXAM.privileged}: an upper bound, not a competitor.` }, "★ privileged"),
    run.expected > rowsOf(run).length && el("span.badge.warn", null, "unfinished"))));
  $("scores").append(...[...DATA.metrics.filter((metric) => metric.hasCard).map(scoreCard), latencyCard(), ...(DATA.latencyCurves || []).map(latencyCurve), usageCard(), faultCard()].filter(Boolean));
  $("scores-table").append(scoreTable());
  $("scores-note").textContent = `Mean and 95 % interval. ${EXAM.scoresNote()}` + (RUNS.some((run) => run.privileged) ? ` ★ is privileged: it ${EXAM.privileged}.` : "");
  EXAM.drawStages();
  drawClasses();
  drawSpread();
  drawFooter();
}

const rowsOf = (run) => ROWS.filter((row) => row.run === run);

function drawNotices() {
  const said = DATA.notices.map((text) => ["", text]);
  for (const run of RUNS) {
    for (const text of run.notices) said.push([run.name, text]);
    if (run.lost) {
      const text = `${run.lost}. The success rate is between ${percent(run.bounds[0])} and ${percent(run.bounds[1])}.`;
      said.push([run.name, text]);
    }
  }
  const together = Map.groupBy ? Map.groupBy(said, ([, text]) => text) : new Map(said.map((pair) => [pair[1], [pair]]));
  for (const [text, group] of together) {
    const who = group.map(([name]) => name).filter(Boolean).join(", ");
    $("notices").append(el("p.notice", { role: "note" }, who && el("b", null, `${who}: `), text));
  }
}

const BETTER = { up: ["higher is better", "↑ better"], down: ["lower is better", "↓ better"] };

/** Return a metric's card: a mean and its interval for each run. */
function scoreCard(metric) {
  const found = RUNS.filter((run) => run.metrics[metric.name]);
  const numbers = (run) => run.metrics[metric.name];
  const highest = Math.max(...found.map((run) => numbers(run)[2]));
  const isShare = metric.unit === "%" || (!metric.unit && metric.better === "up" && highest <= 1);
  const top = isShare ? 1 : Math.max(highest, 1e-6) * 1.05;
  const meaning = EXAM.meanings[metric.name] ? EXAM.meanings[metric.name]() : metric.about.replace(/\.$/, "");
  const [tip, arrow] = BETTER[metric.better] || ["", ""];
  const card = el("article.card", null, el("h3", null, metric.title, arrow && el("span.dim.better", { title: tip }, arrow)), el("p.dim.small", null, meaning),
    ...found.map((run) => {
      const [mean, low, high, n] = numbers(run);
      const said = `${run.name}: ${metric.title} ${inUnit(metric, mean)}, 95 % interval ${inUnit(metric, low)} to ${inUnit(metric, high)}, ${plural(n, "episode")}`;
      return whisker(run, [mean, low, high], [0, top], inUnit(metric, mean), said);
    }));
  if (inUnit(metric, top) !== inUnit(metric, 0)) card.append(el("div.scale", null, el("span", null, "0"), el("span", null, inUnit(metric, top))));
  else card.classList.add("flat");
  return card;
}

function faultCard() {
  return el("article.card", null, el("h3", null, "Faults"), el("p.dim.small", null, "of the agent: failures; all others: left out"),
    ...RUNS.map((run) => el("div.whisker.plain", { css: { "--c": run.color } }, el("span.name", { title: run.name }, run.short),
      el("span", null, `${run.faults.agent} agent`), el("b", null, Object.entries(run.faults).filter(([side]) => side !== "agent").map(([side, count]) => `${count} ${side}`).join(", ")))));
}

function latencyCard() {
  const found = RUNS.filter((run) => run.latency);
  if (!found.length) return null;
  const head = el("tr", null, el("td", null, ""), ...LATENCIES.map((name) => el("th", { scope: "col" }, name)));
  const lines = found.map((run) => el("tr", { css: { "--c": run.color }, title: `${run.name}: over ${plural(run.latency[3], run.timed)}` },
    el("th.name", { scope: "row" }, run.short), ...LATENCIES.map((_, i) => el("td", null, milliseconds(run.latency[i])))));
  const what = [...new Set(found.map((run) => run.timed))].join(" or ");
  return el("article.card", null, el("h3", null, `Time per ${what}`), el("p.dim.small", null, "milliseconds, by the wall clock"),
    el("table.latency", null, el("thead", null, head), el("tbody", null, ...lines)));
}

/** Headings of what a run used, in its card and in the table, and the keys. */
const USED = [["decisions", "decisions", "decisions"], ["in", "tokens in", "inText"], ["cached", "cached", "cachedText"], ["out", "tokens out", "outText"], ["cost", "cost", "costText"]];
const usedBy = (run) => USED.map(([, , key]) => (run.used && run.used[key]) || "–");

function usageCard() {
  const found = RUNS.filter((run) => run.used);
  if (!found.length) return null;
  const head = el("tr", null, el("td", null, ""), ...USED.map(([name]) => el("th", { scope: "col" }, name)));
  const lines = found.map((run) => el("tr", { css: { "--c": run.color }, title: run.name }, el("th.name", { scope: "row" }, run.short), ...usedBy(run).map((value) => el("td", null, value))));
  const more = found.filter((run) => run.used.unscored).map((run) => el("p.dim.small", null, `${run.name}: attempts that do not count used ${run.used.unscored} more`));
  return el("article.card", null, el("h3", null, "Used"), el("p.dim.small", null, "tokens and cost of the episodes that are scored"),
    el("table.latency", null, el("thead", null, head), el("tbody", null, ...lines)), ...more);
}

function scoreTable() {
  const used = RUNS.some((run) => run.used) ? USED : [];
  const timed = RUNS.some((run) => run.latency) ? LATENCIES : [];
  const names = [...new Set(RUNS.flatMap((run) => Object.keys(run.metrics)))];
  const head = el("tr", null, el("th", null, "Policy"), el("th", null, "Episodes"), ...names.map((name) => el("th", null, name)), ...timed.map((name) => el("th", null, `time ${name} ms`)), ...used.map(([, name]) => el("th", null, name)));
  const body = RUNS.map((run) => el("tr", null, el("th", null, run.name), el("td", null, `${rowsOf(run).length} of ${run.expected}`),
    ...names.map((name) => {
      const value = run.metrics[name];
      return el("td", null, value ? `${number(value[0], 3)} ` : "–", value && el("span.dim", null, `${number(value[1], 3)}–${number(value[2], 3)}`));
    }), ...timed.map((_, i) => el("td", null, number(run.latency && run.latency[i], 2))), ...(used.length ? usedBy(run).map((value) => el("td", null, value)) : [])));
  return el("table.numbers", null, el("thead", null, head), el("tbody", null, ...body));
}

function drawClasses() {
  const totals = RUNS.map((run) => rowsOf(run).length);
  const used = kindsUsed();
  const most = Math.max(...used.flatMap((kind) => RUNS.map((run) => rowsOf(run).filter((row) => row.kind === kind).length / totals[run.index])));
  const head = el("tr", null, el("th", null, "Ended as"), ...RUNS.map((run) => el("th", null, run.name)));
  const cells = (kind, name, belongs) => RUNS.map((run) => {
    const count = rowsOf(run).filter(belongs).length;
    const share = count / totals[run.index];
    const label = `${run.name}, ${name}: ${count} of ${totals[run.index]}`;
    return el("td", null, el("button.bar-button", { type: "button", disabled: !count, title: label, "aria-label": label, css: { "--c": run.color },
      onclick: () => { setFilters({ "f-run": String(run.index), "f-kind": kind }); $("episodes-heading").scrollIntoView(); } },
    el("span", null, count ? `${count} · ${percent(share)}` : "0"), el("i", { css: { width: `${(100 * share) / most}%` } })));
  });
  const lines = used.flatMap((kind) => [
    el("tr", null, el("th", { scope: "row" }, mark(kind), el("span.small.dim.meaning", null, kindOf(kind)[1])), ...cells(kind, kindOf(kind)[0], (row) => row.kind === kind)),
    ...REASONS.filter((reason) => reason.kind === kind).map((reason) => el("tr.reason", null,
      el("th", { scope: "row" }, reason.words, el("code.small.dim", null, reason.code),
        el("span.small.dim.first.clamp", null, "first in ", el("a", { href: linkTo(reason.first) }, reason.first.episode.id), `: ${reason.first.error.line}`)),
      ...cells(reason.value, reason.words, (row) => reasonOf(row) === reason.value))),
  ]);
  $("classes-note").textContent = EXAM.kindsNote;
  $("classes").append(el("table.classes", null, el("thead", null, head), el("tbody", null, ...lines)));
}

const mark = (kind) => el("span.kind", { "data-kind": kind }, el("i", { "aria-hidden": "true" }, kindOf(kind)[2]), kindOf(kind)[0]);

function drawSpread() {
  $("spread").append(...EXAM.spreads().filter(Boolean));
  const useful = (EXAM.by || Object.keys(EXAM.groups)).filter((group) => valuesOf(group).length > 0);
  $("by").append(...useful.map((group) => el("option", { value: group }, group)));
  $("by").addEventListener("change", drawBy);
  if (useful.length) drawBy();
}

function drawBy() {
  const group = $("by").value;
  const blocks = valuesOf(group).map((value) => el("div.group", null, el("h4", null, String(value)),
    ...RUNS.map((run) => {
      const rows = rowsOf(run).filter((row) => scored(row) && EXAM.groups[group](row) === value);
      if (!rows.length) return null;
      const rate = wilson(rows.filter((row) => row.kind === "success").length, rows.length);
      const said = `${run.name}, ${value}: ${percent(rate[0])} of ${rows.length}, 95 % interval ${percent(rate[1])} to ${percent(rate[2])}`;
      return whisker(run, rate, [0, 1], `${percent(rate[0])} of ${rows.length}`, said);
    })));
  $("by-chart").replaceChildren(el("div.groups", null, ...blocks));
}

function drawFooter() {
  const lines = RUNS.map((run) => {
    const options = Object.values(run.options).some((o) => Object.keys(o || {}).length) ? `, ${JSON.stringify(run.options)}` : "";
    const packages = Object.entries(run.packages).map(([name, version]) => `${name} ${version}`).join(", ");
    const took = run.took ? `; ${run.took}` : "";
    return el("li", null, `${run.name}: ${run.env}, seed ${run.seed}, Proctor ${run.version}${options}${took}; ${packages}; ${run.folder}`);
  });
  $("footer").append(el("p", null, `Made by Proctor ${DATA.proctor}. Everything is in this one file.`), el("ul", null, ...lines));
}
