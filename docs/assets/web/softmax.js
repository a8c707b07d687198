// SPDX-License-Identifier: MIT
// The online softmax by hand: six scores, block after block, in FP32 as a kernel has it.
import { checkbox, h, select, state, take } from "./dom.js";

// Those of the figure in background/attention.md.
const SCORES = "1,3,2,5,4,0";
const VALUES = "10,20,30,40,50,60";
const SIZE = 3;
const COUNT = 6;

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
    this.table = h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": "blocks" });
    this.says = h("p", { role: "status" });
    take(place, h("div", { class: "fa-form" },
      this.field("Scores", "scores"), this.field("Values", "values"),
      select("keys in a block", [1, 2, 3, 6], this.size, (value) => this.change({ size: Number(value), step: 1 })),
      checkbox("take off the maximum", this.withMaximum, (withMaximum) => this.change({ withMaximum, step: 1 }))),
      h("div", { class: "fa-runner" },
        h("button", { type: "button", class: "fa-run", onclick: () => this.go(1) }, "Next block"),
        h("button", { type: "button", onclick: () => this.go(-1) }, "Back")),
      this.table, this.says);
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

  show() {
    const all = steps(this.scores, this.values, this.size, this.withMaximum);
    const head = ["keys", "scores", "m", "α = exp(m before − m)", "p = exp(s − m)", "l = α l + Σ p", "O = α O + Σ p v"];
    const rows = all.slice(0, this.step).map(({ first, block, m, alpha, p, l, o }) => h("tr", {},
      [`${first}–${first + block.length - 1}`, block.join(", "), show(m), show(alpha), p.map(show).join(", "), show(l), show(o)]
        .map((text) => h("td", {}, text))));
    this.table.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows)));
    const { l, o } = all[this.step - 1];
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
