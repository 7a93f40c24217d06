// Knobs: a slider and a number for each control. They tell whether they are still being turned.
import { h, number } from "./chart.js";

export class Knobs {
  constructor(host, turned) { this.host = host; this.turned = turned; this.values = {}; this.each = new Map(); }

  show(knobs, values) {
    const same = this.list && this.list.length === knobs.length && this.list.every((k, i) => k.name === knobs[i].name && k.low === knobs[i].low && k.words === knobs[i].words && k.high === knobs[i].high);
    this.list = knobs;
    this.values = Object.fromEntries(knobs.map((k) => [k.name, values[k.name] ?? k.value]));
    if (!same) {
      this.each.clear();
      this.host.replaceChildren(...knobs.map((knob) => this.make(knob)));
    }
    this.sync();
  }

  make(knob) {
    const id = `knob-${knob.name}-${Math.random().toString(36).slice(2, 7)}`;
    const range = h("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": `${knob.words}, ${knob.symbol}`, "data-knob": knob.name });
    const box = h("input", { type: "number", step: "any", id, min: knob.low, max: knob.high, "data-knob": knob.name });
    range.addEventListener("input", () => this.turn(knob, this.value(knob, range.value), false));
    range.addEventListener("change", () => this.turn(knob, this.value(knob, range.value), true));
    box.addEventListener("change", () => box.value !== "" && this.turn(knob, Number(box.value), true));
    this.each.set(knob.name, { knob, range, box });
    return h("div", { class: "knob" }, h("div", { class: "top" }, h("label", { for: id }, h("span", {}, `${knob.words}, `), h("b", {}, knob.symbol)), box), range);
  }

  value(knob, place) {
    const share = Number(place) / 1000;
    if (share === 0) return knob.low;
    if (share === 1) return knob.high;
    const value = knob.log ? knob.low * (knob.high / knob.low) ** share : knob.low + share * (knob.high - knob.low);
    return Number(value.toPrecision(3));
  }

  turn(knob, value, done) { this.values[knob.name] = value; this.sync(); this.turned(this.values, done, knob.name); }

  set(values) { Object.assign(this.values, values); this.sync(); }

  sync() {
    for (const [name, { knob, range, box }] of this.each) {
      const v = this.values[name], share = knob.log ? Math.log(v / knob.low) / Math.log(knob.high / knob.low) : (v - knob.low) / (knob.high - knob.low);
      range.value = Math.round(1000 * share);
      range.setAttribute("aria-valuetext", number(v));
      if (document.activeElement !== box || Number(box.value) !== v) box.value = Number(v.toPrecision(6));
    }
  }
}
