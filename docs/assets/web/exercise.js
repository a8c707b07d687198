// SPDX-License-Identifier: MIT
// An exercise whose gaps are formulas: they become functions of its PTX, which the machine then runs and checks.
import { exerciseData, exercisePtx, machine } from "./machine.js";
import { h, number, Runner, state, take } from "./dom.js";
import { parse } from "./formula.js";
import { kept } from "./kept.js";
import { define, parseFormula, valueOf } from "./ptxformula.js";

const MAX_STEPS = 1 << 22;
const SOLVED = "fa-solved"; // numbers of exercises

// Where a formula is compared with a right one: how many values of a parameter, or which.
const PLACES = { lane: 32, thread: 64, slot: 3, parity: 2, causal: 2, place: 4, i: 4, k: 2, key: [0, 4, 5, 63, 64, 127],
  seq_q: [5, 64], seq_kv: [5, 64, 128], rows_end: [64, 128], panel_bytes: [16384], row_bytes: [128], steps: [8],
  diagonal: [-32, 0, 32], first_key: [0, 32, 64], group: [1, 2, 4], blocks: [1, 3] };
const FLOATS = [-1, 0.5, 2];

const shapeOf = ({ seq_q, seq_kv, causal }) => `${seq_q} queries, ${seq_kv} keys${causal ? ", causal" : ""}`;

/** All values of the parameters at which formulas are compared. */
function placesOf({ parameters, type }) {
  const values = (name) => {
    const some = type === "float" ? FLOATS : PLACES[name] ?? 8;
    return Array.isArray(some) ? some : Array.from({ length: some }, (_, i) => i);
  };
  return parameters.reduce((all, name) => all.flatMap((place) => values(name).map((value) => ({ ...place, [name]: value }))), [{}]);
}

/** Where a formula first differs from the answer: {place, own, right}, or null. */
function firstDifference(formula, text) {
  const { type, parameters, answer, says } = formula;
  const [own, right] = [text, answer].map((each) => parseFormula(each, parameters));
  const read = (tree, place) => {
    const value = valueOf(tree, type, place);
    return says.startsWith("1 where") ? Number(Boolean(value)) : value;
  };
  const differ = (a, b) => !Object.is(a, b) && !(Math.abs(a - b) <= 1e-5 * Math.abs(b));
  const place = placesOf(formula).find((each) => differ(read(own, each), read(right, each)));
  return place ? { place, own: read(own, place), right: read(right, place) } : null;
}

/** How many exercises of the page this browser has solved, with a link to each. */
function showProgress() {
  const all = [...document.querySelectorAll("[data-widget=exercise]")];
  const heads = new Map([...document.querySelectorAll("article h2[id]")].map((head) => [parseInt(head.textContent, 10), head.id]));
  const solved = kept.get(SOLVED).split(",");
  const numbers = all.map((place) => place.dataset.number);
  const done = numbers.filter((each) => solved.includes(each));
  let line = document.querySelector(".fa-progress");
  if (!line) {
    line = h("p", { class: "fa-progress", role: "status" });
    document.querySelector("article h1").after(line);
  }
  const links = numbers.flatMap((each) => [" ", h("a", { href: `#${heads.get(Number(each))}`, class: solved.includes(each) ? "fa-good" : null },
    solved.includes(each) ? `${each} ✓` : each)]);
  line.replaceChildren(`${done.length} of ${numbers.length} solved:`, ...links);
}

