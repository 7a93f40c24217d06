// The map: phase diagram with a dot, states as wells, and the cut through the dot; for prototypes learning curves.
import { Chart, extent, h, number } from "./chart.js";
import { Knobs } from "./knobs.js";
import { ask, drop, go, parse, refusal, remember, shared, Tools } from "./main.js";

const COLOURS = { informed: 0, ordered: 0, overfit: 1, random: 1, misled: 1, trivial: 2, unsplit: 2, blind: 2, partial: 3 };
const colour = (state) => COLOURS[state] ?? COLOURS[state.split("_")[0]] ?? 4;
let about, system, values, formula, reading, ball, knobs, ui, diagram, wells, cutChart, cutTools, mapTools, flowChart, overlapChart, flowTools;
let columns = new Map(), cuts = new Map(), family = "", latest = null, busy = false, queued = null, generation = 0;

const info = () => about.systems[system];
const axisOf = (knob) => ({ low: knob.low, high: knob.high, log: knob.log, label: `${knob.words}, ${knob.symbol}` });
const others = () => JSON.stringify([system, formula, ...info().knobs.slice(2).map((k) => values[k.name])]);
const ofWhat = () => (info().formula ? { system, formula } : { system });
const question = () => ({ ...ofWhat(), knobs: { ...values } });

export function open(root, given) {
  about = given;
  const names = Object.entries(about.systems);
  ui = {
    system: h("select", { "aria-label": "System", "data-system": "", onchange: () => choose(ui.system.value, {}) }, names.map(([n, one]) => h("option", { value: n }, one.words))),
    preset: h("select", { onchange: () => { const one = about.presets[ui.preset.value]; if (one) choose(one.system, one.knobs); ui.preset.value = ""; } },
      h("option", { value: "" }, "Set the knobs to a figure …"), about.presets.map((p, i) => h("option", { value: i }, p.words))),
    formula: h("input", { type: "text", maxlength: about.energies.longest, spellcheck: "false", autocomplete: "off", list: "energies", "aria-label": "Energy of the field y", "data-formula": "" }),
    lead: h("p", { class: "lead" }), knobs: h("div"), status: h("span", { class: "badge", role: "status", "data-status": "" }, ""),
    table: h("div"), ballWords: h("p", { class: "note", "data-ball": "" }), progress: h("span", { class: "small", "data-columns": "" }),
    reads: h("p", { class: "note" }, "Where two colours meet without a line, one state turns into the other without a jump."), diagram: h("div"), wells: h("div"), cut: h("div"), reading: h("select", { "aria-label": "Order parameter", onchange: () => { reading = ui.reading.value; address(); drawCut(); } }),
    flow: h("div"), overlaps: h("div"), flowNote: h("p", { class: "note" }), problems: h("div", { "data-problems": "" }),
  };
  ui.phases = h("div", { class: "stack" },
    h("div", { class: "pair" },
      h("section", { class: "card", "aria-label": "Phase diagram" }, h("div", { class: "head" }, h("h2", {}, "Phase diagram"), ui.progress), ui.diagram),
      h("section", { class: "card", "aria-label": "States at the dot" }, h("div", { class: "head" }, h("h2", {}, "States at the dot")), ui.wells, ui.ballWords)),
    h("section", { class: "card", "aria-label": "Cut through the dot" }, h("div", { class: "head" }, h("h2", {}, "Along the cut through the dot"), h("span", { class: "inline" }, ui.reading)), ui.cut));
  ui.curves = h("div", { class: "stack" },
    h("section", { class: "card" }, h("div", { class: "head" }, h("h2", {}, "Learning curve")), ui.flow, ui.flowNote),
    h("section", { class: "card" }, h("div", { class: "head" }, h("h2", {}, "Overlaps")), ui.overlaps));
  ui.energy = h("label", { class: "field" }, "Energy of one example, in its field y", ui.formula, h("datalist", { id: "energies" }, Object.values(about.energies.energies).map((one) => h("option", { value: one }))));
  ui.formula.addEventListener("change", () => { formula = ui.formula.value; ball = null; refresh(true); });
  ui.run = h("button", { type: "button", onclick: () => (info().formula ? go("energy", { formula, knobs: values }) : go("run", { system, knobs: values })) });
  root.append(h("h1", {}, "Where does learning work?"), ui.lead, h("div", { class: "layout" },
    h("aside", { class: "card first" }, h("label", { class: "field" }, "System", ui.system), h("label", { class: "field" }, "Presets", ui.preset), ui.energy),
    h("div", { class: "pictures" }, ui.problems, ui.phases, ui.curves),
    h("aside", { class: "card" }, ui.knobs,
      h("div", { class: "head" }, h("h2", {}, "Values at the dot"), ui.status), ui.table,
      h("div", { class: "buttons" }, ui.run))));
  diagram = new Chart(ui.diagram, { height: 420, label: "Phase diagram" });
  wells = new Chart(ui.wells, { height: 330, label: "States as wells at their free energies" });
  cutChart = new Chart(ui.cut, { height: 330, label: "Order parameter along the cut" });
  flowChart = new Chart(ui.flow, { height: 340, label: "Learning curve" });
  overlapChart = new Chart(ui.overlaps, { height: 320, label: "Overlaps" });
  cutTools = new Tools(cutChart, "cut"); mapTools = new Tools(diagram, "lines"); flowTools = new Tools(flowChart, "flow");
  diagram.legend.after(ui.reads, mapTools.node); cutChart.legend.after(cutTools.node); ui.flowNote.after(flowTools.node);
  knobs = new Knobs(ui.knobs, (now, done) => { values = { ...now }; refresh(done); });
  diagram.follow((x, y, done) => { const [a, b] = info().knobs; values[a.name] = round(x); values[b.name] = round(y); knobs.set(values); refresh(done); });
  family = ""; latest = null; system = null;
}

