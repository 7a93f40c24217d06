// Priors: points are drawn, priors are combined in words, the field and its band move; and the quantum well.
import { Chart, extent, h, number } from "./chart.js";
import { Knobs } from "./knobs.js";
import { ask, parse, refusal, remember, Tools } from "./main.js";

const KINDS = { values: "Values at places", density: "A density of places", well: "A quantum well" };
let about, ui, state, chart, second, tools, knobs, busy = false, again = false;

export function open(root, given) {
  about = given.priors;
  const tick = (name, words) => { const box = h("input", { type: "checkbox", "data-prior": name }); box.addEventListener("change", () => { state[name] = box.checked; turnable(); ask_(); }); ui[name] = box; return h("label", { class: "tick" }, box, words); };
  const pickOne = (name, options, words) => { const box = h("select", { "data-prior": name }, options.map((o) => h("option", { value: o }, o === "none" ? "no shape" : o))); box.addEventListener("change", () => { state[name] = box.value; ask_(); }); ui[name] = box; return h("label", { class: "field" }, words, box); };
  ui = { kinds: h("div", { class: "buttons" }), knobs: h("div"), problems: h("div"), words: h("p", { "data-words": "", role: "status" }), chart: h("div"), second: h("div"), note: h("p", { class: "note" }) };
  ui.buttons = Object.entries(KINDS).map(([kind, words]) => h("button", { type: "button", "data-kind": kind, onclick: () => { if (state.kind !== kind) set({ kind, points: [] }); } }, words));
  ui.kinds.append(...ui.buttons);
  ui.prior = h("div", {}, h("h2", {}, "The prior"), pickOne("order", about.orders, "Smooth: little"), tick("periodic", "& periodic"), tick("symmetric", "& symmetric about the middle"), pickOne("shape", about.shapes, "& near this shape"), pickOne("other", about.shapes, "| or that shape"));
  ui.example = h("div", { class: "buttons" }, about.wells.map((w) => h("button", { type: "button", "data-example": w, onclick: () => { state.points = []; state.example = w; ask_(); } }, `200 positions in ${/^[aeiou]/.test(w) ? "an" : "a"} ${w}`)));
  root.append(h("h1", {}, "What do you know before you look?"), h("p", { class: "lead" }, "Tap on the picture to draw data. Say what else is known, in words, and see the field and its band move."),
    h("div", { class: "layout" }, h("aside", { class: "card first" }, ui.kinds, ui.example, h("div", { class: "buttons" }, h("button", { type: "button", "data-undo": "", onclick: () => { state.points.pop(); state.example = ""; ask_(); } }, "Undo the last point"), h("button", { type: "button", onclick: () => { state.points = []; state.example = ""; ask_(); } }, "Clear"))),
      h("div", { class: "stack pictures" }, ui.problems, h("section", { class: "card", "aria-label": "Field" }, ui.words, ui.chart, ui.note), ui.secondCard = h("section", { class: "card", "aria-label": "Density of positions" }, h("div", { class: "head" }, h("h2", {}, "Density of positions")), ui.second)), h("aside", { class: "card" }, ui.prior, ui.knobs)));
  chart = new Chart(ui.chart, { height: 400, label: "Field with its band" });
  second = new Chart(ui.second, { height: 240, label: "Density of positions" });
  tools = new Tools(chart, "field");
  ui.note.after(tools.node);
  knobs = new Knobs(ui.knobs, (now, done) => { state.knobs = { ...state.knobs, ...now }; ask_(done); });
  chart.follow((x, y, done, first) => { if (first) add(x, y); });
  second.follow((x, y, done, first) => { if (first && state.kind === "well") add(x, y); });
}

function add(x, y) {
  if (state.kind === "well") { const low = chart.spec.x.low, high = chart.spec.x.high; if (x < low || x > high) return; }
  const place = Number(Math.min(about.end, Math.max(0, x)).toFixed(2));
  if (state.example) { state.example = ""; state.points = []; }
  state.points.push(state.kind === "values" ? [place, Number(y.toFixed(2))] : [place]);
  ask_();
}

export function show(given) {
  set({ kind: KINDS[given.kind] ? given.kind : "values", points: parse(given.points, null), knobs: parse(given.knobs, {}), order: given.order, periodic: given.periodic === "true", symmetric: given.symmetric === "true", shape: given.shape, other: given.other, example: given.example });
}

const FIRST = { values: [[2, 1], [4, 1.6], [5, -0.5], [7.5, 0.5]], density: [[2], [2.4], [3.1], [6.2], [7], [7.3]], well: [] };

function set(given) {
  const kind = given.kind;
  const points = Array.isArray(given.points) && given.points.length ? given.points : FIRST[kind].map((p) => [...p]);
  state = { kind, points, knobs: given.knobs ?? {}, order: about.orders.includes(given.order) ? given.order : about.orders[0], periodic: Boolean(given.periodic), symmetric: Boolean(given.symmetric), shape: about.shapes.includes(given.shape) ? given.shape : "none", other: about.shapes.includes(given.other) ? given.other : "none",
    example: kind === "well" ? (about.wells.includes(given.example) ? given.example : given.points?.length ? "" : about.wells[0]) : "" };
  ui.buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.kind === kind)));
  for (const name of ["order", "shape", "other"]) ui[name].value = state[name];
  for (const name of ["periodic", "symmetric"]) ui[name].checked = state[name];
  ui.prior.hidden = kind === "well"; ui.example.hidden = kind !== "well"; ui.secondCard.hidden = kind !== "well";
  turnable();
  chart.clear("Computing …"); second.clear("Computing …");
  ask_();
}

