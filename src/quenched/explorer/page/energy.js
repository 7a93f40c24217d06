// Your energy: a formula in the field of one example, and what a learner that minimises it does.
import { Chart, extent, h, number } from "./chart.js";
import { Knobs } from "./knobs.js";
import { ask, go, parse, refusal, remember, Tools } from "./main.js";

let about, ui, state, knobs, curve, shape, tools, asked = 0;

export function open(root, given) {
  about = given.energies;
  ui = { formula: h("input", { type: "text", id: "formula", maxlength: about.longest, spellcheck: "false", autocomplete: "off", "data-formula": "" }), presets: h("div", { class: "buttons" }), problems: h("div", { "data-problems": "" }), curve: h("div"), shape: h("div"), note: h("p", { class: "note", role: "status", "data-note": "energy" }), knobs: h("div") };
  ui.formula.addEventListener("change", () => { state.formula = ui.formula.value; compute(); });
  ui.presets.append(...Object.entries(about.energies).map(([name, formula]) => h("button", { type: "button", "data-energy": name, onclick: () => { state.formula = ui.formula.value = formula; compute(); } }, name)));
  root.append(h("h1", {}, "How well will a learner do that minimises this?"), h("p", { class: "lead" }, "Two classes lie at a distance m on either side of the middle, in many dimensions. The learner is linear: the field y of an example is its projection times its label. Write down the energy of one example; the theory follows, without any training."),
    h("div", { class: "layout" }, h("aside", { class: "card first" }, h("label", { class: "field", for: "formula" }, "Energy of the field y", ui.formula), ui.presets, h("p", { class: "note" }, `y, Q (the squared length of the learner), numbers, + - * / ** and ${about.functions.join(", ")}.`)),
      h("div", { class: "stack pictures" }, ui.problems, h("section", { class: "card", "aria-label": "Angle with the truth" }, h("div", { class: "head" }, h("h2", {}, "How near the learner comes to the truth")), ui.curve, ui.note), h("section", { class: "card", "aria-label": "The energy" }, h("div", { class: "head" }, h("h2", {}, "The energy of one example")), ui.shape)),
      h("aside", { class: "card" }, ui.knobs, h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => go("map", { system: "energy", formula: state.formula, knobs: state.knobs }) }, "See the map")))));
  curve = new Chart(ui.curve, { height: 360, label: "Cosine of the angle with the truth" });
  shape = new Chart(ui.shape, { height: 220, label: "Energy of one example" });
  tools = new Tools(curve, "energy");
  ui.note.after(tools.node);
  knobs = new Knobs(ui.knobs, (now) => { state.knobs = { ...now }; compute(); });
}

export function show(given) {
  state = { formula: given.formula ?? Object.values(about.energies)[0], knobs: parse(given.knobs, {}) };
  ui.formula.value = state.formula;
  knobs.show(about.knobs, state.knobs);
  state.knobs = { ...knobs.values };
  compute();
}

async function compute() {
  const mine = ++asked, question = { formula: state.formula, knobs: { ...state.knobs } };
  remember("energy", state);
  document.querySelectorAll("[data-energy]").forEach((b) => b.setAttribute("aria-pressed", String(about.energies[b.dataset.energy] === state.formula)));
  ui.note.textContent = "Computing … (a new formula is compiled first, for some seconds)";
  const answer = await ask("energy", question);
  if (!answer || mine !== asked) return;
  refusal(ui.problems, answer.refused);
  for (const host of [ui.curve, ui.shape]) host.classList.toggle("old", Boolean(answer.refused));
  tools.set("energy", question, answer.refused ? "" : answer.script, answer.warned);
  ui.note.textContent = "";
  if (answer.refused) { for (const chart of [curve, shape]) if (!chart.spec) chart.clear(" "); return; }
  draw(answer);
}

function draw(answer) {
  const x = { low: answer.x[0], high: answer.x[answer.x.length - 1], log: true, label: "examples per dimension, α" }, points = (name) => answer.x.map((v, i) => [v, answer[name][i] ?? NaN]);
  const hatched = [], edge = (i, j) => Math.sqrt(answer.x[i] * (answer.x[j] ?? answer.x[i])), y = extent([...answer.cosine, ...answer.stability.filter((v) => v < 1.2), 0, 1]);
  answer.broken.forEach((on, i) => { if (on) hatched.push({ kind: "area", hatch: true, points: [[edge(i, i - 1), y.low], [edge(i, i - 1), y.high], [edge(i, i + 1), y.high], [edge(i, i + 1), y.low]], name: hatched.length ? null : "replica symmetry is broken: the theory is an approximation" }); });
  curve.draw({ x, y: { ...y, label: "cosine of the angle, stability" }, layers: [...hatched,
    { kind: "line", colour: 0, width: 2.8, points: points("cosine"), name: "cosine of the angle with the truth" },
    { kind: "line", colour: 3, dash: "6 4", width: 1.6, points: points("stability"), name: "stability (below 1 the theory holds)" }] });
  shape.draw({ x: { low: answer.field[0], high: answer.field[answer.field.length - 1], label: "field of an example, y" }, y: { ...extent(answer.energy), label: "energy, at Q = 1" }, layers: [{ kind: "line", colour: 1, points: answer.field.map((v, i) => [v, answer.energy[i] ?? NaN]) }] });
  const last = answer.x.length - 1, m = state.knobs.separation;
  ui.note.textContent = [`At α = ${number(answer.x[last])}: cosine ${number(answer.cosine[last])}, R = ${number(answer.R[last])}, Q = ${number(answer.Q[last])}, with m = ${number(m)}.`, answer.lost.length ? `Some points have no answer (${answer.lost.join(", ")}).` : ""].filter(Boolean).join(" ");
}
