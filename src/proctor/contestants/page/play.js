// The page of `proctor play`. The server keeps everything; this page draws its last view and sends what is pressed.

const SETUP = JSON.parse($("setup").textContent);
const HOLD_MS = 350; // a button that is held longer repeats
const ANSWER_LIMIT_MS = 15000; // after this, the connection is taken for dead
const QUERY = new URLSearchParams(location.search);

let language = (navigator.languages || [navigator.language]).some((name) => /^zh/i.test(name)) && !/^en/i.test(navigator.language) ? "zh" : "en";
let socket = null;
let view = { phase: "wait" };
let pictures = [];
let shown = ""; // the screen that is drawn; its parts are updated, others are drawn anew
let pending = null; // the turn whose answer is on its way, and since when
let queued = null; // one press that came meanwhile
let asking = null; // what waits for a confirmation
let isReading = false; // whether the rules are shown
const hasRead = () => sessionStorage.getItem("reader") === view.player;
let retryMs = 250;

const say = (key, ...values) => (typeof WORDS[language][key] === "function" ? WORDS[language][key](...values) : WORDS[language][key]);
const told = (words) => words[language] || words.en;
const remember = (key, make) => {
  const value = sessionStorage.getItem(key) || make();
  sessionStorage.setItem(key, value);
  return value;
};
const CLIENT = remember("client", () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join(""));

// The connection

