// SPDX-License-Identifier: MIT
// A kernel's source with counts in the margin; a line opens its PTX.
import { h, number, quotient, select } from "./dom.js";

// Columns of the instructions that the machine reports.
export const PTX = 0, OPCODE = 1, SOURCE = 2, INSTRUCTIONS = 3, TENSOR = 4, EXP = 5, WAVEFRONTS = 6, IDEAL = 7, SECTORS = 8;

const MEASURES = [
  ["instr.", INSTRUCTIONS],
  ["tensor", TENSOR],
  ["exp", EXP],
  ["wavefr.", WAVEFRONTS],
  ["sectors", SECTORS],
];

/** Sums of the instructions of each source line; line 0 holds those of no line of the file. */
export function byLine(launches) {
  const lines = new Map();
  for (const { instructions } of launches) {
    for (const row of instructions) {
      const sums = lines.get(row[SOURCE]) ?? { counts: new Array(9).fill(0), rows: [] };
      for (let i = INSTRUCTIONS; i <= SECTORS; ++i) sums.counts[i] += row[i];
      sums.rows.push(row);
      lines.set(row[SOURCE], sums);
    }
  }
  return lines;
}

function ptxRows(rows, ptx, columns) {
  return rows.map((row) =>
    h("tr", { class: "fa-ptx" },
      MEASURES.map(([, column]) => h("td", {}, row[column] ? number(row[column]) : "")),
      h("td", {}, row[WAVEFRONTS] > row[IDEAL] ? `×${quotient(row[WAVEFRONTS], row[IDEAL])}` : ""),
      h("td", { class: "fa-number" }, String(row[PTX])),
      h("td", { class: "fa-code" }, h("code", {}, ptx[row[PTX] - 1].trim()))),
  );
}

/** The table of a source; `onbanks(rows)` is called for a line with requests to shared memory. */
export class SourceView {
  constructor(source, ptx, launches, measure = INSTRUCTIONS) {
    this.lines = byLine(launches);
    this.ptx = ptx.split("\n");
    this.source = source.replace(/\n$/, "").split("\n");
    this.heat = this.lines.size > 0 && this.sum(measure) > 0 ? measure : INSTRUCTIONS;
    this.says = h("span");
    this.body = h("tbody");
    this.table = h("table", { class: "fa-lines" });
    const choice = select("Colour by", MEASURES.map(([name, column]) => [column, name]), this.heat,
      (value) => { this.heat = Number(value); this.colour(); this.reveal(); });
    const head = h("tr", {}, MEASURES.map(([name]) => h("th", { scope: "col" }, name)),
      h("th", { scope: "col" }, "ways"), h("th", { scope: "col" }, "line"), h("th", { scope: "col" }, "source"));
    this.element = h("div", {}, h("p", {}, choice, this.says, " A line number opens the line's PTX."),
      h("div", { class: "fa-source", tabindex: "0", role: "region", "aria-label": "kernel source with counts" },
        this.table));
    this.table.append(h("thead", {}, head), this.body);
    this.fill();
    this.colour();
  }

  fill() {
    this.source.forEach((text, index) => {
      const line = index + 1;
      const sums = this.lines.get(line);
      const counts = sums?.counts ?? [];
      const opener = sums
        ? h("button", { type: "button", "aria-expanded": "false", "aria-label": `PTX of line ${line}` }, String(line))
        : String(line);
      const row = h("tr", { "data-line": line },
        MEASURES.map(([, column]) => h("td", { "data-column": column }, counts[column] ? number(counts[column]) : "")),
        h("td", {}, counts[WAVEFRONTS] > counts[IDEAL] ? `×${quotient(counts[WAVEFRONTS], counts[IDEAL])}` : ""),
        h("td", { class: "fa-number" }, opener), h("td", { class: "fa-code" }, h("code", {}, text)));
      if (sums) opener.addEventListener("click", () => this.toggle(row, opener, sums.rows));
      this.body.append(row);
    });
  }

  /** What all lines of the file have of a measure. */
  sum(measure) {
    return [...this.lines].reduce((sum, [line, { counts }]) => sum + (line > 0 ? counts[measure] : 0), 0);
  }

  /** Scrolls to the line with the most, and marks it. */
  reveal() {
    const lines = [...this.lines].filter(([line]) => line > 0);
    const [line, { counts }] = lines.reduce((a, b) => (b[1].counts[this.heat] > a[1].counts[this.heat] ? b : a));
    const row = this.body.querySelector(`[data-line="${line}"]`);
    for (const each of this.body.querySelectorAll(".fa-hot")) each.classList.remove("fa-hot");
    row.classList.add("fa-hot");
    const share = Math.round((100 * counts[this.heat]) / this.sum(this.heat));
    this.says.textContent = ` Most of it is in line ${line}: ${share} %.`;
    const view = row.closest(".fa-source");
    view.scrollTop = row.offsetTop - view.clientHeight / 2;
  }

  toggle(row, opener, rows) {
    const open = opener.getAttribute("aria-expanded") === "true";
    opener.setAttribute("aria-expanded", String(!open));
    if (!open) {
      row.after(...ptxRows(rows, this.ptx));
      return;
    }
    while (row.nextElementSibling?.classList.contains("fa-ptx")) row.nextElementSibling.remove();
  }

  /** By the chosen measure, which is the only one that a narrow window shows. */
  colour() {
    this.table.dataset.shown = MEASURES.findIndex(([, column]) => column === this.heat) + 1;
    const most = Math.max(1, ...[...this.lines].filter(([line]) => line > 0).map(([, { counts }]) => counts[this.heat]));
    for (const row of this.body.querySelectorAll("tr[data-line]")) {
      const counts = this.lines.get(Number(row.dataset.line))?.counts;
      // The root keeps small counts visible beside the largest.
      const share = counts ? Math.sqrt(counts[this.heat] / most) : 0;
      row.style.setProperty("--fa-heat", share.toFixed(3));
    }
  }
}
