// SPDX-License-Identifier: MIT
// The online softmax by hand: six scores, block after block, in FP32 as a kernel has it.
import { checkbox, h, select, state, svg, take } from "./dom.js";

// Those of the figure in background/attention.md.
const SCORES = "1,3,2,5,4,0";
const VALUES = "10,20,30,40,50,60";
const SIZE = 3;
const COUNT = 6;

// The picture: a column for each key, scores above, weights below.
const LEFT = 78, COLUMN = 58, TOP = 22, TALL = 110, WEIGHTS = TOP + TALL + 40, LOW = 56;
const LEAST = -2; // of the scale of scores; its top follows the largest score

const exp = (x) => Math.fround(Math.exp(Math.fround(x)));
const show = (x) => (Number.isFinite(x) ? String(Number(x.toPrecision(5))) : Number.isNaN(x) ? "NaN" : x > 0 ? "∞" : "−∞");

function numbers(text, fallback) {
  const parsed = (text ?? "").split(",").map(Number);
  return parsed.length === COUNT && parsed.every(Number.isFinite) ? parsed : fallback.split(",").map(Number);
}

/** What is known after each block: {block, m, alpha, p, l, o}. */
export function steps(scores, values, size, withMaximum) {
  let m = withMaximum ? -Infinity : 0;
  let l = 0;
  let o = 0;
  const found = [];
  for (let first = 0; first < COUNT; first += size) {
    const block = scores.slice(first, first + size);
    const next = withMaximum ? Math.max(m, ...block) : 0;
    const alpha = exp(m - next);
    const p = block.map((s) => exp(s - next));
    l = Math.fround(l * alpha + p.reduce((a, b) => Math.fround(a + b), 0));
    o = Math.fround(o * alpha + p.reduce((sum, each, i) => Math.fround(sum + each * values[first + i]), 0));
    m = next;
    found.push({ first, block, m, alpha, p, l, o });
  }
  return found;
}

/** The softmax of all six at once, in FP64. */
export function whole(scores, values) {
  const m = Math.max(...scores);
  const p = scores.map((s) => Math.exp(s - m));
  const l = p.reduce((a, b) => a + b, 0);
  return p.reduce((sum, each, i) => sum + each * values[i], 0) / l;
}

class SoftmaxWidget {
  constructor(place) {
    this.place = place;
    this.scores = numbers(state.get("s"), SCORES);
    this.values = numbers(state.get("v"), VALUES);
    this.size = Number(state.get("block")) || SIZE;
    this.withMaximum = state.get("max") !== "no";
    this.step = 1;
    this.picture = h("div", { class: "fa-wide fa-whole", tabindex: "0", role: "region", "aria-label": "blocks" });
    this.said = h("p", { class: "fa-says" });
    this.says = h("p", { role: "status" });
    this.slider = h("input", { type: "range", min: 1, "aria-label": "block", oninput: () => { this.step = Number(this.slider.value); this.show(); } });
    this.scoreFields = this.field("Scores", "scores");
    take(place, h("div", { class: "fa-form" },
      this.scoreFields, this.field("Values", "values"),
      select("keys in a block", [1, 2, 3, 6], this.size, (value) => this.change({ size: Number(value), step: 1 })),
      checkbox("take off the maximum", this.withMaximum, (withMaximum) => this.change({ withMaximum, step: 1 }))),
      h("div", { class: "fa-runner" },
        h("button", { type: "button", class: "fa-run", onclick: () => this.go(1) }, "Next block"),
        h("button", { type: "button", onclick: () => this.go(-1) }, "Back"), h("label", { class: "fa-scrub" }, "block ", this.slider)),
      this.picture, this.said, this.says);
    this.show();
  }

  field(label, name) {
    const input = h("input", { type: "text", size: 16, value: this[name].join(","),
      onchange: () => { this.change({ [name]: numbers(input.value, this[name].join(",")), step: 1 }); input.value = this[name].join(","); } });
    return h("label", {}, `${label} `, input);
  }

  change(values) {
    Object.assign(this, values);
    state.set("s", this.scores.join(","));
    state.set("v", this.values.join(","));
    state.set("block", this.size);
    state.set("max", this.withMaximum ? null : "no");
    this.show();
  }

  go(by) {
    this.step = Math.min(Math.max(this.step + by, 1), Math.ceil(COUNT / this.size));
    this.show();
  }

  /** The top of the scale of scores, and where a score is on it. */
  get most() {
    return Math.max(6, ...this.scores);
  }

