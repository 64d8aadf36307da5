// What was said between the evaluator and an agent: the decision that was in force at a step, beside the map.

class ConversationView {
  constructor(row, onStep) {
    const talk = row.talk || { turns: [] };
    this.talk = talk;
    this.index = -1;
    this.hasPictures = (talk.pictures || []).length > 0;
    this.title = el("h3");
    this.about = el("p.dim.small");
    this.body = el("div");
    const step = (offset) => () => talk.turns[this.index + offset] && onStep(talk.turns[this.index + offset].step);
    this.before = el("button.quiet", { type: "button", "aria-label": "Decision before", onclick: step(-1) }, "‹");
    this.after = el("button.quiet", { type: "button", "aria-label": "Next decision", onclick: step(1) }, "›");
    this.node = row.talk && el("section.talk", { "aria-label": "What was said" },
      talk.turns.length > 0 && el("div.row", null, this.before, this.title, this.after), this.about, this.body,
      talk.note && el("p.notice.small", null, talk.note), !talk.turns.length && !talk.note && el("p.dim", null, "The transcript holds no decision."));
  }

  moveTo(step) {
    const { turns } = this.talk;
    if (!turns.length) return;
    const index = Math.max(0, turns.findLastIndex((turn) => turn.step <= step));
    if (index === this.index) return;
    this.index = index;
    const turn = turns[index];
    this.before.disabled = index === 0;
    this.after.disabled = index === turns.length - 1;
    this.title.textContent = `Decision ${index + 1} of ${turns.length}`;
    const facts = [turn.step ? `after step ${turn.step}` : "at the start", turn.seconds && `${turn.seconds} s`, turn.attempts && `${turn.attempts} replies`, turn.used];
    this.about.textContent = facts.filter(Boolean).join(" · ");
    const pictures = turn.pictures.map((place) => el("img", { src: this.talk.pictures[place], alt: `What the agent was shown after step ${turn.step}` }));
    const part = (name, text) => text && [el("h4", null, name), el("pre", { dir: "auto", tabindex: "0" }, text)];
    this.body.replaceChildren(...[pictures.length > 0 && el("div.shown", null, ...pictures),
      turn.actions && el("p.chosen", null, "→ ", el("b", null, turn.actions)), turn.note && el("p.said", { dir: "auto" }, turn.note),
      ...(part("Reply", turn.reply) || []), ...(part("Prompt", turn.prompt) || [])].filter(Boolean));
  }
}
