// SPDX-License-Identifier: MIT
// Synchronisation instructions of a kernel, and its PTX without some of them.
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

/**
 * All sites of a run's launches: {opcode, line (of the PTX), sourceLine, source, copy, begin, end,
 * redundant}. `redundant` is why the kernel does not need it, where the tests have a reason.
 */
export function findSites(text, source, launches, redundant) {
  const starts = [0];
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  const sourceLines = source.split("\n");
  const copies = new Map();
  const onLine = new Map();
  const sites = [];
  const reason = (site) => redundant.find(({ opcode, copy, source: line }) =>
    opcode === site.opcode && line === site.source && (copy === "*" || Number(copy) === site.copy))?.reason;
  for (const row of launches.flatMap(({ instructions }) => instructions)) {
    const opcode = row[OPCODE];
    const here = `${row[PTX]} ${opcode}`;
    if (!OPCODES.some((prefix) => opcode.startsWith(prefix))) continue;
    const nth = onLine.get(here) ?? 0;
    onLine.set(here, nth + 1);
    const site = { opcode, line: row[PTX], sourceLine: row[SOURCE], source: (sourceLines[row[SOURCE] - 1] ?? "").trim() };
    const copy = `${opcode} ${site.source}`;
    copies.set(copy, (copies.get(copy) ?? 0) + 1);
    Object.assign(site, place(text, starts[row[PTX] - 1], opcode, nth), { copy: copies.get(copy) });
    site.redundant = reason(site);
    sites.push(site);
  }
  for (const site of sites) site.copies = copies.get(`${site.opcode} ${site.source}`);
  return sites;
}

/** The text with blanks in place of the sites: every line keeps its number. */
export function without(text, sites) {
  let cut = text;
  for (const { begin, end } of sites) {
    cut = cut.slice(0, begin) + cut.slice(begin, end).replace(/[^\n]/g, " ") + cut.slice(end);
  }
  return cut;
}