const round = (v) => Number(v.toPrecision(4));

export function show(state) {
  const wanted = about.systems[state.system] ? state.system : shared.system ?? "mixtures";
  const given = state.knobs ? parse(state.knobs, {}) : wanted === shared.system ? shared.knobs : {};
  ball = state.ball ?? null;
  reading = state.reading ?? null;
  formula = state.formula ?? (wanted === shared.system ? shared.formula : null) ?? Object.values(about.energies.energies)[0];
  choose(wanted, given, true);
}

function choose(name, given, keep = false) {
  if (!keep) { ball = null; reading = null; }
  system = name;
  values = Object.fromEntries(info().knobs.map((k) => [k.name, typeof given[k.name] === "number" ? given[k.name] : k.value]));
  ui.system.value = system;
  ui.lead.textContent = info().about;
  ui.energy.hidden = !info().formula; ui.formula.value = formula;
  ui.run.textContent = info().formula ? "See the learning curve" : "Simulate here";
  const map = info().columns[0] > 0;
  ui.phases.hidden = !map; ui.curves.hidden = map;
  if (!(reading in info().readings)) reading = Object.keys(info().readings)[0];
  ui.reading.replaceChildren(...Object.entries(info().readings).map(([n, words]) => h("option", { value: n, selected: n === reading }, words)));
  knobs.show(info().knobs, values);
  latest = null;
  for (const chart of [cutChart, wells, flowChart, overlapChart]) chart.clear("Computing …");
  refresh(true);
}

function address() {
  shared.system = system; shared.knobs = { ...values }; shared.formula = formula;
  remember("map", { ...ofWhat(), knobs: values, ball, reading });
}

function status(words, kind = "") { ui.status.textContent = words; ui.status.className = `badge ${kind}`; }

function refresh(done) {
  address();
  if (!info().columns[0]) return flow(done);
  if (family !== others()) restart();
  if (!done) preview();
  drawMap();
  request("cut", done);
}

// One question at a time while a knob is turned; the last one is always asked.
async function request(view, done) {
  if (busy) { queued = view; return; }
  busy = true; queued = null;
  if (done || ui.status.textContent !== "interpolated") status("computing …");
  const asked = question(), answer = await ask(view, asked);
  busy = false;
  if (answer && asked.system === system) {
    refusal(ui.problems, answer.refused);
    const current = JSON.stringify(asked) === JSON.stringify(question());
    for (const host of [ui.cut, ui.wells, ui.flow, ui.overlaps]) host.classList.toggle("old", Boolean(answer.refused));
    if (answer.refused) { status("no answer"); cutTools.set(null, null, ""); flowTools.set(null, null, ""); ui.table.replaceChildren(); ui.ballWords.textContent = ""; }
    else if (view === "cut") {
      if (family === others()) cuts.set(answer.x, answer);
      if (current) { latest = answer; cutTools.set("cut", asked, answer.script); showState(stateOf(answer), true); drawCut(); drawMap(); if (answer.coarse) refine(asked); }
    } else if (current) { flowTools.set("flow", asked, answer.script); drawFlow(answer); status("exact", "exact"); rest(asked, answer); }
  }
  if (queued) request(queued, done);
}

