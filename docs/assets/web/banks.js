// SPDX-License-Identifier: MIT
// Banks: a request to shared memory as the machine executed it, cut into wavefronts.
import { catalogue, planOf, rungData, runRung } from "./machine.js";
import { h, Runner, select, state, svg, take } from "./dom.js";
import { OPCODE, PTX, SOURCE, WAVEFRONTS } from "./source.js";
import { parse } from "./formula.js";
import { groups } from "./wavefronts.js";

const REQUESTS = 4; // recorded of each instruction
const LAYOUTS = [
  ["executed", "as executed"], ["row", "row-major"], ["padded", "padded by 16 bytes"], ["xor", "XOR swizzle"], ["own", "a formula"],
];
const FORMULAS = { row: "r * W + c * 16", padded: "r * (W + 16) + c * 16", xor: "r * W + (c ^ (r % 8)) * 16" };

const WIDTH = 20, HEIGHT = 18, LEFT = 24;

/** 32 banks across, a row for each wavefront. */
function grid(wavefronts, depth) {
  const columns = Array.from({ length: 32 }, (_, bank) =>
    svg("text", { x: LEFT + bank * WIDTH + WIDTH / 2, y: 12, class: "fa-axis" }, String(bank)));
  const rows = Array.from({ length: depth }, (_, row) => {
    const y = 18 + row * HEIGHT;
    const cells = Array.from({ length: 32 }, (_, bank) =>
      svg("rect", { x: LEFT + bank * WIDTH, y, width: WIDTH - 1, height: HEIGHT - 1, class: "fa-bank" }));
    const used = (wavefronts[row] ?? []).map(({ bank, banks, lanes }) => svg("g", { class: "fa-access" },
      svg("rect", { x: LEFT + bank * WIDTH, y, width: banks * WIDTH - 1, height: HEIGHT - 1, class: "fa-used" }),
      svg("text", { x: LEFT + (bank + banks / 2) * WIDTH, y: y + 13 }, lanes.length > 3 ? `${lanes[0]}–${lanes.at(-1)}` : lanes.join(","))));
    return [svg("text", { x: LEFT - 8, y: y + 13, class: "fa-axis fa-end" }, String(row + 1)), ...cells, ...used];
  });
  return svg("svg", { viewBox: `0 0 ${LEFT + 32 * WIDTH} ${20 + depth * HEIGHT}`, role: "img", class: "fa-banks",
    "aria-label": `${wavefronts.length} wavefronts over 32 banks; the numbers in the cells are lanes` }, columns, rows.flat());
}

class BanksWidget {
  constructor(place, all, name) {
    this.place = place;
    this.all = all;
    const saved = (state.get("banks") ?? "").split(",");
    this.name = all.rungs.some((rung) => rung.name === saved[0]) ? saved[0] : name;
    this.wanted = Number(saved[1]) || null; // a line of the PTX
    this.layout = saved[2] || "executed";
    this.formula = state.get("formula") ?? FORMULAS.xor;
    this.group = 0;
    this.request = 0;
    this.choice = h("div", { class: "fa-form" });
    this.picture = h("div");
    this.runner = new Runner("Run", (report) => this.run(report));
    const rungs = select("Rung", all.rungs.map((rung) => rung.name), this.name, (value) => {
      this.name = value;
      this.wanted = null;
      this.runner.start();
    });
    take(place, h("div", { class: "fa-form" }, rungs), this.runner.element, this.choice, this.picture);
    if (saved[0]) this.runner.start();
  }

  async run(report) {
    this.place.dataset.state = "running";
    this.data = await rungData(this.name);
    const { choice } = this.data.expected;
    const plan = await planOf(this.name, choice);
    const answer = await runRung(this.name, plan, { requests: REQUESTS, checkers: false }, report);
    if (answer.error) throw new Error(answer.error);
    this.width = choice.d * (plan.problem.dtype === "float16" ? 2 : 4);
    const rows = new Map(answer.launches.flatMap(({ instructions }) => instructions).map((row) => [row[PTX], row]));
    // The gate launches twice; the first launch is shown.
    this.lines = new Map();
    for (const each of answer.requests) {
      if (!this.lines.has(each.line)) this.lines.set(each.line, { ...each, row: rows.get(each.line) });
    }
    if (!this.lines.has(this.wanted)) this.wanted = this.worst();
    this.showChoice();
    this.show();
    this.place.dataset.state = "done";
  }

