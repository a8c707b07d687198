// SPDX-License-Identifier: MIT
// An exercise whose gaps are formulas: they become functions of its PTX, which the machine then runs and checks.
import { exerciseData, exercisePtx, machine } from "./machine.js";
import { h, number, Runner, state, take } from "./dom.js";
import { define } from "./ptxformula.js";

const MAX_STEPS = 1 << 22;

const shapeOf = ({ seq_q, seq_kv, causal }) => `${seq_q} queries, ${seq_kv} keys${causal ? ", causal" : ""}`;

class ExerciseWidget {
  constructor(place, data) {
    this.place = place;
    this.data = data;
    const saved = new URLSearchParams(state.get(this.key) ?? "");
    this.fields = data.formulas.map((formula) =>
      h("input", { type: "text", size: 32, class: "fa-formula", spellcheck: "false", "data-formula": formula.name,
        "aria-label": formula.name, value: saved.get(formula.name) ?? formula.shipped, onchange: () => this.save() }));
    const rows = data.formulas.map((formula, index) =>
      h("li", {}, h("code", {}, `${formula.name}(${formula.parameters.join(", ")}) =`), " ", this.fields[index], h("br"),
        h("small", {}, formula.says)));
    const float = data.formulas.some(({ type }) => type === "float");
    this.runner = new Runner("Check", (report) => this.check(report));
    this.found = h("ul", { class: "fa-found" });
    take(place, h("ul", { class: "fa-gaps" }, rows),
      h("p", {}, h("small", {}, float ? "Floats: + - * / and max(a, b), min(a, b), exp(x)."
        : "Whole numbers, as in C: + - * / % << >> & ^ |, comparisons, && || !, a ? b : c, min(a, b), max(a, b).")),
      this.runner.element, this.found);
  }

  get key() {
    return `ex${this.data.number}`;
  }

  save() {
    const words = new URLSearchParams();
    this.data.formulas.forEach(({ name, shipped }, index) => {
      if (this.fields[index].value !== shipped) words.set(name, this.fields[index].value);
    });
    state.set(this.key, words.toString());
  }

  say(good, text) {
    this.found.append(h("li", { class: good ? "fa-good" : "fa-bad" }, text));
    return good;
  }

  /** The kernel with the reader's formulas, or null where one of them is none. */
  written(text) {
    const { formulas } = this.data;
    for (const [index, formula] of formulas.entries()) {
      try {
        text = define(text, { ...formula, name: formula.function }, this.fields[index].value);
      } catch (error) {
        this.say(false, `${formula.name}: ${error.message}`);
        return null;
      }
    }
    return text;
  }

  async check(report) {
    this.place.dataset.state = "running";
    this.found.replaceChildren();
    const solved = await this.trials(report);
    this.place.dataset.state = solved ? "solved" : "open";
    return solved ? "solved" : "not yet";
  }

  async trials(report) {
    const text = this.written(await exercisePtx(this.data.number));
    if (!text) return false;
    const loaded = await machine.load(`${this.key}.ptx`, text);
    if (loaded.error) return this.say(false, loaded.error);
    let counts;
    for (const [index, { problem, plan, spread }] of this.data.trials.entries()) {
      report(index, this.data.trials.length, shapeOf(problem));
      const answer = await machine.call({ do: "run", problem, plan, spread, max_steps: MAX_STEPS });
      const wide = spread > 1 ? `, scores with a deviation of ${spread}` : "";
      const what = `results for ${shapeOf(problem)}${wide}`;
      if (answer.error || !answer.verdict.ok) return this.say(false, `${what}: ${answer.error ?? answer.verdict.reason}`);
      this.say(true, what);
      counts = answer.counts;
    }
    return this.data.rules.map((rule) => this.rule(rule, counts)).every(Boolean);
  }

  rule({ what, count, exactly, most }, counts) {
    const found = counts[count] ?? 0;
    if (exactly !== undefined) {
      const good = found === exactly;
      return this.say(good, `${what}: ${number(found)}, ${good ? "as many as there must be" : `and there must be ${number(exactly)}`}`);
    }
    const bound = typeof most === "number" ? most : counts[most];
    const good = found <= bound;
    return this.say(good, `${what}: ${number(found)}, ${good ? `allowed are ${number(bound)}` : `more than the ${number(bound)} that are needed`}`);
  }
}

export async function start(place) {
  new ExerciseWidget(place, await exerciseData(place.dataset.number));
}
