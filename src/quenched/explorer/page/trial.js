// Run it: a simulation grows beside the line of the theory.
import { Chart, extent, h, number } from "./chart.js";
import { Knobs } from "./knobs.js";
import { ask, drop, go, parse, refusal, remember, shared, Tools } from "./main.js";

let about, ui, knobs, system, values, size, sizes, charts, tools, running = 0, found = new Map(), theory = null;
const info = () => about.systems[system];

export function open(root, given) {
  about = given;
  ui = {
    system: h("select", { onchange: () => { shared.system = ui.system.value; shared.knobs = {}; set(ui.system.value, {}, size); } }, Object.entries(about.systems).filter(([, one]) => !one.formula).map(([n, one]) => h("option", { value: n }, one.words))),
    knobs: h("div"), sizes: h("div", { class: "segments", role: "group", "aria-label": "Dimension N" }), begin: h("button", { type: "button", class: "main", "data-run": "", onclick: () => (running ? stop() : start()) }, "Run"),
    problems: h("div"), p: h("div", { class: "figures", "data-p": "" }), words: h("p", { class: "note", role: "status" }), charts: h("div", { class: "halves" }), note: h("p", { class: "note" }), compare: h("div"),
  };
  sizes = about.sizes.map((n) => h("button", { type: "button", "aria-pressed": "false", onclick: () => { stop(); size = n; paint(); address(); } }, `N = ${n}`));
  ui.sizes.append(...sizes);
  root.append(h("h1", {}, "Does the learner do what the theory says?"),
    h("p", { class: "lead" }, "The learner itself is run on random data, again and again. Its mean lands on the line of the theory, which was computed without any training; with more runs the error bars shrink, and in higher dimension so does what is left between them."),
    h("div", { class: "layout" }, h("aside", { class: "card first" }, h("label", { class: "field" }, "System", ui.system), h("p", { class: "small" }, "Dimension of the data"), ui.sizes, h("div", { class: "buttons" }, ui.begin, h("button", { type: "button", onclick: () => go("map", { system, knobs: values }) }, "See the map"))),
      h("div", { class: "stack pictures" }, ui.problems, h("section", { class: "card", "aria-label": "Agreement" }, h("div", { class: "head" }, h("h2", {}, "Agreement")), ui.p, ui.words, ui.note, ui.compare), h("section", { class: "card" }, h("div", { class: "head" }, h("h2", {}, "Theory and simulation")), ui.charts)), h("aside", { class: "card" }, ui.knobs)));
  tools = new Tools(null, "trial");
  ui.charts.after(tools.node);
  knobs = new Knobs(ui.knobs, (now, done) => { stop(); values = { ...now }; found = new Map(); if (done) { address(); paint(); line(); } });
  system = null;
}

export function show(state) {
  const runs = (name) => about.systems[name] && !about.systems[name].formula;
  const wanted = runs(state.system) ? state.system : runs(shared.system) ? shared.system : "lvq1";
  const given = state.knobs ? parse(state.knobs, {}) : wanted === shared.system ? shared.knobs : {};
  set(wanted, given, about.sizes.includes(Number(state.size)) ? Number(state.size) : 50);
}

function set(name, given, n) {
  stop();
  system = name; size = n; found = new Map();
  values = Object.fromEntries(info().knobs.map((k) => [k.name, typeof given[k.name] === "number" ? given[k.name] : k.value]));
  ui.system.value = system;
  knobs.show(info().knobs, values);
  theory = null;
  address();
  paint();
  line();
}

// The line of the theory is there before anything is run.
async function line() {
  const answer = await ask("theory", { system, knobs: { ...values } });
  if (!answer) return;
  theory = answer.refused ? false : answer;
  refusal(ui.problems, answer.refused);
  paint();
}

const address = () => { shared.system = system; shared.knobs = { ...values }; remember("run", { system, knobs: values, size }); };

function stop() { running = 0; drop("trial"); ui.begin.textContent = "Run"; }

async function start() {
  const mine = (running = Date.now());
  refusal(ui.problems, null);
  ui.begin.textContent = "Stop";
  const had = found.get(size)?.runs ?? 0;
  for (const runs of about.steps.filter((r) => r > had)) {
    ui.words.textContent = `Running the learner ${runs} times in ${size} dimensions …`;
    const asked = { system, knobs: { ...values }, size, runs }, answer = await ask("trial", asked, { slot: "trial" });
    if (!answer || running !== mine) return;
    if (answer.refused) { refusal(ui.problems, answer.refused); ui.words.textContent = ""; break; }
    found.set(size, { ...answer, asked });
    paint();
    if (answer.spent.seconds > 60) { ui.words.textContent += " More runs take minutes here: the lines of Python below do them."; break; }
  }
  if (running === mine) stop();
}