  /** The instruction with most wavefronts a request, then most wavefronts. */
  worst() {
    const score = ({ requests, row }) => Math.max(...requests.map(({ wavefronts, ideal }) => wavefronts / ideal)) * 1e9 + row[WAVEFRONTS];
    return [...this.lines.values()].reduce((a, b) => (score(b) > score(a) ? b : a)).line;
  }

  choose(change) {
    Object.assign(this, change);
    state.set("banks", [this.name, this.wanted, this.layout].join(","));
    if (this.layout === "own") state.set("formula", this.formula);
    this.showChoice();
    this.show();
  }

  showChoice() {
    const source = this.data.source.split("\n");
    const lines = [...this.lines.values()].map(({ line, row }) =>
      [line, `${row[OPCODE].split(".")[0]}, line ${row[SOURCE]}: ${(source[row[SOURCE] - 1] ?? "").trim().slice(0, 60)} (PTX ${line})`]);
    const requests = this.lines.get(this.wanted).requests.map(({ warp }, i) => [i, `${i + 1} (warp ${warp})`]);
    const formula = h("input", { type: "text", size: 28, value: this.formula, onchange: () => this.choose({ formula: formula.value }) });
    this.choice.replaceChildren(
      select("Instruction", lines, this.wanted, (value) => this.choose({ wanted: Number(value), request: 0, group: 0 })),
      select("Layout", LAYOUTS, this.layout, (layout) => this.choose({ layout, group: 0 })),
      ...(this.layout === "executed" ? [select("Request", requests, this.request, (value) => this.choose({ request: Number(value), group: 0 }))] : []),
      ...(this.layout === "own" ? [h("label", {}, "byte address of row r, chunk c, rows of W bytes ", formula)] : []));
  }

  /** Addresses of 32 lanes: as executed, or those of a column of chunks in some layout. */
  access() {
    if (this.layout === "executed") return this.lines.get(this.wanted).requests[this.request];
    const address = parse(FORMULAS[this.layout] ?? this.formula, ["r", "c", "W"]);
    const addresses = Array.from({ length: 32 }, (_, lane) =>
      address({ r: (lane % 8) + 8 * (Math.floor(lane / 8) % 2), c: Math.floor(lane / 16), W: this.width }));
    return { addresses, bytes: 16, load: false };
  }

  show() {
    let access;
    try {
      access = this.access();
    } catch (error) {
      this.picture.replaceChildren(h("p", { class: "fa-bad" }, error.message));
      return;
    }
    const all = groups(access.addresses, access.bytes, access.load);
    const total = all.reduce((sum, each) => sum + each.length, 0);
    const most = Math.max(...all.map((each) => each.length));
    const one = all[this.group];
    const step = (by) => this.stepTo((this.group + by + all.length) % all.length);
    const says = `Lanes that go together: group ${this.group + 1} of ${all.length}, ${one.length} ` +
      `wavefront${one.length === 1 ? "" : "s"}; the whole request takes ${total}` +
      (access.wavefronts === undefined ? "." : `, and the machine counts ${access.wavefronts}.`);
    this.picture.replaceChildren(
      h("p", { class: "fa-says", "data-wavefronts": one.length, "data-total": total, "data-counted": access.wavefronts ?? "" }, says),
      h("div", { class: "fa-runner" },
        h("button", { type: "button", onclick: () => step(-1) }, "Previous group"),
        h("button", { type: "button", onclick: () => step(1) }, "Next group")),
      h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": "banks" }, grid(one, most)));
  }

  stepTo(group) {
    this.group = group;
    this.show();
  }
}

export async function start(place) {
  new BanksWidget(place, await catalogue(), place.dataset.rung);
}
