// SPDX-License-Identifier: MIT
// PTX in colours, behind a text field whose own letters are transparent. Only what is seen is painted.
import { h } from "./dom.js";

const TOKEN = /(\/\/.*)|(%[\w$.]+)|(^\s*(?:@!?%\w+\s+)?)([a-z]\w*(?:[.:]+\w+)+|ret|exit|bra)|(\.[a-z]\w*)|(\b(?:0[fFdD][0-9a-fA-F]+|0x[0-9a-fA-F]+|\d+)\b)|([$\w]+:)/g;
const NAMES = { 1: "comment", 2: "register", 4: "opcode", 5: "directive", 6: "number", 7: "label" };
const AROUND = 20; // lines painted above and below what is seen

/** The parts of a line: texts, and spans with the class of their kind. */
export function painted(line) {
  const parts = [];
  let at = 0;
  const put = (text, name) => text && parts.push(name ? h("span", { class: `fa-${name}` }, text) : text);
  for (const match of line.matchAll(TOKEN)) {
    put(line.slice(at, match.index));
    // An opcode comes after its guard.
    if (match[4] !== undefined) {
      parts.push(...(match[3].trim() ? painted(match[3]) : [match[3]]));
      put(match[4], "opcode");
    } else {
      put(match[0], NAMES[[1, 2, 5, 6, 7].find((group) => match[group] !== undefined)]);
    }
    at = match.index + match[0].length;
  }
  put(line.slice(at));
  return parts;
}

/** Paints the lines that `text`, a textarea, shows into `under`. */
export function paint(text, under) {
  const lines = text.value.split("\n");
  const height = (text.scrollHeight - 2 * parseFloat(getComputedStyle(text).paddingTop)) / lines.length;
  const first = Math.max(0, Math.floor(text.scrollTop / height) - AROUND);
  const last = Math.min(lines.length, Math.ceil((text.scrollTop + text.clientHeight) / height) + AROUND);
  under.replaceChildren(...lines.slice(first, last).flatMap((line) => [...painted(line), "\n"]));
  under.style.transform = `translate(${-text.scrollLeft}px, ${first * height - text.scrollTop}px)`;
}