// The diagram: column after column, the coarse ones first.
async function restart() {
  family = others();
  const mine = ++generation, [count, chunk] = info().columns, [, y] = info().knobs;
  columns = new Map(); cuts = new Map();
  drop("lines");
  diagram.clear("Computing the phase diagram …");
  mapTools.set(null, null, "");
  const order = [];
  if (chunk >= count) order.push([...Array(count).keys()]);
  else for (let step = 8; step >= 1; step /= 2) for (let i = 0; i < count; i += step) if (!order.some(([k]) => k === i)) order.push([i]);
  const state = { ...ofWhat(), knobs: { ...values, [info().knobs[0].name]: info().knobs[0].value, [y.name]: y.value } };
  for (const some of order) {
    const answer = await ask("lines", { ...state, columns: some }, { slot: "lines", patient: chunk < count });
    if (mine !== generation || !answer) return;
    if (answer.refused) { diagram.clear(answer.refused); ui.progress.textContent = ""; return; }
    for (const column of answer.columns) { columns.set(column.x, column); if (column.cut) cuts.set(column.x, column.cut); }
    mapTools.set("lines", { ...state, columns: chunk >= count ? some : [...Array(count).keys()] }, answer.script);
    ui.progress.textContent = columns.size < count ? `${columns.size} of ${count} columns` : "";
    drawMap();
  }
  // a grid for the time while the dot is dragged
  if (chunk >= count) {
    const xs = [...columns.keys()].sort((a, b) => a - b);
    for (let i = 0; i < xs.length; i += 5) {
      const answer = await ask("cut", { ...state, knobs: { ...state.knobs, [info().knobs[0].name]: xs[i] } }, { slot: "grid", patient: true });
      if (mine !== generation || !answer) return;
      if (!answer.refused) cuts.set(answer.x, answer);
    }
  }
}

