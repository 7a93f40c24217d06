// The page: tabs, the address that holds every state, questions to the server, and what all tabs share.
import { h } from "./chart.js";
import * as map from "./map.js";
import * as trial from "./trial.js";
import * as tables from "./tables.js";
import * as energy from "./energy.js";
import * as priors from "./priors.js";
import * as papers from "./papers.js";

const TABS = { map: ["Map", map], run: ["Run it", trial], table: ["Your table", tables], energy: ["Your energy", energy], priors: ["Priors", priors], papers: ["Papers", papers] };
const client = [...crypto.getRandomValues(new Uint32Array(4))].join("-"); // randomUUID is missing on other machines
let serial = 0, current = null;
const main = document.getElementById("content");

export const shared = { system: null, knobs: {}, formula: null };

// A question to the server. A newer one in the same slot makes an older one stale: that gives null.
const newest = new Map();
export async function ask(view, state, { slot = view, patient = false } = {}) {
  const mine = ++serial;
  newest.set(slot, mine);
  let answer;
  try {
    const reply = await fetch("/ask", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ view, state, client, slot, serial: mine, patient }) });
    answer = await reply.json();
  } catch {
    answer = { refused: "The explorer does not answer. Is it still running in the terminal?" };
  }
  if (answer.stale || newest.get(slot) !== mine) return null;
  if (answer.fault) answer.refused = `${answer.fault} (a fault of quenched, not of your input)`;
  return answer;
}

export function drop(slot) { newest.set(slot, ++serial); }

export function remember(tab, state) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    query.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  if (current === tab) history.replaceState(null, "", `#${tab}?${query}`);
}

export function go(tab, state) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) query.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  location.hash = `#${tab}?${query}`;
}

export function parse(text, otherwise) {
  try { const value = JSON.parse(text); return value ?? otherwise; } catch { return otherwise; }
}

export function toast(words) {
  document.getElementById("toast")?.remove();
  const note = h("div", { id: "toast", role: "status" }, words);
  document.body.append(note);
  setTimeout(() => note.remove(), 2400);
}

export async function copy(words, said) {
  try { await navigator.clipboard.writeText(words); toast(said); } catch { toast("The browser does not let pages copy: mark the text and copy it."); }
}

function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The row of buttons below a chart, with the lines of Python behind it.
export class Tools {
  constructor(chart, name) {
    this.chart = chart;
    this.code = h("pre", { tabindex: 0, "data-script": name });
    this.details = h("details", { class: "code" }, h("summary", {}, "Python that gives these numbers"), this.code);
    this.buttons = h("div", { class: "buttons" },
      h("button", { type: "button", "data-copy": name, onclick: () => { this.details.open = true; copy(this.script, "Copied as Python"); } }, "Copy as Python"),
      h("button", { type: "button", onclick: () => copy(location.href, "Copied the link") }, "Copy link"),
      h("button", { type: "button", "data-png": name, onclick: async () => this.chart.svg && save(await this.chart.png(), `quenched-${name}.png`) }, "PNG"),
      h("button", { type: "button", "data-netcdf": name, onclick: () => this.netcdf() }, "netCDF"));
    this.warned = h("p", { class: "note warned", "data-warned": name });
    this.node = h("div", { class: "tools" }, this.warned, this.buttons, this.details);
    this.set(null, null, "");
  }

  set(view, state, script, warned = []) {
    this.warned.textContent = warned.join(" ");
    this.view = view; this.state = state; this.script = script ?? "";
    this.code.textContent = this.script;
    this.node.hidden = !this.script;
  }

  async netcdf() {
    const reply = await fetch(`/save?view=${this.view}&state=${encodeURIComponent(JSON.stringify(this.state))}`);
    if (reply.headers.get("Content-Type") === "application/x-netcdf") save(await reply.blob(), `quenched-${this.view}.nc`);
    else toast((await reply.json()).refused ?? "It could not be saved.");
  }
}

export function refusal(host, sentence) {
  host.querySelector(":scope > .refusal")?.remove();
  if (sentence) host.prepend(h("div", { class: "refusal", role: "alert" }, sentence));
}

function colours() {
  const button = document.getElementById("theme"), kept = localStorage.getItem("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (theme) => { document.documentElement.dataset.theme = theme; };
  apply(kept ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => localStorage.getItem("theme") || apply(dark.matches ? "dark" : "light"));
  button.addEventListener("click", () => { const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; localStorage.setItem("theme", next); apply(next); });
}

async function warmth() {
  const host = document.getElementById("ready");
  try {
    const state = await (await fetch("/ready")).json();
    if (state.done >= state.of) { host.replaceChildren(h("span", {}, "Everything is ready")); setTimeout(() => host.replaceChildren(), 4000); return; }
    host.replaceChildren(h("span", {}, `Getting ready: ${state.now}`), h("progress", { max: state.of, value: state.done, "aria-label": `Getting ready: ${state.now}` }));
  } catch { host.replaceChildren("The explorer has stopped."); }
  setTimeout(warmth, 1500);
}

function route(about) {
  const [name, query] = location.hash.slice(1).split("?"), tab = TABS[name] ? name : "map";
  const state = Object.fromEntries(new URLSearchParams(query ?? ""));
  document.querySelectorAll("#tabs a").forEach((a) => (a.dataset.tab === tab ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current")));
  if (current !== tab) {
    current = tab;
    document.title = `${TABS[tab][0]} · quenched explorer`;
    const root = h("div", { "data-panel": tab });
    main.replaceChildren(root);
    TABS[tab][1].open(root, about);
  }
  TABS[tab][1].show(state);
}

async function begin() {
  colours();
  document.getElementById("tabs").append(...Object.entries(TABS).map(([name, [words]]) => h("a", { href: `#${name}`, "data-tab": name }, words)));
  try {
    const about = await (await fetch("/about")).json();
    addEventListener("hashchange", () => route(about));
    route(about);
    warmth();
  } catch { main.replaceChildren(h("p", { class: "empty" }, "The explorer does not answer. Is it still running in the terminal?")); }
}

begin();