// The knobs that mean something for this prior.
function turnable() {
  knobs.show(state.kind === "well" ? about.well_knobs : about.knobs.filter(({ name }) => (name !== "noise" || state.kind === "values") && (name !== "mirror" || state.symmetric)), state.knobs);
  state.knobs = { ...state.knobs, ...knobs.values };
}

async function ask_() {
  const { kind, ...rest } = state;
  remember("priors", state);
  if (busy) { again = true; return; }
  busy = true; again = false;
  const asked = kind === "well" ? { points: rest.points, knobs: rest.knobs, ...(rest.example ? { example: rest.example } : {}) } : { kind, points: rest.points, knobs: rest.knobs, order: rest.order, periodic: rest.periodic, symmetric: rest.symmetric, shape: rest.shape, other: rest.other };
  const view = kind === "well" ? "well" : "field", answer = await ask(view, asked);
  busy = false;
  if (answer && kind === state.kind) {
    refusal(ui.problems, answer.refused);
    ui.chart.classList.toggle("old", Boolean(answer.refused));
    tools.set(view, asked, answer.refused ? "" : answer.script, answer.warned);
    if (answer.refused) blank(); else if (view === "well") drawWell(answer); else draw(answer);
  }
  if (again) ask_();
}

// With no answer there is still a line to draw points on.
function blank() {
  ui.words.textContent = ""; ui.note.textContent = "";
  chart.draw({ x: { low: 0, high: about.end, label: "place" }, y: { low: 0, high: 1, label: "" }, drag: true, layers: [{ kind: "ticks", colour: 1, xs: state.points.map((p) => p[0]) }] });
  second.clear(" ");
}

function draw(answer) {
  const values = state.kind === "values", known = answer.templates.flat();
  const y = values ? extent([...answer.low, ...answer.high, ...state.points.map((p) => p[1]), -2, 2]) : extent([...answer.high.filter((v) => v < 4 * Math.max(...answer.mean)), ...known], { zero: true });
  const layers = [{ kind: "band", colour: 0, points: answer.x.map((x, i) => [x, answer.low[i], answer.high[i]]), name: "90% band" },
    ...answer.shapes.map((name, k) => ({ kind: "line", colour: k + 1, dash: "6 4", width: 1.6, points: answer.x.map((x, i) => [x, answer.templates[k][i]]), name: answer.shapes.length > 1 ? `${name}: probability ${number(answer.probabilities[k], 3)}` : name })),
    { kind: "line", colour: 0, width: 2.8, points: answer.x.map((x, i) => [x, answer.mean[i]]), name: values ? "field" : "density" },
    values ? { kind: "dots", colour: 6, r: 5, points: state.points.map((p) => [...p, state.knobs.noise]), name: "data, with their noise" } : { kind: "ticks", colour: 6, xs: state.points.map((p) => p[0]), name: "data" }];
  chart.draw({ x: { low: 0, high: about.end, label: "place" }, y: { ...y, label: values ? "value" : "probability density" }, layers, drag: true });
  ui.words.replaceChildren(h("strong", {}, answer.words));
  ui.note.textContent = Number.isFinite(answer.log_evidence) ? `Logarithm of the evidence: ${number(answer.log_evidence)}. The larger, the better prior and data go together.` : "";
}

function drawWell(answer) {
  const line = (name) => answer.x.map((x, i) => [x, answer[name][i]]), t = answer.truth;
  const x = t ? { ...extent(answer.x, { pad: 0.04 }) } : { low: 0, high: about.end };
  const inner = answer.low.concat(answer.high, t ? t.V : []).filter(Number.isFinite).sort((a, b) => a - b), cut = (share) => inner[Math.floor(share * (inner.length - 1))];
  chart.draw({ x: { ...x, label: "place" }, y: { ...extent([cut(0), cut(0.94)]), label: "potential energy" }, drag: true, layers: [
    { kind: "band", colour: 0, points: answer.x.map((v, i) => [v, answer.low[i], answer.high[i]]), name: "90% band" },
    ...(t ? [{ kind: "line", colour: 1, dash: "6 4", points: t.x.map((v, i) => [v, t.V[i]]), name: "the truth" }] : []),
    { kind: "line", colour: 0, width: 2.8, points: line("potential"), name: "potential" },
    ...answer.energies.slice(0, 3).map((e, k) => ({ kind: "hline", colour: 2, dash: "2 4", y: e, name: k ? null : "energy levels" })),
    { kind: "ticks", colour: 6, xs: answer.positions, length: 9, name: "positions" }] });
  second.draw({ x: { ...x, label: "place" }, y: { ...extent(answer.density.concat(t ? t.P : []), { zero: true }), label: "probability density" }, drag: true, layers: [
    ...(t ? [{ kind: "line", colour: 1, dash: "6 4", points: t.x.map((v, i) => [v, t.P[i]]), name: "the truth" }] : []), { kind: "line", colour: 0, points: line("density"), name: "density in that potential" }, { kind: "ticks", colour: 6, xs: answer.positions, length: 9 }] });
  ui.words.replaceChildren(h("strong", {}, `${answer.positions.length} positions in, a potential out`));
  ui.note.textContent = `Positions leave a constant open: the zero is the mean over them. Lowest energies: ${answer.energies.slice(0, 3).map((e) => number(e, 3)).join(", ")} (with ħ = m = 1).`;
}