function drawMap() {
  if (!info().columns[0]) return;
  const [xk, yk] = info().knobs, x = axisOf(xk), y = axisOf(yk), layers = [], names = new Map();
  const known = [...columns.values()].sort((a, b) => a.x - b.x);
  if (!known.length) return;
  const runs = known.map((c) => regions(c, y));
  const middle = (i, j) => Math.sqrt(known[i].x * known[j].x);
  known.forEach((c, i) => {
    const from = i ? middle(i - 1, i) : x.low, to = i < known.length - 1 ? middle(i, i + 1) : x.high;
    for (const [low, high, region] of runs[i]) {
      const state = region ?? "no state";
      const room = (high - low) * Math.log(to / from), best = names.get(state);
      names.set(state, { area: (best?.area ?? 0) + room, wide: Math.max(best?.wide ?? 0, high - low), all: [...(best?.all ?? []), { x: c.x, low, high, room }] });
    }
    const same = (a, b) => a && b && a.map((r) => r[2]).join() === b.map((r) => r[2]).join();
    for (const [sign, j, edge] of [[-1, i - 1, from], [1, i + 1, to]]) {
      const meet = same(runs[i], runs[j]);
      runs[i].forEach(([low, high, state], k) => {
        if (state === null) return;
        const at = (v, w) => { const t = meet ? Math.abs(Math.log(edge / c.x) / Math.log(known[j].x / c.x)) : 0; return v + (w - v) * t; };
        const [l, u] = meet ? [at(low, runs[j][k][0]), at(high, runs[j][k][1])] : [low, high];
        layers.push({ kind: "area", colour: colour(state), points: [[c.x, low], [c.x, high], [edge, u], [edge, l]] });
      });
      const both = c.broken.length === known[j]?.broken.length;
      c.broken.forEach(([low, high], k) => {
        const t = both ? Math.abs(Math.log(edge / c.x) / Math.log(known[j].x / c.x)) : 0, o = both ? known[j].broken[k] : [low, high];
        layers.push({ kind: "area", hatch: true, points: [[c.x, low], [c.x, high], [edge, high + (o[1] - high) * t], [edge, low + (o[0] - low) * t]] });
      });
    }
  });
  const walls = new Map(), folds = new Map();
  known.forEach((c) => {
    c.walls.forEach(([v, above, below]) => { const n = `${above}|${below}`; (walls.get(n) ?? walls.set(n, new Map()).get(n)).set(c.x, v); });
    Object.entries(c.spinodals).forEach(([n, v]) => (folds.get(n) ?? folds.set(n, new Map()).get(n)).set(c.x, v));
    if (Number.isFinite(c.symmetry)) (folds.get("symmetry") ?? folds.set("symmetry", new Map()).get("symmetry")).set(c.x, c.symmetry);
  });
  // No slope is drawn across a jump: least of all where other states meet than in the column before.
  const kinds = known.map((c) => Object.keys(c.spinodals).sort().join());
  const smooth = (line, ends) => {
    const points = known.map((c) => (line.has(c.x) ? [c.x, line.get(c.x)] : null)), found = [];
    const steps = points.slice(1).map((p, i) => (p && points[i] ? Math.abs(p[1] - points[i][1]) : null)).filter((v) => v !== null).sort((a, b) => a - b);
    const usual = steps[Math.floor(steps.length / 2)] ?? 0, most = Math.max(0.18 * (y.high - y.low), 6 * usual);
    const joined = (i) => points[i] && points[i + 1] && Math.abs(points[i][1] - points[i + 1][1]) <= (kinds[i] === kinds[i + 1] ? most : 3 * usual);
    points.forEach((p, i) => {
      if (!p) { found.push(null); return; }
      if (i && !joined(i - 1)) { found.push(null); if (ends) found.push([middle(i - 1, i), p[1]]); } // as far as its regions reach
      found.push(p);
      if (ends && i < points.length - 1 && !joined(i)) found.push([middle(i, i + 1), p[1]]);
    });
    return found;
  };
  let first = true;
  for (const line of walls.values()) { layers.push({ kind: "line", colour: 6, width: 2.6, points: smooth(line, true), name: first ? "the state of least free energy changes" : null }); first = false; }
  first = true;
  for (const [name, line] of folds) if (name !== "symmetry") { layers.push({ kind: "line", colour: 3, width: 1.4, dash: "5 4", points: smooth(line), name: first ? "a state begins or ends (spinodal)" : null }); first = false; }
  if (known.some((c) => c.broken.length)) layers.push({ kind: "area", hatch: true, points: [[x.low, y.low], [x.low, y.low], [x.low, y.low]], name: "replica symmetry is broken: the theory is an approximation" });
  for (const [state, one] of names) {
    if (one.wide < 0.1 * (y.high - y.low) || one.area < 0.02 * (y.high - y.low) * Math.log(x.high / x.low)) continue;
    const wide = one.all.filter((c) => c.high - c.low > 0.7 * one.wide), best = wide[Math.floor(wide.length / 2)];
    layers.push({ kind: "text", text: state.replace("_", " "), x: Math.min(Math.max(best.x, x.low * 1.8), x.high / 1.8), y: (best.low + best.high) / 2, avoid: [values[xk.name], values[yk.name]] });
  }
  layers.push({ kind: "vline", x: values[xk.name] });
  layers.push({ kind: "mark", mark: "dot", x: values[xk.name], y: values[yk.name], label: `The dot: ${xk.words} and ${yk.words}. Arrow keys move it.`, text: `${xk.symbol} = ${number(values[xk.name])}, ${yk.symbol} = ${number(values[yk.name])}`, key: steer });
  diagram.draw({ x, y, layers, drag: true, label: `Phase diagram of ${info().words}: ${[...names.keys()].join(", ")}` });
}

function regions(column, y) {
  const found = [], { walls } = column, beyond = walls.find(([v]) => v <= y.low);
  let top = y.high;
  for (const [value, above] of walls) if (value < top && value > y.low) { found.push([value, top, above]); top = value; }
  found.push([y.low, top, beyond ? beyond[1] : walls.length ? walls[walls.length - 1][2] : column.only]);
  return found;
}

function steer(event) {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!moves) return;
  event.preventDefault();
  const size = event.shiftKey ? 0.1 : 0.02;
  info().knobs.slice(0, 2).forEach((k, i) => {
    const v = k.log ? values[k.name] * (k.high / k.low) ** (moves[i] * size) : values[k.name] + moves[i] * size * (k.high - k.low);
    values[k.name] = round(Math.min(k.high, Math.max(k.low, v)));
  });
  knobs.set(values);
  refresh(true);
}