const chance = (one) => one.refused ? "–" : one.p > 0.99 ? "> 0.99" : one.p < 1e-4 ? "< 0.0001" : number(one.p, 2);

function paint() {
  sizes.forEach((b, i) => b.setAttribute("aria-pressed", String(about.sizes[i] === size)));
  const one = found.get(size);
  ui.compare.replaceChildren(found.size > 1 ? h("table", {}, h("thead", {}, h("tr", {}, ["N", "runs", "largest deviation", "p, no allowance", "p, allowance 1/N"].map((w) => h("th", { scope: "col" }, w)))),
    h("tbody", {}, [...found].sort((a, b) => a[0] - b[0]).map(([n, o]) => h("tr", {}, h("th", { scope: "row" }, String(n)), h("td", {}, String(o.runs)), h("td", {}, o.exact.refused ? "–" : `${number(o.exact.largest, 3)} s.e.`), h("td", {}, chance(o.exact)), h("td", {}, chance(o.rounded)))))) : "");
  if (!one) {
    ui.p.replaceChildren(h("p", { class: "empty" }, `Press Run: the learner is run in ${size} dimensions, first 10 times, then more.`));
    ui.words.textContent = ""; ui.note.textContent = "";
    tools.set(null, null, "");
    return draw(null);
  }
  const failed = one.failed ? `${one.failed} runs failed.` : "";
  ui.p.replaceChildren(
    h("div", {}, h("div", { class: "figure", "data-runs": "" }, String(one.runs)), `runs at N = ${one.size}`),
    h("div", {}, h("div", { class: "figure", "data-chance": "" }, chance(one.rounded)), `p-value, if 1/N = ${number(1 / one.size)} is allowed`),
    h("div", {}, h("div", { class: "figure" }, chance(one.exact)), "p-value without allowance"));
  ui.words.textContent = one.exact.refused ?? `${one.rounded.passed ? "Chance explains what is left." : "Chance does not explain what is left."} Largest deviation ${number(one.exact.largest, 3)} standard errors, at ${one.exact.where}. ${failed}`;
  ui.note.textContent = one.note;
  tools.set("trial", one.asked, one.script, one.warned);
  draw(one);
}

// A line without a slope across a jump.
function broken(x, line) {
  const steps = line.slice(1).map((v, i) => Math.abs(v - line[i])), sorted = steps.filter(Number.isFinite).sort((a, b) => a - b);
  const room = extent(line, { pad: 0 }), usual = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return line.flatMap((v, i) => (i && steps[i - 1] > Math.max(0.3 * (room.high - room.low), 8 * usual) ? [null, [x[i], v]] : [[x[i], v]]));
}

// The line of the theory, and the simulation on it if there is one.
function draw(one) {
  if (!one && !theory) { ui.charts.replaceChildren(h("p", { class: "empty" }, theory === null ? "Computing the theory …" : "The theory has no answer at these knobs.")); charts = null; return; }
  const names = Object.keys((one ?? theory).shown);
  if (!charts || charts.map((c) => c.name).join() !== names.join()) {
    ui.charts.replaceChildren();
    charts = names.map((name) => { const host = h("div"), box = h("div", {}, host); ui.charts.append(box); return { name, chart: new Chart(host, { height: 300, label: `${name}: theory and simulation` }) }; });
    tools.chart = charts[0].chart;
  }
  const along = (one ?? theory).along, knob = info().knobs.find((k) => k.name === along);
  const x = theory?.x ?? one.points, lines = (name) => theory?.shown[name] ?? one.shown[name].theory;
  for (const { name, chart } of charts) {
    const shown = one?.shown[name], all = lines(name).flat();
    if (shown) shown.mean.forEach((line, k) => line.forEach((v, i) => all.push(v + (shown.error[k][i] ?? 0), v - (shown.error[k][i] ?? 0))));
    const each = theory?.names?.[name] ?? [], several = each.length > 1;
    const layers = lines(name).map((line, k) => ({ kind: "line", colour: k % 7, points: along === "alpha" ? line.map((v, i) => [x[i], v]) : broken(x, line), name: several ? `theory, ${each[k]}` : k ? null : "theory (N → ∞)" }));
    if (shown) layers.push(...shown.mean.map((line, k) => ({ kind: "dots", colour: k % 7, points: line.map((v, i) => [one.points[i], v, shown.error[k][i]]), name: k ? null : `simulation, N = ${one.size}, with standard errors` })));
    chart.draw({ x: { ...extent(x), label: `${knob.words}, ${knob.symbol}` }, y: { ...extent(all), label: info().readings[name] ?? name }, layers });
  }
}
