// SPDX-License-Identifier: MIT
// Counts of two kernels side by side: what changed most, first as a sentence, then as rows.
import { h, number, quotient } from "./dom.js";
import { EXP, INSTRUCTIONS, SECTORS, TENSOR, WAVEFRONTS } from "./source.js";

const SMALL = 64; // a count below it changes by chance
const EQUAL = 0.01; // of the logarithm of a quotient
const UNITS = ["wavefronts", "sectors", "bytes", "requests", "copies", "ideal"];
const HOT = [[/wavefronts|ideal/, WAVEFRONTS], [/sector|global/, SECTORS], [/tensor|wgmma/, TENSOR], [/^exp/, EXP]];

/** How far two counts are apart; a count that only one of them has is the farthest. */
const distance = (a, b) => (a === b ? 0 : a === 0 || b === 0 ? Infinity : Math.abs(Math.log(a / b)));

/** The count of both that changes by the largest factor; nothing where all are equal. */
export function changedMost(own, before) {
  const both = Object.keys(own).filter((key) => own[key] >= SMALL && before[key] >= SMALL);
  const changed = both.filter((key) => distance(own[key], before[key]) > EQUAL);
  const apart = (key) => distance(own[key], before[key]);
  return changed.reduce((most, key) => (most && apart(most) >= apart(key) ? most : key), null);
}

/** The measure of a source line that shows a count. */
export const measureOf = (key) => HOT.find(([words]) => words.test(key ?? ""))?.[1] ?? INSTRUCTIONS;

/** "ldmatrix: 9.41 times fewer wavefronts than 01_base" */
export function sentence(own, before, name) {
  const key = changedMost(own, before);
  if (!key) return `No count differs from that of ${name} by more than 1 %.`;
  const words = key.split("_");
  const unit = words.length > 1 && UNITS.includes(words.at(-1)) ? ` ${words.pop()}` : "";
  const what = words.join(" ");
  const [more, less] = [Math.max(own[key], before[key]), Math.min(own[key], before[key])];
  const share = Math.round(100 * Math.abs(own[key] / before[key] - 1));
  if (more < 2 * less) return `${what}: ${share} % ${own[key] < before[key] ? "fewer" : "more"}${unit} than ${name}`;
  const times = `${quotient(more, less)} times`;
  return own[key] < before[key] ? `${what}: ${times} fewer${unit} than ${name}` : `${what}: ${times} as many${unit} as ${name}`;
}

const MOST_ROWS = 8; // of those that are not folded

/** One row; a count that is to be guessed has no value yet. */
function countRow(key, values, isAsked) {
  const shown = values.map((value, column) => h("td", { "data-value": value }, isAsked && column === 0 ? "?" : number(value)));
  const change = values.length === 2 ? h("td", {}, isAsked ? "?" : quotient(values[0], values[1])) : null;
  return h("tr", { "data-key": key }, h("th", { scope: "row" }, key.replaceAll("_", " ")), shown, change);
}

/** Counts of one or two runs; of two those that differ most, the farthest first, and the others folded. */
export function countsTable(columns, asked = null) {
  const keys = [...new Set(columns.flatMap(({ counts }) => Object.keys(counts)))];
  const head = () => h("tr", {}, h("th", { scope: "col" }, "count"),
    columns.map(({ name }) => h("th", { scope: "col" }, name)),
    columns.length === 2 ? h("th", { scope: "col" }, "quotient") : null);
  const valuesOf = (key) => columns.map(({ counts }) => counts[key] ?? 0);
  // A count of the same value would tell it.
  const isAsked = (key) => asked !== null && valuesOf(key)[0] === valuesOf(asked)[0];
  const table = (some) => h("table", { class: "fa-counts" }, h("thead", {}, head()),
    h("tbody", {}, some.map((key) => countRow(key, valuesOf(key), isAsked(key)))));
  if (columns.length < 2) return table(keys);
  const lead = asked ?? changedMost(...columns.map(({ counts }) => counts));
  const apart = (key) => distance(...valuesOf(key));
  // A count that only one of the two has comes behind those that both have and that change much.
  const place = (key) => (key === lead ? Infinity : Math.min(apart(key), 1));
  const changed = keys.filter((key) => apart(key) > EQUAL).sort((a, b) => place(b) - place(a));
  const same = keys.filter((key) => !changed.includes(key));
  const rest = [...changed.slice(MOST_ROWS), ...same];
  return h("div", {}, changed.length > 0 ? table(changed.slice(0, MOST_ROWS)) : null, rest.length === 0 ? null
    : h("details", {}, h("summary", {}, `${rest.length} more counts, of which ${same.length} are equal within 1 %`), table(rest)));
}