// What is at the dot: exactly from a cut through it, roughly between cuts.
function stateOf(cut) {
  const at = cut.y.findIndex((v) => Math.abs(v - cut.at) <= 1e-12 * Math.max(1, Math.abs(cut.at)));
  const found = {};
  for (const [name, one] of Object.entries(cut.branches)) {
    const values = Object.fromEntries([...Object.keys(info().readings), "stability", "level"].map((r) => [r, one[r]?.[at] ?? null]));
    if (values.level !== null) found[name] = { ...values, lowest: one.lowest[at] };
  }
  return found;
}

function preview() {
  const [xk, yk] = info().knobs, x = values[xk.name], y = values[yk.name], xs = [...cuts.keys()].sort((a, b) => a - b);
  if (!xs.length) return;
  const right = xs.find((v) => v >= x) ?? xs[xs.length - 1], left = [...xs].reverse().find((v) => v <= x) ?? xs[0];
  const t = right === left ? 0 : Math.log(x / left) / Math.log(right / left), found = {};
  const along = (cut, name, r) => {
    const one = cut.branches[name], j = cut.y.findIndex((v) => v >= y);
    if (!one || j < 0) return null;
    const i = Math.max(0, j - 1), a = one[r]?.[i] ?? null, b = one[r]?.[j] ?? null;
    if (a === null || b === null) return a ?? b;
    return i === j ? b : a + ((b - a) * (y - cut.y[i])) / (cut.y[j] - cut.y[i]);
  };
  for (const name of new Set([...Object.keys(cuts.get(left).branches), ...Object.keys(cuts.get(right).branches)])) {
    const one = {};
    for (const r of [...Object.keys(info().readings), "stability", "level"]) {
      const a = along(cuts.get(left), name, r), b = along(cuts.get(right), name, r);
      one[r] = a === null || b === null ? (t < 0.5 ? a : b) : a + (b - a) * t;
    }
    if (one.level !== null && Number.isFinite(one.level)) found[name] = one;
  }
  const least = Math.min(...Object.values(found).map((o) => o.level));
  for (const one of Object.values(found)) one.lowest = one.level === least;
  if (latest?.x === x) latest = { ...latest, at: y };
  showState(found, false);
  if (latest) drawCut();
}

function showState(states, exact) {
  status(exact ? "exact" : "interpolated", exact ? "exact" : "about");
  const names = Object.keys(states), lowest = names.find((n) => states[n].lowest);
  const before = ball;
  if (!names.includes(ball)) ball = lowest ?? names[0] ?? null;
  const jump = before && before !== ball;
  if (exact) address();
  const rows = [...Object.entries(info().readings), ["stability", "stability (below 1 holds)"]];
  ui.table.replaceChildren(names.length ? h("div", { class: "scroll" }, h("table", { "data-values": "" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), names.map((n) => h("th", { scope: "col" }, n.replace("_", " "))))),
    h("tbody", {}, rows.map(([r, words]) => h("tr", {}, h("th", { scope: "row", title: words }, r), names.map((n) => h("td", { "data-value": `${n}.${r}`, title: states[n][r] }, r === "stability" && states[n][r] === null ? "∞" : number(states[n][r])))))))) : h("p", { class: "note" }, "No state was found here."));
  const first = Object.keys(info().readings)[0];
  ui.ballWords.textContent = !ball ? "" : jump ? `The ${before.replace("_", " ")} state has ended: the ball went to the ${ball.replace("_", " ")} one, of least free energy.`
    : ball === lowest || !lowest ? `The ball is in the ${ball.replace("_", " ")} state, which has the least free energy here.`
    : `The ball stays in the ${ball.replace("_", " ")} state, although the ${lowest?.replace("_", " ")} one has less free energy: it leaves only where its own well ends (hysteresis).`;
  if (!names.length) return wells.clear("No state was found here.");
  const xs = names.map((n) => states[n][first]), fs = names.map((n) => states[n].level), y = extent(fs, { pad: 0.6, least: 0.02 });
  y.low -= 0.05 * (y.high - y.low); y.high += 0.12 * (y.high - y.low);
  const x = extent([...xs, 0, 1], { pad: 0.22 });
  wells.draw({ x: { ...x, label: info().readings[first] }, y: { ...y, label: "free energy" }, label: `States: ${names.join(", ")}`, layers: [
    ...names.map((n) => ({ kind: "cup", x: states[n][first], y: states[n].level, text: n.replace("_", " "), colour: colour(n) })),
    { kind: "ball", x: states[ball][first], y: states[ball].level, jump }] });
}

