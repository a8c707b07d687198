// SPDX-License-Identifier: MIT
// Run it here: a rung and another one through the real check, with their counts side by side.
import { catalogue, isDecode, machine, planOf, ptxOf, rungData, runRung } from "./machine.js";
import { changedMost, countsTable, measureOf, sentence } from "./counts.js";
import { h, lengthName, maskSelect, Runner, select, state, take } from "./dom.js";
import { guessOf } from "./guess.js";
import { SourceView } from "./source.js";

const NONE = "none";

function verdictText(name, { verdict }) {
  if (verdict.ok) {
    return `${name}: correct. ${verdict.rows_checked} of ${verdict.rows_total} rows checked; ` +
      `largest error ${verdict.max_error.toPrecision(2)}, allowed there ${verdict.tolerance.toPrecision(2)}; ` +
      "a second launch gave the same bits.";
  }
  return `${name}: ${verdict.reason}`;
}

class RunWidget {
  constructor(place, all, rung, data, guess) {
    this.place = place;
    this.guess = guess;
    this.data = data;
    const { n, d, mask } = data.expected.choice;
    this.all = all;
    this.rung = rung;
    const saved = (state.get("run") ?? "").split(",");
    const parent = all.rungs.find(({ id }) => id === rung.parent);
    this.other = this.nameOf(saved[0]) ?? parent?.name ?? NONE;
    this.n = rung.seqs.includes(Number(saved[1])) ? Number(saved[1]) : n;
    this.d = rung.head_dims.includes(Number(saved[2])) ? Number(saved[2]) : d;
    this.mask = rung.masks.includes(saved[3]) ? saved[3] : mask;
    this.runner = new Runner(`Run ${rung.name}`, (report) => this.run(report));
    this.lead = h("p", { class: "fa-lead" });
    this.verdict = h("div", { class: "fa-verdict" });
    this.counts = h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": "counts" });
    this.code = h("div");
    const others = [[NONE, "nothing"], ...all.rungs.filter((each) => each !== rung && isDecode(each) === isDecode(rung)).map(({ name }) => name)];
    take(place, h("div", { class: "fa-form" },
      select(lengthName(rung), rung.seqs, this.n, (value) => this.choose({ n: Number(value) })),
      select("d", rung.head_dims, this.d, (value) => this.choose({ d: Number(value) })),
      maskSelect(rung, this.mask, (mask) => this.choose({ mask })),
      select("beside", others, this.other, (other) => this.choose({ other }))),
      guess?.element ?? null, this.runner.element, this.lead, this.verdict, this.counts, this.code);
  }

  /** Until the first run: what the build has counted. The count that the reader guesses is left out. */
  showExpected(parent) {
    const columns = [{ name: this.rung.name, counts: this.data.expected.counts }];
    if (this.guess) columns.push({ name: parent.name, counts: parent.expected.counts });
    this.counts.replaceChildren(countsTable(columns, this.guess?.key));
  }

  nameOf(word) {
    return word === NONE ? NONE : this.all.rungs.find(({ name, id }) => name === word || id === word)?.name;
  }

  choose(change) {
    Object.assign(this, change);
    state.set("run", [this.other, this.n, this.d, this.mask].join(","));
  }

  async runOne(name, report) {
    const plan = await planOf(name, this);
    if (plan.refused) return { name, refused: plan.refused };
    let launches = 0;
    let last = 0;
    const answer = await runRung(name, plan, {}, (done, of) => {
      // The gate launches everything twice.
      if (done <= last) launches += 1;
      last = done;
      report(launches + done / of, 2 * plan.launches.length, `running ${name}`);
    });
    return { name, plan, ...answer };
  }

  async run(report) {
    const begun = performance.now();
    this.place.dataset.state = "running";
    report(0, 0, "loading the machine");
    const own = await this.runOne(this.rung.name, report);
    this.show([own]);
    if (own.counts) this.guess?.answer(own.counts, this);
    const ms = Math.round(performance.now() - begun);
    const other = this.other === NONE ? null : await this.runOne(this.other, report);
    if (other) this.show([own, other]);
    if (own.launches) await this.showSource(own, other?.counts);
    this.place.dataset.state = "done";
    return `${this.rung.name} took ${ms} ms in this page, with loading and both launches of the check`;
  }

  show(results) {
    this.verdict.replaceChildren(...results.map((each) =>
      h("p", { class: each.verdict?.ok ? "fa-good" : "fa-bad" },
        each.refused ?? each.error ?? verdictText(each.name, each))));
    const counted = results.filter(({ counts }) => counts);
    this.counts.replaceChildren(...(counted.length > 0 ? [countsTable(counted)] : []));
    const [own, other] = counted;
    this.lead.textContent = other ? sentence(own.counts, other.counts, other.name) : "";
  }

  async showSource(own, before) {
    const ptx = await ptxOf(own.name, own.plan.problem.head_dim);
    const measure = measureOf(before ? changedMost(own.counts, before) : null);
    const view = new SourceView(this.data.source, ptx, own.launches, measure);
    this.code.replaceChildren(view.element);
    view.reveal();
  }
}

/** Shows the widget in `place`, whose data-rung names the rung. */
export async function start(place) {
  const all = await catalogue();
  const rung = all.rungs.find(({ name }) => name === place.dataset.rung);
  const data = await rungData(rung.name);
  const parent = all.rungs.find(({ id }) => id === rung.parent);
  const widget = new RunWidget(place, all, rung, data, await guessOf(rung, parent, data.expected));
  widget.showExpected(parent ? await rungData(parent.name) : null);
  const warm = () => {
    machine.warm();
    ptxOf(rung.name, widget.d);
  };
  place.addEventListener("pointerenter", warm, { once: true });
  place.addEventListener("focusin", warm, { once: true });
}
