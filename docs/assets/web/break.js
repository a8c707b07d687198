// SPDX-License-Identifier: MIT
// Break it: synchronisation off or another fault, and what the machine or the check says about that.
import { ptxOf, rungData, runRung } from "./machine.js";
import { h, Runner, state, take, whenSeen } from "./dom.js";
import { edited, editsOf, findSites } from "./sites.js";

// As the tests have it: several inputs, warps in both orders, until something is noticed.
const trialsOf = (kinds) => kinds.flatMap((inputs) => [false, true].map((reversed) => ({ inputs, reversed })));
const MAX_STEPS = 1 << 22;
const CONTEXT = 2;
const MOST_PLACES = 4;

const copyOf = (plan) => structuredClone(plan);

/** Faults of the launch rather than of the text; each changes a copy of the plan or says it cannot. */
const FAULTS = {
  "K and V exchanged": (plan) => {
    const exchange = { k: "v", v: "k" };
    for (const argument of plan.launches.flatMap((launch) => launch.arguments)) {
      if (argument.tensor) argument.tensor = exchange[argument.tensor] ?? argument.tensor;
      if (argument.map) argument.map.tensor = exchange[argument.map.tensor] ?? argument.map.tensor;
    }
    return true;
  },
  "the scale left out": (plan) => {
    const scales = plan.launches.flatMap((launch) => launch.arguments).filter((argument) => "f32" in argument);
    for (const argument of scales) argument.f32 = 1;
    return scales.length > 0;
  },
  "one key less than the cache has": ({ problem, launches }) => {
    if (problem.seq_q === problem.seq_kv) return false; // the two arguments look the same
    const extents = launches.flatMap((launch) => launch.arguments).filter((argument) => argument.i32 === problem.seq_kv);
    for (const argument of extents) argument.i32 -= 1;
    return extents.length > 0;
  },
  "tiles copied without the swizzle": (plan) => {
    const maps = plan.launches.flatMap((launch) => launch.arguments).filter((argument) => argument.map?.swizzle);
    for (const { map } of maps) map.swizzle = 0;
    return maps.length > 0;
  },
};

class BreakWidget {
  constructor(place, name, data) {
    this.place = place;
    this.name = name;
    this.data = data;
    this.base = new Map();
    this.trials = trialsOf(data.break.inputs);
    this.runner = new Runner("Run with these changes", (report) => this.run(report));
    this.list = h("div", { class: "fa-sites", tabindex: "0", role: "region", "aria-label": "synchronisation sites" });
    this.result = h("div", { class: "fa-finding" });
    this.finder = new Runner("Show the switches", () => this.find());
    take(place, this.finder.element, this.list, this.runner.element, this.result);
    this.runner.element.hidden = true;
    this.off = new Set((state.get("off") ?? "").split(",").filter((word) => word !== ""));
    this.showFaults();
    whenSeen(place, () => this.finder.start());
  }

  /** Until the machine has shown where the synchronisation is: what can be switched on besides. */
  showFaults() {
    const titles = [...this.data.faults.map(({ title }) => title), ...this.planFaults];
    this.list.replaceChildren(h("p", {}, "Faults that this kernel can have, besides each barrier, fence and wait that is switched off:"),
      h("ul", {}, titles.map((title) => h("li", {}, title))));
  }

  /** Faults of the launch that this kernel can have. */
  get planFaults() {
    return Object.keys(FAULTS).filter((fault) => FAULTS[fault](copyOf(this.plan)));
  }

  get plan() {
    return this.data.break.plan;
  }

  async find() {
    this.text = await ptxOf(this.name, this.plan.problem.head_dim);
    const base = await this.trial({ text: this.text, counters: true, ...this.trials[0] });
    if (!base.launches) throw new Error(base.error ?? base.verdict.reason);
    this.base.set(this.trials[0].inputs, base.output);
    this.sites = findSites(this.text, this.data.source, base.launches, this.data.redundant);
    this.edits = new Map(this.data.faults.map((fault) => [fault, editsOf(fault, this.text, this.data.source, base.launches)]));
    this.showSites();
    this.finder.element.hidden = true;
    this.runner.element.hidden = false;
    this.place.dataset.state = "ready";
  }

  trial(options, plan = this.plan) {
    return runRung(this.name, plan, { max_steps: MAX_STEPS, counters: false, ...options });
  }

  toggle(key, isOn) {
    if (isOn) this.off.delete(key);
    else this.off.add(key);
    state.set("off", [...this.off].join(","));
  }

  row(key, ...content) {
    const box = h("input", {
      type: "checkbox", role: "switch", checked: !this.off.has(key),
      onchange: () => this.toggle(key, box.checked),
    });
    return h("li", { "data-site": key }, h("label", {}, box, " ", ...content));
  }

  showSites() {
    const synchronisation = this.sites.map((site, index) =>
      this.row(String(index), h("code", {}, site.opcode), site.copies > 1 ? ` (${site.copy} of ${site.copies})` : "",
        h("br"), h("small", {}, `line ${site.sourceLine}: `, h("code", {}, site.source),
          site.redundant ? ` – not needed: ${site.redundant}` : null)));
    const changes = this.data.faults.filter((fault) => this.edits.get(fault).length > 0)
      .map((fault) => this.faultRow(fault.title, h("br"), h("small", {}, ...this.example(fault))));
    const others = this.planFaults.map((fault) => this.faultRow(fault));
    const none = h("p", {}, "This kernel has no barrier, fence or wait: its lanes exchange values by shuffles alone.");
    this.list.replaceChildren(this.sites.length > 0 ? h("ul", {}, synchronisation) : none, h("p", {}, "Other faults, off until switched on:"), h("ul", {}, changes, others));
  }