function drawCut() {
  if (!latest) return;
  const [xk, yk] = info().knobs, layers = [], all = [];
  for (const [name, one] of Object.entries(latest.branches)) {
    const points = latest.y.map((v, i) => [v, one[reading]?.[i] ?? NaN]);
    all.push(...points.map((p) => p[1]));
    const solid = points.map((p, i) => (one.lowest[i] ? p : null));
    const dashed = points.map((p, i) => (!one.lowest[i] || !one.lowest[i - 1] || !one.lowest[i + 1] ? p : null));
    layers.push({ kind: "line", colour: colour(name), points: dashed, dash: "5 5", width: 1.6 }, { kind: "line", colour: colour(name), points: solid, width: 2.8, name: name.replace("_", " ") });
    const ends = latest.ends[name] ?? [];
    if (ends.length) layers.push({ kind: "ticks", colour: colour(name), xs: ends });
  }
  layers.push({ kind: "vline", x: values[yk.name] });
  cutChart.draw({ x: axisOf(yk), y: { ...extent(all, { pad: 0.08 }), label: info().readings[reading] }, layers, label: `${info().readings[reading]} over ${yk.words} at ${xk.symbol} = ${number(latest.x)}` });
  const note = latest.lost.length ? `Some points have no answer (${latest.lost.join(", ")}).` : "";
  const words = `At ${xk.symbol} = ${number(latest.x)}. Thick: least free energy; dashed: other states${Object.keys(latest.ends).length ? "; short ticks: where a state begins or ends (spinodals)" : ""}. ${note}`;
  let line = ui.cut.parentElement.querySelector(".cutnote");
  if (!line) { line = h("p", { class: "note cutnote" }); cutChart.legend.after(line); }
  line.textContent = words;
}

function flow(done) { request("flow", done); }

// Where states begin and end follows when it is known.
async function refine(asked) {
  const fine = { ...asked, fine: true }, answer = await ask("cut", fine, { slot: "fine" });
  if (!answer || answer.refused || JSON.stringify(asked) !== JSON.stringify(question())) return;
  latest = answer; cutTools.set("cut", fine, answer.script, answer.warned); drawCut();
}

// Where the curve ends follows when it is known.
async function rest(asked, curve) {
  const answer = await ask("rest", asked);
  if (!answer || JSON.stringify(asked) !== JSON.stringify(question())) return;
  drawFlow({ ...curve, end: answer.end ?? null, why: answer.refused ?? answer.why });
  if (!answer.refused) flowTools.set("flow", asked, [curve.script, ...answer.script.split("\n").slice(2)].join("\n"), curve.warned);
}

function drawFlow(answer) {
  const x = { low: 0, high: values.alpha, label: "examples per dimension, α" }, points = (ys) => answer.x.map((v, i) => [v, ys[i]]);
  const lines = [{ kind: "line", colour: 0, points: points(answer.error), width: 2.8, name: "error" }];
  if (Number.isFinite(answer.end)) lines.push({ kind: "hline", colour: 1, y: answer.end, name: "in the end (α → ∞)" });
  lines.push({ kind: "hline", colour: 2, y: answer.best, dash: "2 4", name: "the best that is possible" });
  flowChart.draw({ x, y: { ...extent([...answer.error, answer.end ?? answer.best, answer.best], { zero: true }), label: "generalisation error" }, layers: lines });
  const shown = [...Object.entries(answer.R), ...Object.entries(answer.Q)];
  overlapChart.draw({ x, y: { ...extent(shown.flatMap(([, v]) => v)), label: "overlap" }, layers: shown.map(([name, v], i) => ({ kind: "line", colour: i % 7, dash: name[0] === "Q" ? "6 4" : null, points: points(v), name })) });
  ui.flowNote.textContent = [answer.why, answer.lost.length ? `The curve ends early: ${answer.lost.join(", ")}.` : "", "R: overlap of a prototype with a cluster's centre; Q: of prototypes with each other."].filter(Boolean).join(" ");
  const last = answer.error[answer.error.length - 1];
  ui.table.replaceChildren(h("table", { "data-values": "" }, h("tbody", {}, h("tr", {}, h("th", { scope: "row" }, `error at α = ${number(values.alpha)}`), h("td", { "data-value": "error", title: last }, number(last))),
    h("tr", {}, h("th", { scope: "row" }, "in the end"), h("td", { "data-end": "" }, answer.end === undefined ? "…" : number(answer.end))), h("tr", {}, h("th", { scope: "row" }, "best possible"), h("td", {}, number(answer.best))))));
}