function connect() {
  const query = new URLSearchParams({ client: CLIENT });
  if (QUERY.get("token")) query.set("token", QUERY.get("token"));
  const opened = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws?${query}`);
  opened.binaryType = "arraybuffer";
  opened.onopen = () => { retryMs = 250; };
  opened.onmessage = (event) => {
    $("offline").hidden = true;
    receive(event.data);
  };
  opened.onclose = () => {
    if (socket !== opened) return;
    socket = pending = queued = null;
    $("offline").hidden = false;
    $("offline").textContent = say("offline");
    setTimeout(() => socket || connect(), retryMs);
    retryMs = Math.min(2 * retryMs, 4000);
  };
  socket = opened;
}

function send(message) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function receive(data) {
  const size = new DataView(data).getUint32(0);
  view = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
  pictures.forEach((address) => URL.revokeObjectURL(address));
  let at = 4 + size;
  pictures = (view.sizes || []).map((length) => URL.createObjectURL(new Blob([new Uint8Array(data, at, length)], { type: (at += length, view.phase === "score" ? "image/png" : "image/jpeg") })));
  if (pending && (view.phase !== "play" || view.turn !== pending.turn)) pending = null;
  if (view.phase !== "play") queued = asking = null;
  draw();
  if (view.is_open && queued && !isReading) {
    const press = queued;
    queued = null;
    act(press);
  }
}

// Presses

/** Do what a button means: at once, after the one that is on its way, or after a confirmation. */
function act({ name, value, isRepeat }) {
  if (view.phase !== "play" || isReading) return;
  const button = SETUP.buttons.find((each) => each.name === name);
  if (button && button.needs_confirmation) {
    if (!isRepeat) ask({ text: told(button.words), note: say("sureNote"), go: () => press(name) });
    return;
  }
  if (asking) ask(null);
  if (!view.is_open || pending) {
    if (!isRepeat) queued = { name, value };
    return;
  }
  press(name, value);
}

function press(name, value) {
  asking = null;
  pending = { turn: view.turn, since: performance.now() };
  send({ type: "press", turn: view.turn, name, ...(value === undefined ? {} : { value }) });
  drawPlay();
}

function ask(question) {
  asking = question;
  queued = null;
  drawPlay();
  const yes = $("yes");
  if (yes) yes.focus();
}

function confirm() {
  const { go } = asking;
  if (!view.is_open || pending) return;
  asking = null;
  go();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
  const isEnter = event.code === "Enter" || event.code === "NumpadEnter";
  if (view.phase === "play" && !isReading) {
    const button = SETUP.buttons.find((each) => each.keys.includes(event.code));
    if (asking) {
      if (event.code === "Escape") ask(null);
      else if (isEnter && !event.repeat && document.activeElement !== $("no")) confirm();
      else if (isEnter) { if (!event.repeat) ask(null); } else if (button && !button.needs_confirmation) act({ name: button.name, isRepeat: event.repeat });
      else return;
    } else if (button) act({ name: button.name, isRepeat: event.repeat });
    else return;
    event.preventDefault();
  } else if (isEnter && !event.repeat && event.target.tagName !== "BUTTON") {
    const main = $("main").querySelector(".primary");
    if (main) { event.preventDefault(); main.click(); }
  }
});

/** Make a button that acts when it is touched, and again while it is held. */
function pad(button) {
  let timer = 0;
  const end = () => { clearTimeout(timer); clearInterval(timer); };
  const node = el(`button.pad${button.needs_confirmation ? ".stop" : ""}`, { type: "button", "data-name": button.name, title: told(button.words),
    css: { "grid-area": `${button.place[0]} / ${button.place[1]}` },
    onpointerdown: (event) => {
      if (event.button > 0) return;
      event.preventDefault();
      act({ name: button.name });
      if (!button.needs_confirmation) timer = setTimeout(() => { timer = setInterval(() => act({ name: button.name, isRepeat: true }), 60); }, HOLD_MS);
    },
    onclick: (event) => event.detail === 0 && act({ name: button.name }), // by the keyboard, or a screen reader
    onpointerup: end, onpointerleave: end, onpointercancel: end, oncontextmenu: (event) => event.preventDefault(),
  }, el("b", { "aria-hidden": true }, button.sign), el("span", null, told(button.words)), el("kbd", { "aria-hidden": true }, keyNames(button)[0].split(" ")[0]));
  return node;
}

// Screens

function draw() {
  const isNew = view.step === 0 && view.episode === 1 && !hasRead();
  const screen = view.phase === "play" && (isReading || isNew) ? "read" : view.phase;
  isReading = screen === "read";
  if (view.phase === "play" && !isReading) sessionStorage.setItem("reader", view.player);
  $("help").hidden = screen !== "play";
  $("help").title = say("howTo");
  $("language").textContent = say("other");
  $("where").textContent = [SETUP.title, view.episode && say("episode", view.episode, view.episodes), view.player].filter(Boolean).join(" · ");
  document.documentElement.lang = language;
  document.title = `${SETUP.title} – Proctor`;
  const key = [screen, language, view.episode, screen === "name" && view.problem, screen === "wait" && view.player, screen === "score" && view.score.number].join("|");
  if (key !== shown) {
    shown = key;
    $("main").replaceChildren(...SCREENS[screen]().filter(Boolean));
    const focus = $("main").querySelector("[data-focus]");
    if (focus) focus.focus();
    else if (screen !== "play") $("main").focus();
  }
  if (screen === "play") drawPlay();
  if (screen === "score") drawMap();
}

const primary = (text, onclick, more) => el("button.primary", { type: "button", onclick, ...more }, text);

const SCREENS = {
  name: () => {
    const input = el("input", { id: "name", maxlength: 60, autocomplete: "off", "data-focus": true, required: true, "aria-label": say("name"), placeholder: say("name"),
      onkeydown: (event) => event.key === "Enter" && !event.isComposing && enter() });
    const enter = () => (input.value.trim() ? send({ type: "name", name: input.value.trim() }) : input.focus());
    return [el("section.narrow", null, el("p.dim", null, SETUP.exam), el("h1", null, say("title")), el("h2", null, say("whoPlays")),
      el("div.row", null, input, primary(say("begin"), enter)), view.problem && el("p.notice", { role: "alert" }, view.problem), el("p.dim", null, say("nameNote")))];
  },
  wait: () => [el("section.narrow.wait", null, el("div.spinner", { "aria-hidden": true }), el("p", { role: "status" }, view.episode ? say("scoring") : say("loading")))],
  read: () => [el("section.narrow", null, el("h1", null, say("howTo")), el("ol.rules", null, ...(SETUP.howTo[language] || SETUP.howTo.en || []).map((rule) => el("li", null, rule))),
    el("h2", null, say("keys")), el("dl.keys", null, ...SETUP.buttons.map((button) => el("div", null, el("dt", null, ...keyNames(button).map((name) => el("kbd", null, name))), el("dd", null, told(button.words))))),
    el("p", null, primary(view.step ? say("back") : say("start"), () => { isReading = false; sessionStorage.setItem("reader", view.player); draw(); }, { "data-focus": true })))],
  play: () => [el(`section.play${SETUP.buttons.length > 6 ? ".many" : ""}`, null,
    el("figure.views", { "aria-label": say("picture") }, ...pictures.map((_, index) => el("img", { id: `view${index}`, alt: say("picture") })),
      el("div", { id: "ask", role: "alertdialog", "aria-labelledby": "ask-text", hidden: true }), SETUP.sliders.length > 0 && el("div.sliders", null, ...SETUP.sliders.map(slider))),
    el("div.side", null, el("div", null, el("h2.label", null, say("instruction")), el("blockquote", { lang: view.language }, view.instruction)),
      el("div.budget", null, el("progress", { id: "budget", max: 1, value: 1 }), el("p", { id: "steps" })),
      el("div.pads", null, ...SETUP.buttons.map(pad)),
      !SETUP.buttons.some((button) => button.needs_confirmation) && el("button.quiet", { type: "button", onclick: () => ask({ text: say("giveUp"), note: say("giveUpNote"), go: giveUp }) }, say("giveUp"))))],
  score: () => {
    const { score } = view;
    const kind = score.success ? "success" : score.is_scored ? "failure" : "unscored";
    return [el("section.score", null, el("div.text-side", null, el("h1", { "data-kind": kind }, el("i", { "aria-hidden": true }, { success: "✓", failure: "✗", unscored: "–" }[kind]), say(kind)),
      el("p.verdict", { "data-kind": score.success ? "success" : score.kind }, score.sentence), el("blockquote", null, score.instruction),
      el("dl.facts", null, ...score.facts.map(({ title, text, about }) => el("div", { title: about }, el("dt", null, title), el("dd", null, text)))),
      el("p", null, primary(view.episode < view.episodes ? say("next") : say("last"), () => send({ type: "next", number: score.number }), { "data-focus": true }))),
      el("div.map-side", { id: "map" }))];
  },
  done: () => {
    const { summary } = view;
    return [el("section.narrow", null, el("h1", null, say("done", view.player)), el("p.rate", null, summary.scored ? say("rate", summary.successes, summary.scored) : say("none")),
      el("p.marks", null, ...summary.episodes.map((success) => el("i", { class: success === null ? "none" : success ? "ok" : "not", title: say(success === null ? "notScored" : success ? "ok" : "notOk") }, success === null ? "–" : success ? "✓" : "✗"))),
      view.problem && el("p.notice", null, view.problem), el("p.dim", null, say("more")), el("p", null, el("code", null, summary.command)),
      el("p", null, primary(say("newPlayer"), () => send({ type: "new_player" }))))];
  },
  taken: () => [el("section.narrow", null, el("h1", null, say("taken")), el("p", null, say("takenNote")), el("p", null, primary(say("takeOver"), () => send({ type: "take_over" }))))],
};

function slider({ name, words, low, high, step, unit }) {
  return el("label.slider", null, el("span", null, told(words), " ", el("output", { id: `at-${name}` })), el("input", { type: "range", id: `slider-${name}`, min: low, max: high, step, "data-unit": unit,
    oninput: (event) => { $(`at-${name}`).textContent = inUnit(event.target.value, unit); },
    onchange: (event) => { act({ name, value: Number(event.target.value) }); event.target.blur(); } }));
}

const inUnit = (value, unit) => `${number(Number(value), 1)}${unit === "°" ? "" : " "}${unit}`;

const giveUp = () => {
  pending = { turn: view.turn, since: performance.now() };
  send({ type: "give_up", turn: view.turn });
};

/** Show the map, which comes after the score. */
function drawMap() {
  if (pictures.length) $("map").replaceChildren(el("a", { href: pictures[0], target: "_blank", title: say("map") }, el("img.map", { src: pictures[0], alt: say("map") })));
}

/** Update what changes with every step. */
function drawPlay() {
  if (!$("steps")) return;
  pictures.forEach((address, index) => { const image = $(`view${index}`); if (image && image.dataset.turn !== String(view.turn)) { image.src = address; image.dataset.turn = view.turn; } });
  const left = view.max_steps - (view.step || 0);
  $("steps").textContent = say("steps", left, view.max_steps);
  $("budget").value = left / view.max_steps;
  $("main").classList.toggle("busy", Boolean(pending) && !view.is_open);
  for (const { name } of SETUP.sliders) {
    const input = $(`slider-${name}`);
    if (document.activeElement === input || view.values[name] === undefined) continue;
    input.value = view.values[name];
    $(`at-${name}`).textContent = inUnit(view.values[name], input.dataset.unit);
  }
  const box = $("ask");
  if (box.hidden === !asking) return;
  box.hidden = !asking;
  box.replaceChildren(...(asking ? [el("h2", { id: "ask-text" }, say("sure", asking.text)), el("p", null, asking.note),
    el("div.row", null, el("button.primary.stop", { type: "button", id: "yes", onclick: confirm }, say("yes", asking.text)), el("button.quiet", { type: "button", id: "no", onclick: () => ask(null) }, say("no")))] : []));
  if (!asking) $("main").focus();
}

/** Return what is printed on the keys of a button; one that is asked about is pressed twice. */
function keyNames({ keys, needs_confirmation: isAsked }) {
  const names = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", PageUp: "Page ↑", PageDown: "Page ↓" };
  return keys.filter((code) => !code.startsWith("Numpad")).map((code) => (names[code] || code.replace(/^(Key|Digit)/, "")) + (isAsked && code === "Enter" ? " × 2" : ""));
}

$("language").addEventListener("click", () => { language = language === "en" ? "zh" : "en"; sessionStorage.setItem("language", language); draw(); $("language").blur(); });
$("help").addEventListener("click", () => { isReading = true; draw(); });
for (const name of ["online", "pageshow"]) window.addEventListener(name, () => socket || connect());
setInterval(() => { if (pending && performance.now() - pending.since > ANSWER_LIMIT_MS && socket) socket.close(); }, 1000);
language = sessionStorage.getItem("language") || language;
connect();
