// Charts as SVG: axes, lines that break, bands, regions with hatching, points with errors. No library.
const NS = "http://www.w3.org/2000/svg";
let count = 0;

export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  set(node, attributes);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function s(tag, attributes = {}, ...children) {
  const node = document.createElementNS(NS, tag);
  set(node, attributes);
  node.append(...children);
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else node.setAttribute(name, value);
  }
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(Math.max(digits - 2, 1)).replace("e+", "e").replace("-", "−");
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

function ticks(axis, room) {
  const { low, high } = axis;
  if (axis.log) {
    const decades = Math.log10(high / low);
    const leads = decades > 4 ? [1] : decades > 1.6 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
    const found = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
      for (const lead of leads) {
        const value = Number((lead * 10 ** k).toPrecision(3));
        if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
      }
    const most = Math.max(2, Math.floor(room / 46));
    return found.length > most ? found.filter((_, i) => i % Math.ceil(found.length / most) === 0) : found;
  }
  const rough = (high - low) / Math.max(2, Math.floor(room / 70));
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = base * ([1, 2, 2.5, 5, 10].find((k) => k * base >= rough) ?? 10);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function place(axis, from, to) {
  const f = axis.log ? Math.log : (v) => v;
  const a = f(axis.low), b = f(axis.high);
  return (value) => from + ((f(value) - a) / (b - a || 1)) * (to - from);
}

function unplace(axis, from, to) {
  const f = axis.log ? Math.log : (v) => v, g = axis.log ? Math.exp : (v) => v;
  const a = f(axis.low), b = f(axis.high);
  return (pixel) => g(a + ((pixel - from) / (to - from)) * (b - a));
}

// An axis label that fits: words and symbol, or the last of them.
function fitting(label, room) { return label.length * 6.5 <= room ? label : label.slice(label.lastIndexOf(", ") + 1).trim(); }

export function extent(values, { pad = 0.06, zero = false, least = 1e-9 } = {}) {
  const known = values.filter((v) => Number.isFinite(v));
  if (!known.length) return { low: 0, high: 1 };
  let low = Math.min(...known), high = Math.max(...known);
  if (zero) { low = Math.min(low, 0); high = Math.max(high, 0); }
  const room = Math.max(high - low, least, Math.abs(high) * 1e-6) * pad;
  const flat = high - low < least ? Math.max(Math.abs(high) * 0.1, least) : 0;
  return { low: zero && low === 0 ? 0 : low - room - flat, high: high + room + flat };
}

export class Chart {
  constructor(host, { height = 320, label, wait = "Computing …" } = {}) {
    this.host = host;
    host.classList.add("chart");
    this.height = height;
    this.label = label;
    this.id = `hatch${count++}`;
    this.spec = null;
    this.legend = h("ul", { class: "legend" });
    host.after(this.legend);
    this.say(wait);
    new ResizeObserver(() => this.spec && this.redraw()).observe(host);
  }

  say(words) {
    this.host.querySelector(".wait")?.remove();
    if (words && !this.spec) { this.host.style.minHeight = `${this.height}px`; this.host.append(h("div", { class: "wait" }, words)); }
  }

  clear(words) { this.spec = null; this.host.replaceChildren(); this.legend.replaceChildren(); this.say(words); }

  draw(spec) { this.spec = spec; this.redraw(); }

  redraw() {
    const { spec } = this, width = Math.max(260, this.host.clientWidth), height = Math.min(this.height, Math.max(240, width * 0.85));
    const right = 14, top = 12, bottom = 46, marks = ticks(spec.y, (height - top - bottom) * 1.6);
    const left = Math.max(58, 32 + 7.2 * Math.max(0, ...marks.map((v) => number(v).length))); // room for numbers beside the label
    this.x = place(spec.x, left, width - right);
    this.y = place(spec.y, height - bottom, top);
    this.unx = unplace(spec.x, left, width - right);
    this.uny = unplace(spec.y, height - bottom, top);
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": spec.label ?? this.label });
    if (spec.drag) svg.classList.add("drag");
    const clip = `${this.id}clip`;
    svg.append(s("defs", {},
      s("clipPath", { id: clip }, s("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom })),
      s("pattern", { id: this.id, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        s("line", { x1: 0, y1: 0, x2: 0, y2: 7, class: "hatchline", "stroke-width": 2 }))));
    for (const value of ticks(spec.x, width - left - right)) {
      const x = this.x(value);
      svg.append(s("line", { class: "grid", x1: x, x2: x, y1: top, y2: height - bottom }), s("text", { class: "axis", x, y: height - bottom + 17, "text-anchor": "middle" }, number(value)));
    }
    for (const value of marks) {
      const y = this.y(value);
      svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: y, y2: y }), s("text", { class: "axis", x: left - 7, y: y + 4, "text-anchor": "end" }, number(value)));
    }
    svg.append(s("text", { class: "axis", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, spec.x.label));
    svg.append(s("text", { class: "axis", x: 14, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + height - bottom) / 2})` }, fitting(spec.y.label, height - 8)));
    const inner = s("g", { "clip-path": `url(#${clip})` }), over = s("g");
    for (const layer of spec.layers) this.add(layer, inner, over, { left, right, top, bottom, width, height });
    svg.append(inner, s("rect", { class: "frame", x: left, y: top, width: width - left - right, height: height - top - bottom }), over);
    this.host.style.minHeight = "";
    const focused = this.host.contains(document.activeElement) && document.activeElement.dataset?.mark;
    const wait = this.host.querySelector(".wait");
    this.host.replaceChildren(svg);
    if (wait && spec.wait) this.host.append(wait);
    this.svg = svg;
    if (focused) svg.querySelector(`[data-mark="${focused}"]`)?.focus({ preventScroll: true });
    this.legend.replaceChildren(...spec.layers.filter((l) => l.name).map((l) => h("li", {}, swatch(l), l.name)));
    spec.after?.(this);
  }

  path(points) {
    let d = "", pen = false;
    for (const p of points) {
      if (!p || !Number.isFinite(p[0]) || !Number.isFinite(p[1]) || (this.spec.y.log && p[1] <= 0)) { pen = false; continue; }
      d += `${pen ? "L" : "M"}${this.x(p[0]).toFixed(2)} ${this.y(p[1]).toFixed(2)}`;
      pen = true;
    }
    return d;
  }

  add(layer, inner, over, room) {
    const colour = layer.colour ?? 6;
    if (layer.kind === "line") inner.append(s("path", { class: `line s${colour}`, d: this.path(layer.points), "stroke-dasharray": layer.dash, "stroke-width": layer.width }));
    if (layer.kind === "area") {
      const d = `M${layer.points.map(([x, y]) => `${this.x(x).toFixed(2)} ${this.y(y).toFixed(2)}`).join("L")}Z`;
      inner.append(s("path", layer.hatch ? { d, fill: `url(#${this.id})` } : { d, class: `shade f${colour}` }));
    }
    if (layer.kind === "band") {
      const known = layer.points.filter((p) => p.every(Number.isFinite)), floor = this.spec.y.log ? this.spec.y.low : -Infinity;
      const d = [...known.map(([x, low]) => [x, Math.max(low, floor)]), ...known.map(([x, , high]) => [x, Math.max(high, floor)]).reverse()];
      if (d.length) inner.append(s("path", { class: `shade f${colour}`, d: `M${d.map(([x, y]) => `${this.x(x).toFixed(2)} ${this.y(y).toFixed(2)}`).join("L")}Z` }));
    }
    if (layer.kind === "bars") layer.heights.forEach((v, i) => inner.append(s("rect", { class: `shade f${colour}`, x: this.x(layer.edges[i]), width: Math.max(0, this.x(layer.edges[i + 1]) - this.x(layer.edges[i]) - 1), y: this.y(v), height: Math.max(0, this.y(0) - this.y(v)) })));
    if (layer.kind === "dots") layer.points.forEach(([x, y, error], i) => {
      if (!Number.isFinite(x) || !Number.isFinite(y)) return;
      const px = this.x(x), py = this.y(y), c = Array.isArray(colour) ? colour[i] : colour;
      if (Number.isFinite(error)) inner.append(s("line", { class: `s${c}`, x1: px, x2: px, y1: this.y(y - error), y2: this.y(y + error), "stroke-width": 1.5 }));
      const r = layer.on === i ? (layer.r ?? 4) + 3 : layer.r ?? 4;
      const dot = s("circle", { class: `f${c}`, cx: px, cy: py, r, "stroke-width": layer.on === i ? 3 : 0, stroke: "currentColor", "fill-opacity": layer.soft ? 0.65 : 1 });
      if (layer.pick) { dot.style.cursor = "pointer"; dot.addEventListener("click", (event) => { event.stopPropagation(); layer.pick(i); }); }
      inner.append(dot);
    });
    if (layer.kind === "vline") inner.append(s("line", { class: layer.className ?? "guide", x1: this.x(layer.x), x2: this.x(layer.x), y1: room.top, y2: room.height - room.bottom }));
    if (layer.kind === "hline") inner.append(s("line", { class: `line s${colour}`, x1: room.left, x2: room.width - room.right, y1: this.y(layer.y), y2: this.y(layer.y), "stroke-dasharray": layer.dash ?? "6 4", "stroke-width": 1.6 }));
    if (layer.kind === "ticks") for (const x of layer.xs) inner.append(s("line", { class: `s${colour}`, x1: this.x(x), x2: this.x(x), y1: room.height - room.bottom, y2: room.height - room.bottom - (layer.length ?? 14), "stroke-width": 2 }));
    if (layer.kind === "text") {
      const x = this.x(layer.x), [a, b] = layer.avoid ? [this.x(layer.avoid[0]), this.y(layer.avoid[1])] : [-99, -99];
      let y = this.y(layer.y);
      if (Math.abs(x - a) < 14 + 4.5 * layer.text.length && Math.abs(y - b) < 20) y = b + (y < b || b > room.height - room.bottom - 40 ? -24 : 24); // beside the dot, not below it
      over.append(s("text", { class: layer.className ?? "region", x, y: y + 4, "text-anchor": "middle" }, layer.text));
    }
    if (layer.kind === "mark") over.append(s("circle", { class: "mark", cx: this.x(layer.x), cy: this.y(layer.y), r: 8, tabindex: 0, role: "slider", "data-mark": layer.mark, "aria-label": layer.label, "aria-valuetext": layer.text, "aria-valuenow": layer.y, onkeydown: layer.key }));
    if (layer.kind === "cup") {
      const x = this.x(layer.x), y = this.y(layer.y);
      over.append(s("path", { class: `cup s${colour}`, d: `M${x - 22} ${y - 26}Q${x - 12} ${y} ${x} ${y}T${x + 22} ${y - 26}` }), s("text", { x, y: y + 17, "text-anchor": "middle" }, layer.text));
    }
    if (layer.kind === "ball") {
      const ball = s("circle", { class: "ball", cx: this.x(layer.x), cy: this.y(layer.y) - 9, r: 8 }), from = this.ball;
      this.ball = [this.x(layer.x), this.y(layer.y)];
      over.append(ball);
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (from && !still) ball.animate([{ transform: `translate(${from[0] - this.ball[0]}px, ${from[1] - this.ball[1]}px)` }, { transform: "none" }], { duration: layer.jump ? 600 : 120, easing: layer.jump ? "cubic-bezier(.5,0,.6,1.3)" : "linear" });
    }
  }

  // Pointer positions in the units of the axes, from the first press to the release.
  follow(move) {
    const at = (event) => {
      const box = this.svg.getBoundingClientRect(), scale = this.svg.viewBox.baseVal.width / box.width;
      const clamp = (axis, v) => Math.min(axis.high, Math.max(axis.low, v));
      return [clamp(this.spec.x, this.unx((event.clientX - box.left) * scale)), clamp(this.spec.y, this.uny((event.clientY - box.top) * scale))];
    };
    let held = false;
    this.host.addEventListener("pointerdown", (event) => {
      if (!this.spec || event.button) return;
      held = true; this.host.setPointerCapture?.(event.pointerId); event.preventDefault();
      move(...at(event), false, true);
    });
    this.host.addEventListener("pointermove", (event) => held && move(...at(event), false, false));
    const end = (event) => { if (held) { held = false; move(...at(event), true, false); } };
    this.host.addEventListener("pointerup", end);
    this.host.addEventListener("pointercancel", end);
  }

  // The picture as it is seen, as PNG: styles are written into a copy, because an image has no style sheet.
  async png() {
    const copy = this.svg.cloneNode(true), ground = getComputedStyle(document.documentElement).getPropertyValue("--card");
    const wanted = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-size", "font-weight", "font-family", "stroke-linejoin", "stroke-linecap", "paint-order"];
    const from = this.svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
    from.forEach((node, i) => { const style = getComputedStyle(node); for (const name of wanted) { const value = style.getPropertyValue(name); if (value && !(name === "fill" && node.getAttribute("fill")?.startsWith("url"))) to[i].setAttribute(name, value); } });
    const { width, height } = this.svg.viewBox.baseVal;
    copy.insertBefore(s("rect", { width, height, fill: ground.trim() }), copy.firstChild);
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = h("canvas", { width: width * 2, height: height * 2 }), pen = canvas.getContext("2d");
    pen.scale(2, 2); pen.drawImage(image, 0, 0, width, height);
    URL.revokeObjectURL(image.src);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }
}

function swatch(layer) {
  const mark = { line: () => s("line", { x1: 1, x2: 25, y1: 6, y2: 6, class: `s${layer.colour ?? 6}`, "stroke-width": 2.4, "stroke-dasharray": layer.dash }),
    hline: () => s("line", { x1: 1, x2: 25, y1: 6, y2: 6, class: `s${layer.colour ?? 6}`, "stroke-width": 1.8, "stroke-dasharray": "6 4" }),
    dots: () => s("circle", { cx: 13, cy: 6, r: 4, class: `f${layer.colour ?? 6}` }),
    ticks: () => s("line", { x1: 13, x2: 13, y1: 0, y2: 12, class: `s${layer.colour ?? 6}`, "stroke-width": 2 }),
    area: () => layer.hatch ? s("g", {}, ...[3, 9, 15, 21].map((x) => s("line", { x1: x, x2: x + 6, y1: 12, y2: 0, class: "hatchline", "stroke-width": 2 }))) : s("rect", { width: 26, height: 12, class: `shade f${layer.colour}` }),
    band: () => s("rect", { width: 26, height: 12, class: `shade f${layer.colour ?? 6}` }), bars: () => s("rect", { width: 26, height: 12, class: `shade f${layer.colour ?? 6}` }) }[layer.kind];
  return s("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, ...(mark ? [mark()] : []));
}
