// SPDX-License-Identifier: MIT
// Synchronisation instructions of a kernel and those that a fault changes, and its PTX without some or
// with others in their place.
import { OPCODE, PTX, SOURCE } from "./source.js";

const OPCODES = [
  "bar.", "barrier.", "cp.async.wait_group", "cp.async.wait_all", "mbarrier.", "fence.", "membar.",
  "cp.async.commit_group", "cp.async.bulk.commit", "wgmma.fence", "wgmma.commit", "wgmma.wait",
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

/** Every instruction of a run's launches: its opcode, its lines, and where it stands in the text. */
function instructionsOf(text, source, launches, isWanted) {
  const starts = [0];
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  const sourceLines = source.split("\n");
  const onLine = new Map();
  const found = [];
  for (const row of launches.flatMap(({ instructions }) => instructions)) {
    const opcode = row[OPCODE];
    const sourceText = (sourceLines[row[SOURCE] - 1] ?? "").trim();
    if (!isWanted(opcode, sourceText)) continue;
    const here = `${row[PTX]} ${opcode}`;
    const nth = onLine.get(here) ?? 0;
    onLine.set(here, nth + 1);
    found.push({ opcode, line: row[PTX], sourceLine: row[SOURCE], source: sourceText, ...place(text, starts[row[PTX] - 1], opcode, nth) });
  }
  return found;
}

/**
 * All sites of a run's launches: {opcode, line (of the PTX), sourceLine, source, copy, begin, end,
 * redundant}. `redundant` is why the kernel does not need it, where the tests have a reason.
 */
export function findSites(text, source, launches, redundant) {
  const copies = new Map();
  const reason = (site) => redundant.find(({ opcode, copy, source: line }) =>
    opcode === site.opcode && line === site.source && (copy === "*" || Number(copy) === site.copy))?.reason;
  const sites = instructionsOf(text, source, launches, (opcode) => OPCODES.some((prefix) => opcode.startsWith(prefix)));
  for (const site of sites) {
    const copy = `${site.opcode} ${site.source}`;
    copies.set(copy, (copies.get(copy) ?? 0) + 1);
    site.copy = copies.get(copy);
    site.redundant = reason(site);
  }
  for (const site of sites) site.copies = copies.get(`${site.opcode} ${site.source}`);
  return sites;
}

/** The edits {begin, end, put, sourceLine} of a fault {opcode, change, source}; none where no instruction has the line. */
export function editsOf(fault, text, source, launches) {
  const isWanted = (opcode, line) => opcode.startsWith(fault.opcode) && line === fault.source;
  return instructionsOf(text, source, launches, isWanted).map(({ begin, end, opcode, sourceLine }) => {
    const guard = text.slice(begin, text.indexOf(opcode, begin));
    const operands = text.slice(begin + guard.length + opcode.length, end - 1).split(",").map((each) => each.trim());
    return { begin, end, sourceLine, put: `${guard}${fault.change.replace(/\$(\d)/g, (_, nth) => operands[nth - 1])};` };
  });
}

const blank = (text) => text.replace(/[^\n]/g, " ");

/** The text with blanks in place of the sites, and with edits: every line keeps its number. */
export function edited(text, sites, edits = []) {
  const all = [...sites, ...edits].sort((a, b) => b.begin - a.begin);
  let cut = text;
  for (const { begin, end, put } of all) {
    cut = cut.slice(0, begin) + (put ?? blank(cut.slice(begin, end))) + cut.slice(end);
  }
  return cut;
}
