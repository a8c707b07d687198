// SPDX-License-Identifier: MIT
// The guess before a run: the reader's number for the count that a rung changes most against its
// parent. It stays in this browser, and stands beside what the machine counts.
import { rungData } from "./machine.js";
import { changedMost } from "./counts.js";
import { h, number, quotient } from "./dom.js";
import { kept } from "./kept.js";

/** A guess for a rung at the problem of its page; nothing where its parent has no such problem. */
export async function guessOf(rung, parent, expected) {
  if (!parent) return null;
  const before = (await rungData(parent.name)).expected;
  const same = ["n", "d", "mask"].every((name) => before.choice[name] === expected.choice[name]);
  const key = same ? changedMost(expected.counts, before.counts) : null;
  return key ? new Guess(rung.name, parent.name, key, before.counts[key], expected.choice) : null;
}

class Guess {
  constructor(rung, parent, key, before, choice) {
    this.key = key;
    this.choice = choice;
    this.place = `fa-guess-${rung}`;
    const what = key.replaceAll("_", " ");
    this.input = h("input", {
      type: "text", inputmode: "numeric", size: "12", value: kept.get(this.place),
      onchange: () => kept.set(this.place, this.input.value),
    });
    this.said = h("p", { class: "fa-guess", role: "status" });
    this.element = h("div", {},
      h("div", { class: "fa-form" }, h("label", {},
        `At ${choice.n} keys and d = ${choice.d}, ${parent} counts ${number(before)} (${what}). Your guess for ${rung}: `, this.input)),
      this.said);
  }

  /** Sets the guess beside the counts of a run, where it is a number and the problem is its own. */
  answer(counts, { n, d, mask }) {
    const guessed = Number(this.input.value.replace(/[\s,.\u202f]/g, ""));
    const own = n === this.choice.n && d === this.choice.d && mask === this.choice.mask;
    if (!own || !(guessed > 0)) return this.said.replaceChildren();
    const counted = counts[this.key] ?? 0;
    const said = guessed === counted ? "exactly" : `${quotient(guessed, counted)} times as many`;
    return this.said.replaceChildren(`Guessed ${number(guessed)}, counted ${number(counted)}: ${said}.`);
  }
}
