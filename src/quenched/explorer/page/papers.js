// Papers: every claim with its verdict, and the knobs that belong to it.
import { h } from "./chart.js";
import { ask, go, refusal, remember } from "./main.js";

let about, ui, state, known = null, timer = 0;

export function open(root, given) {
  about = given;
  ui = { papers: h("div", { class: "buttons" }), filters: h("div", { class: "buttons" }), title: h("h2"), reference: h("p", { class: "small" }), list: h("div", { class: "stack" }), problems: h("div") };
  ui.papers.append(...about.papers.map((name) => h("button", { type: "button", "data-paper": name, onclick: () => { state.paper = name; load(); } }, name)));
  root.append(h("h1", {}, "What became of the papers' claims?"), h("p", { class: "lead" }, "Every number and statement of five papers that can be checked, ours beside it. No verdict is typed: comparisons of numbers decide."),
    h("div", { class: "layout" }, h("aside", { class: "card first" }, ui.papers, ui.filters), h("div", {}, ui.problems, h("div", { class: "card" }, ui.title, ui.reference), h("br"), ui.list)));
}

export function show(given) {
  state = { paper: about.papers.includes(given.paper) ? given.paper : about.papers[0], verdict: given.verdict ?? "" };
  load();
}

async function load() {
  clearTimeout(timer);
  remember("papers", state);
  document.querySelectorAll("[data-paper]").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.paper === state.paper)));
  const answer = await ask("claims", { paper: state.paper });
  if (!answer) return;
  refusal(ui.problems, answer.refused || answer.running?.sentence);
  if (answer.refused) return;
  known = answer;
  ui.title.textContent = answer.title; ui.reference.textContent = answer.reference;
  if (!answer.claims) return waiting(answer);
  draw();
}

function waiting(answer) {
  ui.filters.replaceChildren();
  const { running } = answer;
  if (running.busy) {
    const left = running.left ? `about ${Math.max(1, Math.round(running.left / 60))} minutes left` : "";
    ui.list.replaceChildren(h("div", { class: "card empty", role: "status" }, `Computing figures and claims: ${Math.round(100 * running.share)}% `, h("progress", { max: 1, value: running.share }), ` ${left}`));
    timer = setTimeout(load, 2000);
    return;
  }
  const minutes = Math.max(1, Math.round(answer.seconds / 60));
  ui.list.replaceChildren(h("div", { class: "card empty" }, h("p", {}, `The claims of this paper have not been decided on this machine yet. That takes about ${minutes} minute${minutes > 1 ? "s" : ""} of processor time; finished steps are kept.`),
    h("button", { type: "button", class: "main", "data-decide": "", onclick: async () => { const reply = await ask("decide", { paper: state.paper }); if (reply?.refused) refusal(ui.problems, reply.refused); else load(); } }, "Decide them now")));
}

function draw() {
  const counts = Object.fromEntries(known.verdicts.map((v) => [v, known.claims.filter((c) => c.verdict === v).length]));
  const button = (verdict, words) => h("button", { type: "button", "aria-pressed": String(state.verdict === verdict), "data-verdict": verdict, onclick: () => { state.verdict = verdict; remember("papers", state); draw(); } }, words);
  ui.filters.replaceChildren(h("h2", { class: "wide" }, "Verdict"), button("", `all ${known.claims.length}`), ...known.verdicts.map((v) => button(v, `${v} ${counts[v]}`)));
  const order = ["refuted", "corrected", "not decidable", "reproduced"], shown = known.claims.filter((c) => !state.verdict || c.verdict === state.verdict).sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  ui.list.replaceChildren(...(shown.length ? shown.map(claim) : [h("div", { class: "card empty" }, "No claim has this verdict.")]));
}

function claim(one) {
  const knobs = one.knobs && h("button", { type: "button", "data-knobs": "", onclick: () => go("map", one.knobs) }, `Set the knobs to this (${Object.entries(one.knobs.knobs).map(([n, v]) => `${n} ${v}`).join(", ")})`);
  return h("article", { class: `claim ${one.verdict}` }, h("div", { class: "head" }, h("span", { class: "verdict" }, one.verdict), h("span", { class: "small" }, one.where)), h("p", {}, one.statement),
    h("dl", { class: "row" }, h("dt", {}, "printed"), h("dd", {}, one.printed), h("dt", {}, "ours"), h("dd", {}, one.ours), h("dt", {}, "evidence"), h("dd", {}, one.evidence)),
    one.checks.length ? h("details", { class: "code" }, h("summary", {}, "The numbers that decide"), h("pre", {}, one.checks.join("\n"))) : null, knobs ? h("div", { class: "buttons" }, knobs) : null);
}
