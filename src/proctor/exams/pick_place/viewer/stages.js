// The stage funnel: how many episodes came how far, one funnel per policy on a common scale.

const FUNNEL = [["episodes", "Episodes"], ["reached", "Reached"], ["grasped", "Grasped"], ["lifted", "Lifted"], ["placed", "Placed"], ["succeeded", "Succeeded"]];

/** Return how many of a policy's scored episodes came at least to each stage, beginning with all of them. */
function stageCounts(run) {
  const rows = rowsOf(run).filter(scored);
  return FUNNEL.map((_, stage) => rows.filter((row) => stage === 0 || (row.got ?? 0) >= stage).length);
}

function drawFunnels() {
  const section = el("section", { "aria-labelledby": "stages-heading" }, el("h2", { id: "stages-heading" }, "How far episodes came"),
    el("p.dim", null, "Each stage counts from the first step in which it was there. Choose what was lost between two stages to see its episodes."),
    el("div.cards.funnels", { id: "stages" }, ...RUNS.map(funnel)));
  $("classes-heading").parentElement.before(section);
}

function funnel(run) {
  const counts = stageCounts(run);
  const all = counts[0];
  const said = FUNNEL.map(([, name], stage) => `${name.toLowerCase()} ${counts[stage]}`).join(", ");
  const lines = FUNNEL.flatMap(([, name], stage) => {
    const share = all ? counts[stage] / all : 0;
    const lost = stage ? counts[stage - 1] - counts[stage] : 0;
    const bar = el("div.stage", { "data-stage": name }, el("span.stage-name", null, name), el("span.stage-track", null, el("i", { css: { width: `${(100 * share).toFixed(2)}%` } })),
      el("b", null, String(counts[stage])), el("span.dim", null, stage ? percent(share) : ""));
    if (!stage) return [bar];
    const before = all ? counts[stage - 1] / all : 0;
    const slope = el("div.slope", null, el("i", { css: { "clip-path": `polygon(0 0, ${(100 * before).toFixed(2)}% 0, ${(100 * share).toFixed(2)}% 100%, 0 100%)` } }),
      lost > 0 && el("button.lost", { type: "button", css: { left: `${clamp(50 * (before + share) + 2, 0, 78).toFixed(1)}%` }, "aria-label": `${run.name}: ${lost} lost before ${name.toLowerCase()}`,
        onclick: () => { setFilters({ "f-run": String(run.index), "f-group0": EXAM.order[stage - 1] }); $("episodes-heading").scrollIntoView(); } }, `−${lost}`));
    return [slope, bar];
  });
  return el("article.card.funnel", { css: { "--c": run.color }, "aria-label": `${run.name}: ${said}` }, el("h3.key", null, run.name, run.privileged && el("sup", null, " ★")), ...lines);
}