  faultRow(fault, ...content) {
    const box = h("input", { type: "checkbox", role: "switch", checked: this.off.has(fault), onchange: () => this.toggle(fault, !box.checked) });
    return h("li", { "data-fault": fault }, h("label", {}, box, ` ${fault}`, ...content));
  }

  /** Where a fault is, and what becomes of the first of its instructions. */
  example(fault) {
    const [{ begin, end, put, source, sourceLine }, ...others] = this.edits.get(fault);
    const more = others.length > 0 ? `, and so on ${others.length + 1} times` : "";
    return [`line ${sourceLine}: `, h("code", {}, source), h("br"),
      h("code", {}, this.text.slice(begin, end).replace(/\s+/g, " ")), " becomes ", h("code", {}, put), more];
  }

  async expected(inputs) {
    if (!this.base.has(inputs)) {
      this.base.set(inputs, (await this.trial({ text: this.text, inputs })).output);
    }
    return this.base.get(inputs);
  }

  async run(report) {
    this.place.dataset.state = "running";
    const sites = this.sites.filter((_, index) => this.off.has(String(index)));
    const faults = this.data.faults.filter(({ title }) => this.off.has(title));
    const text = edited(this.text, sites, faults.flatMap((fault) => this.edits.get(fault)));
    const plan = copyOf(this.plan);
    for (const fault of this.off) FAULTS[fault]?.(plan);
    let noticed = null;
    for (const [index, trial] of this.trials.entries()) {
      report(index, this.trials.length, `inputs ${trial.inputs}, warps ${trial.reversed ? "last to first" : "first to last"}`);
      const expected = await this.expected(trial.inputs);
      noticed = this.notice(await this.trial({ text, ...trial }, plan), expected, trial);
      if (noticed) break;
    }
    this.show(noticed);
    this.place.dataset.state = noticed ? "noticed" : "nothing";
  }

  /** What is wrong with an answer, or null. */
  notice(answer, expected, { inputs }) {
    if (answer.error) return { title: "The machine does not run this.", text: answer.error };
    const { verdict } = answer;
    if (verdict.details) return { title: verdict.reason, text: verdict.details };
    if (!verdict.ok) return { title: `The check rejects the output for ${inputs} inputs.`, text: verdict.reason };
    if (answer.output === expected) return null;
    return { title: `Another output for ${inputs} inputs, within the tolerance of the check.`, text: "The bits differ from those of the whole kernel." };
  }

  show(noticed) {
    if (!noticed) {
      this.result.replaceChildren(h("p", { class: "fa-good" },
        "Nothing was noticed: no finding, and the same bits for three kinds of inputs and both orders of the warps."));
      return;
    }
    const [first, ...others] = noticed.text.split(/\n(?=\S)/);
    const lines = this.linesOf(first);
    this.result.replaceChildren(h("p", { class: "fa-bad" }, noticed.title),
      ...this.excerpts(lines.length > 1 ? lines : this.linesOf(noticed.text)), h("pre", { class: "fa-message" }, first),
      ...(others.length === 0 ? [] : [h("details", {}, h("summary", {}, `${others.length} more`), h("pre", { class: "fa-message" }, others.join("\n")))]));
  }

  /** Of each place with its inlining chain the innermost line of the kernel's own file. */
  linesOf(message) {
    const own = new RegExp(`${this.name}\\.cu:(\\d+)`);
    return [...new Set(message.split("\n").map((text) => Number(text.match(own)?.[1])).filter((line) => line > 0))];
  }

  /** The source around each place, apart, under the name of its line; places that touch share one. */
  excerpts(lines) {
    const parts = [];
    for (const line of lines.slice(0, MOST_PLACES).sort((a, b) => a - b)) {
      if (parts.length > 0 && line - parts.at(-1).at(-1) <= 2 * CONTEXT + 1) parts.at(-1).push(line);
      else parts.push([line]);
    }
    return parts.map((part, index) => this.excerpt(part, parts.length > 1 ? `Place ${index + 1}: ` : ""));
  }

  excerpt(lines, label) {
    const source = this.data.source.split("\n");
    const first = Math.max(1, lines[0] - CONTEXT);
    const rows = source.slice(first - 1, lines.at(-1) + CONTEXT).map((text, index) =>
      h("tr", { class: lines.includes(first + index) ? "fa-lit" : null },
        h("td", { class: "fa-number" }, String(first + index)), h("td", { class: "fa-code" }, h("code", {}, text))));
    const named = `line${lines.length > 1 ? "s" : ""} ${lines.join(" and ")}`;
    const page = new URL(`../../${this.data.file}/#__codelineno-0-${lines[0]}`, import.meta.url);
    return h("figure", { class: "fa-place" }, h("figcaption", {}, label, h("a", { href: page.href }, `${this.data.file}, ${named}`)),
      h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": `around ${named}` },
        h("table", { class: "fa-lines" }, h("tbody", {}, rows))));
  }
}

export async function start(place) {
  const name = place.dataset.rung;
  new BreakWidget(place, name, await rungData(name));
}