class ExerciseWidget {
  constructor(place, data) {
    this.place = place;
    this.data = data;
    const saved = new URLSearchParams(state.get(this.key) ?? "");
    this.fields = data.formulas.map((formula) =>
      h("input", { type: "text", size: 32, class: "fa-formula", spellcheck: "false", autocomplete: "off", "data-formula": formula.name,
        "aria-label": formula.name, value: saved.get(formula.name) ?? formula.shipped, oninput: () => this.edited(), onchange: () => this.save(),
        onkeydown: (event) => event.key === "Enter" && this.runner.start() }));
    this.marks = data.formulas.map(() => h("small", { class: "fa-bad fa-mark" }));
    const rows = data.formulas.map((formula, index) =>
      h("li", {}, h("code", {}, `${formula.name}(${formula.parameters.join(", ")}) =`), " ", this.fields[index], h("br"),
        h("small", {}, formula.says), this.marks[index]));
    const float = data.formulas.some(({ type }) => type === "float");
    const allowed = float ? ["Floats: ", "+ - * /", " and ", "max(a, b)", ", ", "min(a, b)", ", ", "exp(x)", "."]
      : ["Whole numbers, as in C: ", "+ - * / % << >> & ^ |", ", comparisons, ", "&& || !", ", ", "a ? b : c", ", ", "min(a, b)", ", ", "max(a, b)", "."];
    this.runner = new Runner("Check", (report) => this.check(report));
    this.found = h("ul", { class: "fa-found" });
    take(place, h("ul", { class: "fa-gaps" }, rows),
      h("p", {}, h("small", {}, allowed.map((each, index) => (index % 2 ? h("code", {}, each) : each)), " Enter checks.")),
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

  /** What was found of other formulas is gone. */
  edited() {
    this.found.replaceChildren();
    this.runner.status.textContent = "";
    this.fields.forEach((_, index) => this.mark(index, ""));
    this.place.dataset.state = "edited";
  }

  mark(index, text) {
    this.marks[index].textContent = text;
    if (text) this.fields[index].setAttribute("aria-invalid", "true");
    else this.fields[index].removeAttribute("aria-invalid");
  }

  say(good, text) {
    const shown = text.includes("\n") ? h("pre", { class: "fa-message" }, text) : text;
    this.found.append(h("li", { class: good ? "fa-good" : "fa-bad" }, shown));
    return good;
  }

  /** With the thread that writes it behind each element of O. */
  withThreads(text) {
    const thread = parse(this.data.thread, ["row", "column"]);
    return text.replace(/batch \d+, head \d+, row (\d+), column (\d+)/g, (element, row, column) => {
      const number = thread({ row: Number(row), column: Number(column) });
      return `${element} (thread ${number}: warp ${Math.floor(number / 32)}, lane ${number % 32})`;
    });
  }

  /** Marks the formulas that are not those of a solution: others may be right too, but something is wrong. */
  markDifferent() {
    this.data.formulas.forEach((formula, index) => {
      const found = firstDifference(formula, this.fields[index].value);
      if (!found) return;
      const where = Object.entries(found.place).map(([name, value]) => `${name} = ${value}`).join(", ");
      this.mark(index, `At ${where}: yours is ${Number(found.own.toPrecision(5))}, one of a solution ${Number(found.right.toPrecision(5))}.`);
    });
  }

  /** The kernel with the reader's formulas, or null where one of them is none. */
  written(text) {
    const { formulas } = this.data;
    for (const [index, formula] of formulas.entries()) {
      try {
        text = define(text, { ...formula, name: formula.function }, this.fields[index].value);
      } catch (error) {
        this.mark(index, `${error.message}.`);
        this.say(false, `${formula.name}: ${error.message}`);
        return null;
      }
    }
    return text;
  }

  async check(report) {
    this.edited();
    this.place.dataset.state = "running";
    this.save();
    const text = this.written(await exercisePtx(this.data.number));
    const solved = text !== null && (await this.trials(text, report));
    if (solved) kept.set(SOLVED, [...new Set([...kept.get(SOLVED).split(",").filter(Boolean), String(this.data.number)])].join(","));
    else if (text !== null) this.markDifferent();
    showProgress();
    this.place.dataset.state = solved ? "solved" : "open";
    return solved ? "solved" : "not yet";
  }

  async trials(text, report) {
    const loaded = await machine.load(`${this.key}.ptx`, text);
    if (loaded.error) return this.say(false, loaded.error);
    let counts;
    for (const [index, { problem, plan, spread }] of this.data.trials.entries()) {
      report(index, this.data.trials.length, shapeOf(problem));
      const answer = await machine.call({ do: "run", problem, plan, spread, max_steps: MAX_STEPS });
      const wide = spread > 1 ? `, scores with a deviation of ${spread}` : "";
      const what = `results for ${shapeOf(problem)}${wide}`;
      if (answer.error || !answer.verdict.ok) return this.say(false, this.withThreads(`${what}: ${answer.error ?? (answer.verdict.details || answer.verdict.reason)}`));
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
  showProgress();
}