  y(score) {
    const at = Math.min(Math.max(score, LEAST), this.most);
    return TOP + TALL * (1 - (at - LEAST) / (this.most - LEAST));
  }

  /** A score follows the pointer while it is held down. */
  drag(key, event) {
    if (event.buttons !== 1) return;
    const box = event.currentTarget.ownerSVGElement.getBoundingClientRect();
    const unit = box.height / (WEIGHTS + LOW + 18);
    const share = 1 - (((event.clientY - box.top) / unit) - TOP) / TALL;
    const score = Math.round(2 * (LEAST + share * (this.most - LEAST))) / 2;
    const scores = this.scores.with(key, Math.min(Math.max(score, LEAST), this.most));
    this.scoreFields.querySelector("input").value = scores.join(",");
    this.change({ scores });
  }

  column(key, seen, block) {
    const x = LEFT + key * COLUMN;
    const fresh = block && key >= block.first && key < block.first + block.block.length;
    const top = this.y(this.scores[key]);
    const hold = svg("rect", { x, y: TOP - 14, width: COLUMN, height: TALL + 28, class: "fa-hold" });
    hold.addEventListener("pointerdown", (event) => { this.drag(key, event); });
    hold.addEventListener("pointermove", (event) => { this.drag(key, event); });
    const weight = seen ? seen.weight : 0;
    const height = Number.isFinite(weight) ? Math.min(1, weight) * LOW : LOW;
    return svg("g", { class: fresh ? "fa-fresh" : seen ? "fa-past" : "fa-ahead" },
      svg("rect", { x: x + 8, y: top, width: COLUMN - 16, height: TOP + TALL - top, class: "fa-score" }),
      svg("text", { x: x + COLUMN / 2, y: top - 4 }, String(this.scores[key])),
      svg("text", { x: x + COLUMN / 2, y: TOP + TALL + 14, class: "fa-axis" }, `v ${this.values[key]}`),
      ...(seen ? [svg("rect", { x: x + 8, y: WEIGHTS + LOW - height, width: COLUMN - 16, height, class: "fa-weight" }),
        svg("text", { x: x + COLUMN / 2, y: WEIGHTS + LOW + 13 }, show(weight))] : []),
      hold);
  }

  show() {
    const all = steps(this.scores, this.values, this.size, this.withMaximum);
    this.step = Math.min(this.step, all.length);
    this.slider.max = all.length;
    this.slider.value = this.step;
    const past = all.slice(0, this.step);
    const now = past.at(-1);
    // What each key weighs in l now: its p, times every alpha that came after it.
    const seen = [];
    for (const { alpha, p } of past) {
      for (const each of seen) each.weight *= alpha;
      seen.push(...p.map((weight) => ({ weight })));
    }
    const line = this.y(now.m);
    const width = LEFT + COUNT * COLUMN + 6;
    this.picture.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${WEIGHTS + LOW + 18}`, class: "fa-softmax", role: "img",
      "aria-label": `six scores, of which ${seen.length} have been read; below them what each weighs in the sum` },
      svg("text", { x: LEFT - 8, y: TOP + TALL / 2, class: "fa-axis fa-end" }, "score"),
      svg("text", { x: LEFT - 8, y: WEIGHTS + LOW / 2, class: "fa-axis fa-end" }, "weight in l"),
      this.scores.map((_, key) => this.column(key, seen[key], now)),
      ...(this.withMaximum ? [svg("line", { x1: LEFT, x2: width - 6, y1: line, y2: line, class: "fa-maximum" }),
        svg("text", { x: LEFT - 8, y: line + 3, class: "fa-end" }, `m = ${show(now.m)}`)] : [])));
    const before = past.at(-2);
    this.said.textContent = before
      ? `α = ${show(now.alpha)}: l = ${show(now.alpha)} · ${show(before.l)} + ${now.p.map(show).join(" + ")} = ${show(now.l)}, O = ${show(now.o)}.`
      : `First block: l = ${now.p.map(show).join(" + ")} = ${show(now.l)}, O = ${show(now.o)}.`;
    const { l, o } = now;
    const done = this.step === all.length;
    this.says.dataset.result = done ? show(o / l) : "";
    this.says.textContent = done
      ? `O / l = ${show(Math.fround(o / l))}; all six at once, in FP64: ${show(whole(this.scores, this.values))}.`
      : `After ${this.step} of ${all.length} blocks; O / l is the softmax of the keys seen so far: ${show(o / l)}.`;
  }
}

export async function start(place) {
  new SoftmaxWidget(place);
}
