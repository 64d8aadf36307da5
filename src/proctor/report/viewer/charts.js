// Dots with whiskers, histograms, and success against thinking time.

/** Return a row of a chart: a mean on a track with its interval, and the number beside it. */
function whisker(run, [mean, low, high], [from, to], text, title) {
  const at = (value) => `${(100 * clamp((value - from) / (to - from || 1), 0, 1)).toFixed(2)}%`;
  const line = el("i.line", { css: { left: at(low), right: `calc(100% - ${at(high)})` } });
  const dot = el("i.dot", { css: { left: at(mean) } });
  return el("div.whisker", { css: { "--c": run.color }, title, role: "img", "aria-label": title },
    el("span.name", null, run.short, run.privileged && el("sup", { title: `privileged: ${EXAM.privileged}` }, " ★")),
    el("span.track", null, line, dot),
    el("b", null, text));
}

/** Return one histogram per run above a common axis. */
function histograms(title, unit, valueOf) {
  const groups = RUNS.map((run) => ROWS.filter((r) => r.run === run && scored(r)).map(valueOf).filter(Number.isFinite));
  const all = groups.flat().sort((a, b) => a - b);
  if (!all.length) return null;
  const caption = el("figcaption", null, el("b", null, title), unit !== "steps" && el("span.dim", null, ` ${unit}`));
  if (number(all[all.length - 1], 2) === number(0, 2)) return el("figure.card", null, caption, el("p.dim", null, `0 in all ${all.length} episodes`));
  const largest = Math.max(all[Math.floor(0.99 * (all.length - 1))], 1e-6);
  const step = tickStep(largest, 14);
  const bins = Math.max(1, Math.ceil(largest / step + 1e-9));
  const [width, high, left, top] = [330, 34, 2, 15];
  const binWidth = (width - 2 * left) / bins;
  const height = groups.length * (high + top) + 26;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}, one histogram per policy` });
  groups.forEach((values, index) => {
    const counts = new Array(bins).fill(0);
    for (const value of values) counts[clamp(Math.floor(value / step), 0, bins - 1)] += 1;
    const most = Math.max(...counts, 1);
    const floor = index * (high + top) + top + high;
    const middle = values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
    const said = values.length ? `${RUNS[index].name} · median ${number(middle, unit === "steps" ? 0 : 1)}` : RUNS[index].name;
    chart.append(svg("text", { x: left, y: floor - high - 3, class: "tick strong" }, said));
    chart.append(svg("line", { x1: left, x2: width - left, y1: floor, y2: floor, class: "axis" }));
    counts.forEach((count, bin) => {
      if (!count) return;
      const tall = Math.max(1.5, (high - 2) * (count / most));
      const over = bin === bins - 1 && all[all.length - 1] > bins * step ? " and more" : "";
      chart.append(svg("rect", { x: left + bin * binWidth + 0.6, width: Math.max(binWidth - 1.2, 0.8), y: floor - tall,
        height: tall, rx: 1, css: { fill: RUNS[index].color } },
      svg("title", null, `${RUNS[index].name}: ${plural(count, "episode")} from ${number(bin * step, 1)}${over || ` to ${number((bin + 1) * step, 1)}`} ${unit}`)));
    });
  });
  const ticks = tickStep(bins * step, 5);
  for (let value = 0; value <= bins * step + 1e-9; value += ticks) {
    const x = left + (value / step) * binWidth;
    const anchor = value === 0 ? "start" : x > width - 14 ? "end" : "middle";
    chart.append(svg("text", { x, y: height - 12, class: "tick", "text-anchor": anchor }, String(+value.toFixed(2))));
  }
  return el("figure.card", null, caption, chart);
}

const WHILE_THINKING = { hold: "the robot keeps its last command meanwhile", stop: "the robot stands meanwhile" };

/** Return a card with the success rates of runs that differ only in the time that was charged for an action. */
function latencyCurve(curve) {
  const [width, height, left, right, top, bottom] = [330, 150, 40, 14, 10, 34];
  const longest = curve.points[curve.points.length - 1].seconds;
  const x = (seconds) => left + ((width - left - right) * seconds) / longest;
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Success against thinking time, ${curve.name}` });
  for (const share of [0, 0.5, 1]) {
    chart.append(svg("line", { x1: left, x2: width - right, y1: y(share), y2: y(share), class: "axis" }),
      svg("text", { x: left - 6, y: y(share) + 4, class: "tick", "text-anchor": "end" }, percent(share)));
  }
  const step = tickStep(longest, 5);
  for (let seconds = 0; seconds <= longest + 1e-9; seconds += step) {
    chart.append(svg("text", { x: x(seconds), y: height - bottom + 14, class: "tick", "text-anchor": "middle" }, String(+seconds.toFixed(3))));
  }
  chart.append(svg("text", { x: (left + width - right) / 2, y: height - 4, class: "tick", "text-anchor": "middle" }, "seconds charged for an action"));
  chart.append(svg("polyline", { points: curve.points.map((p) => `${x(p.seconds)},${y(p.success[0])}`).join(" "), fill: "none", class: "axis" }));
  for (const { seconds, run, success: [mean, low, high] } of curve.points) {
    const said = `${RUNS[run].name}: ${percent(mean)} at ${seconds} s, 95 % interval ${percent(low)} to ${percent(high)}`;
    chart.append(svg("g", { css: { color: RUNS[run].color }, class: "point" }, svg("title", null, said),
      svg("line", { x1: x(seconds), x2: x(seconds), y1: y(low), y2: y(high), stroke: "currentColor", "stroke-width": 2 }),
      svg("circle", { cx: x(seconds), cy: y(mean), r: 4, fill: "currentColor" })));
  }
  return el("article.card.latency-curve", null, el("h3", null, "Success against thinking time"),
    el("p.dim.small", null, `${curve.name}; ${WHILE_THINKING[curve.whileThinking]}`), chart);
}
