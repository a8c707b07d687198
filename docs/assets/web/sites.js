// SPDX-License-Identifier: MIT
// Synchronisation instructions of a kernel and those that a fault changes, and its PTX without some or
// with others in their place.
import { OPCODE, PTX, SOURCE } from "./source.js";

const OPCODES = [
  "bar.", "barrier.", "cp.async.wait_group", "cp.async.wait_all", "mbarrier.", "fence.", "membar.",
  "cp.async.commit_group", "cp.async.bulk.commit", "wgmma.fence", "wgmma.commit", "wgmma.wait", "tcgen05.fence", "tcgen05.commit", "tcgen05.wait",
  "cp.async.bulk.wait",
];

/** Where in the text an instruction stands, with its guard and semicolon. */
function place(text, lineStart, opcode, nth) {
  let at = lineStart - 1;
  for (let i = 0; i <= nth; ++i) at = text.indexOf(opcode, at + 1);
  const end = text.indexOf(";", at) + 1;
  const before = Math.max(...[";", "{", "}", ":", "\n"].map((c) => text.lastIndexOf(c, at - 1)));
  const guard = text.slice(before + 1, at).search(/@/);
  return { begin: guard >= 0 ? before + 1 + guard : at, end };
}

/** The instructions of a run's launches whose opcodes begin so: opcode, lines, and where they stand in the text. */
function instructionsOf(text, source, launches, prefixes) {
  const starts = [0];
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  const sourceLines = source.split("\n");
  const onLine = new Map();
  const found = [];
  for (const row of launches.flatMap(({ instructions }) => instructions)) {
    const opcode = row[OPCODE];
    if (!prefixes.some((prefix) => opcode.startsWith(prefix))) continue;
    const sourceText = (sourceLines[row[SOURCE] - 1] ?? "").trim();
    const here = `${row[PTX]} ${opcode}`;
    const nth = onLine.get(here) ?? 0;
    onLine.set(here, nth + 1);
    found.push({ opcode, line: row[PTX], sourceLine: row[SOURCE], source: sourceText, ...place(text, starts[row[PTX] - 1], opcode, nth) });
  }
  return found;
}

/** Counts `key` in a map, and returns how often it has been seen. */
function count(seen, key) {
  seen.set(key, (seen.get(key) ?? 0) + 1);
  return seen.get(key);
}

/**
 * All sites of a run's launches: {opcode, line (of the PTX), sourceLine, source, copy, copies, begin, end,
 * redundant}. A copy is one of several on a source line. `redundant` is why the kernel does not need the
 * site, where the tests have a reason.
 */
export function findSites(text, source, launches, redundant) {
  const numbers = new Map(), copies = new Map();
  const lineOf = (site) => `${site.opcode} ${site.sourceLine}`;
  const sites = instructionsOf(text, source, launches, OPCODES);
  for (const site of sites) {
    const number = count(numbers, site.opcode);
    site.copy = count(copies, lineOf(site));
    site.redundant = redundant.find(({ opcode, numbers }) => opcode === site.opcode && (numbers?.includes(number) ?? true))?.reason;
  }
  for (const site of sites) site.copies = copies.get(lineOf(site));
  return sites;
}

/** The edits {begin, end, put, source, sourceLine} of a fault {opcode, place, change}; none where there is no such place. */
export function editsOf(fault, text, source, launches) {
  const all = instructionsOf(text, source, launches, [fault.opcode]);
  const lines = [...new Set(all.map(({ sourceLine }) => sourceLine))].sort((a, b) => a - b);
  const here = all.filter(({ sourceLine }) => sourceLine === lines[fault.place - 1]);
  return here.map(({ begin, end, opcode, ...at }) => {
    const guard = text.slice(begin, text.indexOf(opcode, begin));
    const operands = text.slice(begin + guard.length + opcode.length, end - 1).split(",").map((each) => each.trim());
    return { ...at, begin, end, put: `${guard}${fault.change.replace(/\$(\d)/g, (_, nth) => operands[nth - 1])};` };
  });
}

/** Blanks. A wait for an mbarrier that tells its loop whether it is over tells it so at once. */
function blank(text) {
  const wait = /mbarrier\.(?:try|test)_wait\S*\s+([^\s,]+),/.exec(text);
  const over = wait ? `setp.eq.u32 ${wait[1]}, 0, 0;` : "";
  return over + text.replace(/[^\n]/g, " ").slice(over.length);
}

/** The text with blanks in place of the sites, and with edits: every line keeps its number. */
export function edited(text, sites, edits = []) {
  const all = [...sites, ...edits].sort((a, b) => b.begin - a.begin);
  let cut = text;
  for (const { begin, end, put } of all) {
    cut = cut.slice(0, begin) + (put ?? blank(cut.slice(begin, end))) + cut.slice(end);
  }
  return cut;
}
