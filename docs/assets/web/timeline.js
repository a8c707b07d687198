// SPDX-License-Identifier: MIT
// Timeline: what each warp of the first block does or waits for, step by step, from the machine's trace.
import { catalogue, planOf, rungData, runRung } from "./machine.js";
import { h, lengthName, number, Runner, select, state, still, svg, take } from "./dom.js";

const KINDS = ["matrix", "arithmetic", "load", "store", "copy", "sync", "wait", "other"];
const ZOOMS = [1, 2, 4, 8, 16, 32];
const WIDTH = 640, LEFT = 56, ROW = 14, GAP = 3;

/** Slices by warp, and what the engines do, from the events of a Chrome trace. */
export function read(trace) {
  const warps = new Map();
  const engines = new Map();
  for (const event of trace.traceEvents) {
    if (event.ph === "X") {
      if (!warps.has(event.tid)) warps.set(event.tid, []);
      warps.get(event.tid).push({ kind: event.cat, name: event.name, from: event.args.from, begin: event.ts, end: event.ts + event.dur });
    }
    if (event.ph === "b") engines.set(event.id, { kind: event.cat, name: event.name, warp: event.tid, begin: event.ts, end: event.ts });
    if (event.ph === "e") engines.get(event.id).end = event.ts;
  }
  return { warps: new Map([...warps].sort((a, b) => a[0] - b[0])), engines: stack([...engines.values()]) };
}

/** Rows in which what the engines do does not overlap, one kind after the other. */
function stack(all) {
  const rows = [];
  for (const each of all.sort((a, b) => a.kind.localeCompare(b.kind) || a.begin - b.begin)) {
    const free = rows.find((row) => row[0].kind === each.kind && row.at(-1).end <= each.begin);
    if (free) free.push(each);
    else rows.push([each]);
  }
  return rows;
}

/** What an engine does, in the kinds of the warps. */
const engineKind = (name) => (name.startsWith("wgmma") ? "matrix" : "copy");

class TimelineWidget {
  constructor(place, all, name) {
    this.place = place;
    this.all = all;
    const saved = (state.get("timeline") ?? "").split(",");
    this.name = all.rungs.some((rung) => rung.name === saved[0]) ? saved[0] : name;
    this.n = this.rung.seqs.includes(Number(saved[1])) ? Number(saved[1]) : null;
    this.zoom = 1;
    this.at = 0;
    this.runner = new Runner("Run", (report) => this.run(report));
    this.view = h("div", {}, still(place));
    this.form = h("div", { class: "fa-form" });
    this.showForm();
    take(place, this.form, this.runner.element, this.view);
    if (saved[0]) this.runner.start();
  }

  get rung() {
    return this.all.rungs.find(({ name }) => name === this.name);
  }

  showForm() {
    this.form.replaceChildren(
      select("Rung", this.all.rungs.map(({ name }) => name), this.name, (value) => { this.name = value; this.n = null; this.showForm(); this.runner.start(); }),
      select(lengthName(this.rung), this.rung.seqs, this.n ?? 256, (value) => { this.n = Number(value); this.runner.start(); }));
  }

  async run(report) {
    this.place.dataset.state = "running";
    const { choice } = (await rungData(this.name)).expected;
    const n = this.n ?? choice.n;
    const plan = await planOf(this.name, { ...choice, n });
    if (plan.refused) throw new Error(plan.refused);
    const answer = await runRung(this.name, plan, { trace: true, checkers: false }, report);
    if (answer.error) throw new Error(answer.error);
    state.set("timeline", [this.name, n].join(","));
    Object.assign(this, read(answer.trace));
    this.end = Math.max(...[...this.warps.values()].map((slices) => slices.at(-1).end));
    this.at = Math.min(this.at, this.end);
    this.build();
    this.place.dataset.state = "done";
  }

  build() {
    this.picture = h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": "timeline" });
    this.now = h("div", { class: "fa-now" });
    this.scrub = h("input", { type: "range", min: 0, max: this.end, value: this.at, "aria-label": "step",
      oninput: () => { this.at = Number(this.scrub.value); this.show(); } });
    const legend = KINDS.map((kind) => h("span", { class: "fa-key" }, h("span", { class: `fa-swatch fa-kind-${kind}` }), ` ${kind} `));
    this.view.replaceChildren(h("p", { class: "fa-legend" }, legend),
      h("div", { class: "fa-form" }, select("Zoom", ZOOMS.map((zoom) => [zoom, `×${zoom}`]), this.zoom, (value) => { this.zoom = Number(value); this.show(); }),
        h("label", { class: "fa-scrub" }, "Step ", this.scrub)),
      this.picture, this.now);
    this.show();
  }

  /** The part of the axis that is shown, around the chosen step. */
  span() {
    const length = this.end / this.zoom;
    const begin = Math.min(Math.max(0, this.at - length / 2), this.end - length);
    return { begin, length };
  }

  rows() {
    return [...[...this.warps].map(([warp, slices]) => ({ label: `warp ${warp}`, slices })),
      ...this.engines.map((slices) => ({ label: slices[0].kind, slices, engine: true }))];
  }

  show() {
    const { begin, length } = this.span();
    const x = (step) => LEFT + ((step - begin) / length) * WIDTH;
    const rows = this.rows();
    const height = rows.length * (ROW + GAP) + 16;
    const parts = rows.map(({ label, slices, engine }, row) => {
      const y = row * (ROW + GAP);
      const seen = slices.filter((slice) => slice.end > begin && slice.begin < begin + length);
      return svg("g", {}, svg("text", { x: LEFT - 4, y: y + 11, class: "fa-axis fa-end" }, label),
        seen.map((slice) => {
          const left = Math.max(LEFT, x(slice.begin));
          const right = Math.min(LEFT + WIDTH, x(slice.end));
          return svg("rect", { x: left, y, width: Math.max(0.4, right - left), height: ROW, class: `fa-kind-${engine ? engineKind(slice.kind) : slice.kind}` },
            svg("title", {}, `${slice.name}, steps ${slice.begin} to ${slice.end}${slice.from ? `; ${slice.from}` : ""}`));
        }));
    });
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) =>
      svg("text", { x: LEFT + share * WIDTH, y: height - 2, class: "fa-axis" }, number(Math.round(begin + share * length))));
    const cursor = svg("line", { x1: x(this.at), x2: x(this.at), y1: 0, y2: height - 14, class: "fa-cursor" });
    const whole = svg("svg", { viewBox: `0 0 ${LEFT + WIDTH + 12} ${height}`, class: "fa-timeline", role: "img",
      "aria-label": `warps of the first block of ${this.name} over ${this.end} steps` }, parts, ticks, cursor);
    whole.addEventListener("pointermove", (event) => {
      const box = whole.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * (LEFT + WIDTH + 12);
      this.at = Math.round(Math.min(Math.max(begin, begin + ((at - LEFT) / WIDTH) * length), this.end));
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(this.at));
      this.scrub.value = this.at;
      this.showNow();
    });
    this.picture.replaceChildren(whole);
    this.showNow();
  }

  showNow() {
    const lines = this.rows().flatMap(({ label, slices }) => {
      const slice = slices.find((each) => each.begin <= this.at && this.at < each.end);
      return slice ? [h("li", {}, `${label}: ${slice.name}${slice.from ? ` (${slice.from})` : ""}`)] : [];
    });
    this.now.replaceChildren(h("p", {}, `At step ${number(this.at)} of ${number(this.end)}:`), h("ul", {}, lines));
  }
}

export async function start(place) {
  new TimelineWidget(place, await catalogue(), place.dataset.rung);
}
