// Your table: a CSV is dropped; density, forecast, doubtful rows and clusters follow.
import { Chart, extent, h, number } from "./chart.js";
import { ask, refusal, remember, Tools } from "./main.js";

let about, ui, state, table, parts, pair, chosen, clusters = null, doubts = null;

export function open(root, given) {
  about = given;
  ui = { drop: h("label", { class: "drop", "data-drop": "" }), file: h("input", { type: "file", accept: ".csv,text/csv", "data-file": "" }), problems: h("div", { "data-problems": "" }), bundled: h("div", { class: "buttons" }), body: h("div", { class: "stack" }), about: h("p", { class: "note", role: "status" }) };
  ui.drop.append(ui.file, h("strong", {}, "Drop a CSV file here"), h("div", { class: "small" }, `or choose one; at most ${Math.round(about.bytes / 2 ** 20)} MB. It stays on this machine.`));
  ui.file.addEventListener("change", () => ui.file.files[0] && upload(ui.file.files[0]));
  ui.drop.addEventListener("dragover", (e) => { e.preventDefault(); ui.drop.classList.add("over"); });
  ui.drop.addEventListener("dragleave", () => ui.drop.classList.remove("over"));
  ui.drop.addEventListener("drop", (e) => { e.preventDefault(); ui.drop.classList.remove("over"); if (e.dataTransfer.files[0]) upload(e.dataTransfer.files[0]); });
  ui.bundled.append(...about.tables.map((name) => h("button", { type: "button", "data-table": name, onclick: () => load({ table: name }) }, name.replace("_", " "))));
  root.append(h("h1", {}, "What does your table say, and how sure is that?"), h("p", { class: "lead" }, "Nothing needs to be set: a density with its band, a forecast for more rows, rows that are doubtful, and clusters."),
    h("div", { class: "layout" }, h("aside", { class: "card first" }, ui.drop, h("p", { class: "small" }, "or take one that comes with scikit-learn"), ui.bundled, ui.about, h("div", { "data-row": "" })), h("div", {}, ui.problems, ui.body)));
  state = {}; table = null;
}

export function show(given) {
  if (given.table && given.table === state.table && table) return;
  if (given.table) load(given); else ui.body.replaceChildren(h("div", { class: "card empty" }, "Drop a table, or choose one on the left."));
}

async function upload(file) {
  refusal(ui.problems, null);
  if (file.size > about.bytes) return refusal(ui.problems, `A table must have at most ${about.bytes.toLocaleString("en")} bytes, but it has ${file.size.toLocaleString("en")}.`);
  let answer;
  try { answer = await (await fetch(`/table?name=${encodeURIComponent(file.name)}`, { method: "POST", headers: { "Content-Type": "text/csv" }, body: file })).json(); }
  catch { answer = { refused: "The explorer does not answer. Is it still running in the terminal?" }; }
  ui.file.value = "";
  if (answer.refused) return refusal(ui.problems, answer.refused);
  load({ table: answer.table });
}

async function load(given) {
  refusal(ui.problems, null);
  ui.about.textContent = "Reading …";
  const answer = await ask("table", { table: given.table });
  if (!answer) return;
  if (answer.refused) { ui.about.textContent = ""; ui.body.replaceChildren(); table = null; return refusal(ui.problems, answer.refused); }
  table = answer; clusters = null; doubts = null; chosen = null;
  const names = Object.keys(table.frame);
  state = { table: given.table, column: names.includes(given.column) ? given.column : table.numeric[0] ?? names[0], target: names.includes(given.target) ? given.target : names[names.length - 1], model: about.learners.includes(given.model) ? given.model : about.learners[0], half: given.half === "true" };
  ui.about.textContent = `${table.name}: ${table.rows.toLocaleString("en")} rows, ${names.length} columns. ${table.notes.join(" ")}`;
  document.querySelectorAll("[data-table]").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.table === given.table)));
  build(names);
  pick(null);
  density(); forecast(); cluster(); doubtful();
}

const select = (options, value, change, label) => { const node = h("select", { "aria-label": label }, options.map((o) => h("option", { value: o, selected: o === value }, o))); node.addEventListener("change", () => change(node.value)); return node; };
const address = () => remember("table", state);

