// The table of episodes: search, filters, sorting. Only what is looked at is in the document.

const CHUNK = 50;
const NUMERIC_FROM = 5;

/** Return a column of what episodes used, if a policy says: the cost and below it the tokens. */
function usageColumns() {
  const used = ROWS.map((row) => row.used).filter(Boolean);
  if (!used.length) return [];
  const priced = used.some(({ cost }) => cost !== undefined);
  const show = ({ costText, tokensText }) => [costText && el("div", null, costText), costText ? el("div.dim.small", { title: "tokens in and out" }, `${tokensText} tok`) : el("div", null, tokensText)];
  return [[priced ? "Cost" : "Tokens", (row) => (row.used && (priced ? row.used.cost : row.used.tokens)) ?? NaN, (row) => (row.used ? el("div", null, show(row.used)) : "–")]];
}

const COLUMNS = [
  ["Ended as", (row) => kindOf(row.kind)[0], (row) => mark(row.kind)],
  ["Episode", (row) => row.episode.id, (row) => el("a.one-line", { href: linkTo(row), title: row.episode.id }, row.episode.id)],
  ["Policy", (row) => row.run.name, (row) => keyOf(row.run)],
  EXAM.place,
  ["Instruction and what happened", (row) => row.episode.text, (row) => el("div", null, el("div.clamp", null, row.episode.text), el("div.clamp.dim", null, row.say))],
  ...EXAM.numbers(),
  ...usageColumns(),
];

let shown = ROWS;
let rendered = 0;
let order = { column: null, down: false };

const linkTo = (row) => `#ep=${encodeURIComponent(row.episode.id)}&run=${encodeURIComponent(row.run.name)}`;

function option(value, text) {
  return el("option", { value }, text);
}

function setUpTable() {
  $("f-run").append(option("", "all"), ...RUNS.map((run) => option(run.index, run.name)));
  const kinds = kindsUsed();
  $("f-kind").append(option("", "anything"), option("failure", "any failure"), ...kinds.flatMap((kind) => [option(kind, kindOf(kind)[0]),
    ...REASONS.filter((reason) => reason.kind === kind).map((reason) => option(reason.value, `– ${reason.words}`))]));
  $("clear").before(...EXAM.filters.map(([group, title, none], index) => el("label", null, title,
    el("select", { id: `f-group${index}` }, option("", none), ...valuesOf(group).map((value) => option(value, value))))));
  $("filters").addEventListener("input", applyFilters);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => setFilters({}));
  const head = COLUMNS.map(([name], column) => el("th", { scope: "col", "data-column": column, class: column >= NUMERIC_FROM ? "number" : "" },
    el("button", { type: "button", onclick: () => sortBy(column) }, name)));
  $("table").tHead.append(el("tr", null, ...head));
  $("table").classList.toggle("has-cost", usageColumns().length > 0);
  $("table").tBodies[0].addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line && !event.target.closest("a")) location.hash = linkTo(ROWS[Number(line.dataset.row)]);
  });
  new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && renderMore(), { rootMargin: "600px" }).observe($("more"));
  $("rows-note").textContent = EXAM.rowsNote() && ` · ${EXAM.rowsNote()}`;
  applyFilters();
}

function setFilters(values) {
  $("filters").reset();
  for (const [id, value] of Object.entries(values)) $(id).value = value;
  applyFilters();
}

function applyFilters() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [run, kind] = ["f-run", "f-kind"].map((id) => $(id).value);
  const groups = EXAM.filters.map(([group], index) => [EXAM.groups[group], $(`f-group${index}`).value]);
  shown = ROWS.filter((row) =>
    (run === "" || row.r === Number(run)) &&
    (kind === "" || row.kind === kind || reasonOf(row) === kind || (kind === "failure" && row.kind !== "success" && scored(row))) &&
    groups.every(([valueOf, wanted]) => wanted === "" || String(valueOf(row)) === wanted) &&
    words.every((word) => row.haystack.includes(word)));
  sortShown();
  renderTable();
}

function sortBy(column) {
  const numeric = column >= NUMERIC_FROM;
  order = order.column === column ? { column, down: !order.down } : { column, down: numeric };
  sortShown();
  renderTable();
}

function sortShown() {
  if (order.column === null) return;
  const keyOf = COLUMNS[order.column][1];
  const sign = order.down ? -1 : 1;
  const keys = new Map(shown.map((row) => [row, keyOf(row)]));
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  shown.sort((a, b) => {
    const [x, y] = [keys.get(a), keys.get(b)];
    if (typeof x === "string") return sign * compare(x, y) || a.index - b.index;
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.index - b.index;
    return sign * (x - y) || a.index - b.index;
  });
}

function renderTable() {
  $("table").tBodies[0].replaceChildren();
  rendered = 0;
  renderMore();
  $("count").textContent = shown.length === ROWS.length ? `${plural(ROWS.length, "row")}` : `${shown.length} of ${plural(ROWS.length, "row")}`;
  for (const cell of $("table").tHead.rows[0].cells) {
    const mine = Number(cell.dataset.column) === order.column;
    cell.setAttribute("aria-sort", mine ? (order.down ? "descending" : "ascending") : "none");
  }
}

function renderMore(most = CHUNK) {
  const next = shown.slice(rendered, rendered + most);
  rendered += next.length;
  $("table").tBodies[0].append(...next.map((row) => el("tr", { "data-row": row.index },
    ...COLUMNS.map(([name, keyOf, show], column) => el("td", { "data-name": name, class: column >= NUMERIC_FROM ? "number" : "" }, show(row, keyOf(row)))))));
  $("more").textContent = rendered < shown.length ? `${shown.length - rendered} more below` : "";
}
