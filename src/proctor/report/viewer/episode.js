// One episode: what was asked, what was done, where it went wrong, what the robot saw.

let current = null;

function openFromHash() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const id = wanted.get("ep");
  if (id === null) return closeEpisode();
  const rows = ROWS.filter((row) => row.episode.id === id);
  const row = rows.find((candidate) => candidate.run.name === wanted.get("run")) || rows[0];
  return row ? showEpisode(row) : closeEpisode();
}

function closeEpisode() {
  stopPlaying();
  if ($("episode").open) $("episode").close();
  current = null;
}

function showEpisode(row) {
  stopPlaying();
  const { episode } = row;
  const siblings = ROWS.filter((other) => other.e === row.e && other !== row);
  const map = EXAM.pictureOf(row, siblings);
  const timeline = EXAM.timeline(row, goTo);
  const talk = new ConversationView(row, goTo);
  const view = talk.hasPictures ? new NowView({}) : new NowView(row); // they are what the robot saw
  const isNarrow = matchMedia("(max-width: 46rem)").matches; // there the picture stands where Play is
  current = { row, map, timeline, view, talk };
  const steps = el("section.steps", null, el("h3", null, "Steps"), el("div.player", null, playButton(), timeline.readout), timeline.svg, timeline.range, EXAM.stepsKey(), isNarrow && view.node, isNarrow && talk.node);
  const film = talk.hasPictures && !(row.frames || []).length ? null : frameSection(row);
  $("ep-title").replaceChildren(mark(row.kind), el("span", null, episode.id));
  $("ep-body").replaceChildren(
    el("div.split", null,
      el("div", null, map.node, !EXAM.filmBeside && steps),
      el("div.text-side", null,
        el("blockquote", { lang: episode.language, dir: "auto" }, episode.text || "(no instruction)"),
        el("p.verdict", { "data-kind": row.kind }, unbroken(row.say)),
        row.error && faultBox(row.error),
        runSwitch(row, siblings),
        !isNarrow && view.node,
        !isNarrow && talk.node,
        factList(row),
        EXAM.filmBeside && film)),
    EXAM.filmBeside ? steps : film);
  if (!$("episode").open) $("episode").showModal();
  $("ep-body").scrollTop = 0;
  $("episode").scrollTop = 0;
  $("ep-title").focus();
  timeline.draw(Math.max(timeline.svg.parentElement.clientWidth, 280));
  goTo(row.kind === "success" ? timeline.last : clamp(row.step, 0, timeline.last));
  const position = shown.indexOf(row);
  $("ep-prev").disabled = position <= 0;
  $("ep-next").disabled = position < 0 || position >= shown.length - 1;
}

function goTo(step) {
  current.map.moveTo(step);
  current.timeline.moveTo(step);
  current.view.moveTo(step);
  current.talk.moveTo(step);
  for (const frame of $("ep-body").querySelectorAll("[data-step]")) frame.classList.toggle("now", Number(frame.dataset.step) === step);
}

function faultBox(error) {
  return el("div.fault", null, el("b", null, `${error.side === "unavailable" ? "unavailable" : `${error.side} fault`}: ${error.words} `), el("code.small.dim", null, error.kind), el("pre", null, error.message),
    error.trace && el("details", null, el("summary", null, "Traceback"), el("pre", null, error.trace)));
}

function runSwitch(row, siblings) {
  if (!siblings.length) return null;
  const all = [row, ...siblings].sort((a, b) => a.r - b.r);
  return el("nav.runs", { "aria-label": "The same episode by other policies" }, ...all.map((other) =>
    el("a", { href: linkTo(other), "aria-current": other === row ? "true" : null, css: { "--c": other.run.color } },
      keyOf(other.run), mark(other.kind))));
}

function factList(row) {
  const facts = [...EXAM.factsOf(row), ["time per action", row.ms && `${milliseconds(row.ms[0])} ms (median)`], ["slowest action", row.ms && `${milliseconds(row.ms[1])} ms`], ...usageFacts(row)]
    .filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "");
  return el("dl.facts", null, ...facts.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", { title: String(value) }, String(value)))));
}

function usageFacts(row) {
  const { used } = row;
  return used ? [["decisions", used.decisions], ["repaired replies", used.repairs || null], ["time per decision", row.decided], ["tokens in", used.inText + (used.cachedText && ` (${used.cachedText} cached)`)], ["tokens out", used.outText], ["cost", used.costText]] : [];
}

/** What the robot saw at the present step: the last picture that was taken until then. */
class NowView {
  constructor(row) {
    this.pictures = [...(row.frames || []), ...(row.film || [])].sort(([a], [b]) => a - b);
    this.image = el("img", { alt: "" });
    this.caption = el("figcaption");
    this.node = this.pictures.length > 0 && el("figure.now-view", null, this.image, this.caption);
  }

  moveTo(step) {
    if (!this.node) return;
    const [taken, source] = this.pictures.findLast(([at]) => at <= step) || this.pictures[0];
    if (this.image.getAttribute("src") !== source) this.image.src = source;
    this.image.alt = `What the robot saw after step ${taken}`;
    this.caption.textContent = taken === step ? `seen after step ${step}` : `seen after step ${taken}, the last picture before step ${step}`;
  }
}

function frameSection(row) {
  const frames = row.frames || [];
  const pictures = frames.map(([step, source]) => el("button.frame", { type: "button", "data-step": step, onclick: () => goTo(step) },
    el("img", { src: source, alt: `What the robot saw, ${EXAM.frameCaption(row, step)}`, loading: "lazy" }), el("span", null, EXAM.frameCaption(row, step))));
  const none = "No pictures of this episode. For all episodes: proctor report DIR --frames all; to keep them: proctor run --save-frames.";
  const note = row.framing || (frames.length ? EXAM.framed[row.framed] : none);
  return el("section.frames", null, el("h3", null, "What the robot saw"), el("p.dim.small", null, note), el("div.film", null, ...pictures));
}

let playing = 0;

function stopPlaying() {
  clearInterval(playing);
  playing = 0;
  const button = $("ep-body").querySelector(".play");
  if (button) button.textContent = "▶ Play";
}

function playButton() {
  return el("button.quiet.play", { type: "button", onclick: (event) => {
    if (playing) return stopPlaying();
    const { timeline } = current;
    if (timeline.step >= timeline.last) goTo(0);
    event.target.textContent = "❚❚ Pause";
    playing = setInterval(() => (timeline.step < timeline.last ? goTo(timeline.step + 1) : stopPlaying()), 110);
    return null;
  } }, "▶ Play");
}

function neighbour(offset) {
  const next = shown[shown.indexOf(current.row) + offset];
  if (current && next) location.hash = linkTo(next);
}

function setUpEpisode() {
  $("ep-close").addEventListener("click", leaveEpisode);
  $("episode").addEventListener("cancel", (event) => { event.preventDefault(); leaveEpisode(); });
  $("episode").addEventListener("click", (event) => event.target === $("episode") && leaveEpisode());
  $("ep-prev").addEventListener("click", () => neighbour(-1));
  $("ep-next").addEventListener("click", () => neighbour(1));
  $("ep-print").addEventListener("click", () => print());
  window.addEventListener("hashchange", openFromHash);
  window.addEventListener("resize", () => current && current.timeline.draw(Math.max(current.timeline.svg.parentElement.clientWidth, 280)));
  openFromHash();
}

function leaveEpisode() {
  history.pushState(null, "", location.pathname + location.search);
  const row = current && current.row;
  closeEpisode();
  const line = row && $("table").querySelector(`tr[data-row="${row.index}"] a`);
  if (line) line.focus();
}