function build(names) {
  const targets = table.own ? names : ["target"];
  if (!table.own) state.target = "target";
  parts = {};
  const part = (name, words, height, ...controls) => {
    const host = h("div"), box = h("div"), note = h("p", { class: "note", "data-note": name }), section = h("section", { class: "card", "aria-label": words, "data-part": name }, h("div", { class: "head" }, h("h2", {}, words), h("span", { class: "inline buttons" }, controls)), box, host, note);
    const chart = new Chart(host, { height, label: words }), tools = new Tools(chart, name);
    note.after(tools.node);
    return (parts[name] = { chart, tools, note, box, section, host });
  };
  const half = h("button", { type: "button", "aria-pressed": String(state.half), "data-half": "" }, "Hide half of the rows");
  half.addEventListener("click", () => { state.half = !state.half; half.setAttribute("aria-pressed", String(state.half)); address(); forecast(); });
  part("density", "Density of a column", 300, select(table.numeric.length ? table.numeric : names, state.column, (v) => { state.column = v; address(); density(); }, "Column"));
  part("forecast", "Forecast: the error with more rows", 300, select(targets, state.target, (v) => { state.target = v; address(); forecast(); doubtful(); }, "Column to predict"), select(about.learners, state.model, (v) => { state.model = v; address(); forecast(); }, "Model"), half);
  part("clusters", "Clusters: tap a point to see its row", 320);
  part("doubtful", "Doubtful rows", 120);
  parts.list = h("div", { class: "scroll" });
  parts.doubtful.host.before(parts.list); parts.doubtful.host.hidden = true;
  ui.body.replaceChildren(h("div", { class: "halves" }, parts.density.section, parts.forecast.section), h("div", { class: "halves" }, parts.clusters.section, parts.doubtful.section));
  address();
}

async function answerOf(name, asked) {
  const part = parts[name];
  part.host.classList.add("old");
  if (!part.chart.spec) part.chart.say("Computing …");
  part.note.textContent = "Computing …";
  const answer = await ask(name, asked);
  if (!answer || part !== parts[name]) return null;
  part.host.classList.remove("old");
  refusal(part.box, answer.refused);
  part.note.textContent = "";
  part.tools.set(name, asked, answer.refused ? "" : answer.script, answer.refused ? [] : answer.warned.map((w) => w.replace("column 0", asked.column ?? "column 0")));
  if (answer.refused) { part.chart.clear(" "); return null; }
  return answer;
}

async function density() {
  const answer = await answerOf("density", { table: state.table, column: state.column });
  if (!answer) return;
  // beyond the rows only the prior speaks: little of that is drawn
  const values = answer.x, ends = [answer.edges[0], answer.edges[answer.edges.length - 1]], beyond = 0.1 * (ends[1] - ends[0]);
  const first = Math.max(0, values.findIndex((v) => v >= ends[0] - beyond)), last = values.findLastIndex((v) => v <= ends[1] + beyond);
  parts.density.chart.draw({ x: { low: values[first], high: values[last], label: state.column }, y: { ...extent([...answer.high.slice(first, last), ...answer.histogram].filter((v) => v < 3 * Math.max(...answer.density)), { zero: true }), label: "probability density" }, layers: [
    { kind: "bars", colour: 6, edges: answer.edges, heights: answer.histogram, name: "histogram" },
    { kind: "band", colour: 0, points: values.map((v, i) => [v, answer.low[i], answer.high[i]]), name: `${Math.round(100 * answer.level)}% band` },
    { kind: "line", colour: 0, points: values.map((v, i) => [v, answer.density[i]]), name: "density" }] });
  parts.density.note.textContent = `${answer.rows.toLocaleString("en")} rows. The data decide how smooth it is.`;
}

const GRADES = { A: "Grade A: the forecast's own checks found nothing wrong.", rough: "Grade rough: take it with care.", refused: "No forecast is given." };

async function forecast() {
  const answer = await answerOf("forecast", { table: state.table, target: state.target, model: state.model, half: state.half });
  if (!answer) return;
  const good = answer.x.map((v, i) => [v, answer.error[i], answer.error_low[i], answer.error_high[i]]).filter(([, v]) => Number.isFinite(v)), m = answer.measured, t = answer.truth;
  const xs = [...m.x, ...good.map((g) => g[0])], ys = [...m.error.flatMap((v, i) => [v, v + (m.stderr[i] ?? 0)]), ...good.flatMap((g) => g.slice(1)), ...(t ? [t.all_high, t.all_low, ...t.error.map((v, i) => v + (t.stderr[i] ?? 0))] : [])];
  const layers = [
    { kind: "band", colour: 0, points: good.map(([x, , low, high]) => [x, low, high]), name: `forecast, with its ${Math.round(100 * answer.level)}% interval` },
    { kind: "line", colour: 0, points: good.map(([x, y]) => [x, y]) },
    { kind: "dots", colour: 6, points: m.x.map((x, i) => [x, m.error[i], m.stderr[i]]), name: "measured in the rows it may see" },
    { kind: "vline", x: answer.rows }];
  if (t) layers.push({ kind: "dots", colour: 1, r: 5, points: [...t.x.map((x, i) => [x, t.error[i], t.stderr[i]]), [t.rows, t.all, (t.all_high - t.all_low) / 2]], name: "the truth, measured in all rows" });
  parts.forecast.chart.draw({ x: { low: Math.min(...xs) * 0.9, high: Math.max(...xs) * 1.1, log: true, label: "number of rows" }, y: { ...extent(ys, { zero: true }), label: answer.measure.includes("variance") ? "squared error, share of variance" : answer.measure }, layers });
  const met = t && good.find(([x]) => x === t.rows), words = [GRADES[answer.grade] ?? answer.grade, ...answer.reasons.split("\n")];
  if (met) words.push(`From ${answer.rows} of ${t.rows} rows: ${number(met[1], 3)} forecast for all of them (${number(met[2], 3)} to ${number(met[3], 3)}); the truth is ${number(t.all, 3)}, ${t.all >= met[2] && t.all <= met[3] ? "inside" : "outside"}.`);
  else if (good.length) { const last = good[good.length - 1]; words.push(`Error on new rows with ${last[0].toLocaleString("en")} rows: ${number(last[1], 3)} (${number(last[2], 3)} to ${number(last[3], 3)}).`); }
  const none = answer.unknown.find((r) => r); if (none) words.push(none);
  parts.forecast.note.textContent = words.filter(Boolean).join(" ");
}

async function cluster() {
  const answer = await answerOf("clusters", { table: state.table });
  if (!answer) return;
  clusters = answer;
  pair = [answer.best[0], answer.best[1] ?? answer.best[0]];
  scatter();
  const real = answer.splits.filter((one) => one.seen);
  parts.clusters.note.textContent = answer.count === 1 ? "One cluster: no split is certain." : `${answer.count} clusters, of ${answer.shares.map((v) => `${Math.round(100 * v)}%`).join(", ")} of the rows; ${real.map((one) => `${one.p < 1e-4 ? "p < 0.0001" : `p = ${number(one.p, 2)}`}`).join(", ")} for the splits.`;
}

function scatter() {
  if (!clusters || !table.frame[pair[0]]) return;
  const [a, b] = pair.map((n) => table.frame[n]), on = chosen, sure = new Set(doubts ? doubts.rows.filter((_, i) => doubts.probability[i] > 0.5).map((r) => r - 1) : []);
  parts.clusters.chart.draw({ x: { ...extent(a), label: pair[0] }, y: { ...extent(b), label: pair[1] }, layers: [
    { kind: "dots", colour: a.map((_, i) => (clusters.labels[i] ?? 6) % 7), points: a.map((v, i) => [v, b[i]]), r: 4, soft: true, pick, on },
    ...(sure.size ? [{ kind: "dots", colour: 6, r: 1.8, points: [...sure].filter((i) => i < a.length).map((i) => [a[i], b[i]]), name: "doubtful row (dark centre)" }] : []),
    ...clusters.shares.map((_, k) => ({ kind: "dots", colour: k % 7, points: [], name: `cluster ${k + 1}` }))] });
}

async function doubtful() {
  parts.list.replaceChildren();
  const answer = await answerOf("doubtful", { table: state.table, target: state.target });
  if (!answer) return;
  doubts = answer;
  const share = `${Math.round(100 * answer.share)}%, with a probability of 80% between ${Math.round(100 * answer.low)}% and ${Math.round(100 * answer.high)}%`;
  parts.doubtful.note.textContent = `Share of outliers in ${state.target}: ${answer.told ? share : "cannot be told"}. ${answer.count} rows are outliers more probably than not. ${answer.sentence}`;
  parts.list.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ["row", state.target, "probability"].map((w) => h("th", { scope: "col" }, w)))), h("tbody", {}, answer.rows.slice(0, 20).map((row, i) => {
    const line = h("tr", { class: "pick", tabindex: 0 }, h("td", {}, String(row)), h("td", {}, answer.target[i]), h("td", {}, answer.probability[i].toFixed(2)));
    line.addEventListener("click", () => pick(row - 1));
    line.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); pick(row - 1); } });
    return line;
  }))));
  scatter();
}

function pick(i) {
  chosen = i;
  const host = document.querySelector("[data-row]");
  if (i === null) { host.replaceChildren(); return; }
  host.replaceChildren(h("div", { class: "head" }, h("h2", {}, `Row ${i + 1}`)), h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, Object.entries(table.frame).map(([name, values]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, typeof values[i] === "number" ? number(values[i]) : String(values[i] ?? "beyond the rows shown"))))))));
  scatter();
}
