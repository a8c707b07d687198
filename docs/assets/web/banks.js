// SPDX-License-Identifier: MIT
// Banks: a request to shared memory, cut into wavefronts: by a formula at once, as the machine executed
// it after a run. With data-stride: a load of data[tid * stride], whose stride a slider changes.
import { catalogue, planOf, rungData, runRung } from "./machine.js";
import { h, Runner, select, state, svg, take } from "./dom.js";
import { OPCODE, PTX, SOURCE, WAVEFRONTS } from "./source.js";
import { parse } from "./formula.js";
import { groups } from "./wavefronts.js";

const REQUESTS = 4; // recorded of each instruction
const EXECUTED = "executed", OWN = "own";
const LAYOUTS = [["row", "row-major"], ["padded", "padded by 16 bytes"], ["xor", "XOR swizzle"], [OWN, "a formula"]];
const FORMULAS = { row: "r * W + c * 16", padded: "r * (W + 16) + c * 16", xor: "r * W + (c ^ (r % 8)) * 16" };
const ROW_BYTES = 256; // of a tile of 128 halves
const LARGEST_STRIDE = 40;

const WIDTH = 20, LEFT = 24, TALLEST = 400; // rows are lower where there are many

const span = (lanes) => (lanes.length > 3 ? `${lanes[0]}–${lanes.at(-1)}` : lanes.join(","));

/** 32 banks across, a row for each wavefront; `onlane(access)` is called where a pointer is. */
function grid(wavefronts, depth, onlane) {
  const height = Math.min(18, TALLEST / depth);
  const middle = height / 2 + 4;
  const columns = Array.from({ length: 32 }, (_, bank) =>
    svg("text", { x: LEFT + bank * WIDTH + WIDTH / 2, y: 12, class: "fa-axis" }, String(bank)));
  const rows = Array.from({ length: depth }, (_, row) => {
    const y = 18 + row * height;
    const cells = Array.from({ length: 32 }, (_, bank) =>
      svg("rect", { x: LEFT + bank * WIDTH, y, width: WIDTH - 1, height: height - 1, class: "fa-bank" }));
    const used = (wavefronts[row] ?? []).map((access) => {
      const { bank, banks, lanes } = access;
      const cell = svg("g", { class: "fa-access" },
        svg("rect", { x: LEFT + bank * WIDTH, y, width: banks * WIDTH - 1, height: height - 1, class: "fa-used" }),
        svg("text", { x: LEFT + (bank + banks / 2) * WIDTH, y: y + middle }, span(lanes)));
      cell.addEventListener("pointerenter", () => onlane(access, row));
      return cell;
    });
    return [svg("text", { x: LEFT - 8, y: y + middle, class: "fa-axis fa-end" }, String(row + 1)), ...cells, ...used];
  });
  return svg("svg", { viewBox: `0 0 ${LEFT + 32 * WIDTH} ${20 + depth * height}`, role: "img", class: "fa-banks",
    "aria-label": `${wavefronts.length} wavefronts over 32 banks; the numbers in the cells are lanes` }, columns, rows.flat());
}

/** The picture of a request, group by group. */
class Picture {
  constructor() {
    this.group = 0;
    this.element = h("div");
  }

  /** `access` is {addresses, bytes, load} and, where the machine has executed it, wavefronts. */
  show(access) {
    this.access = access;
    const all = groups(access.addresses, access.bytes, access.load);
    this.group = Math.min(this.group, all.length - 1);
    const total = all.reduce((sum, each) => sum + each.length, 0);
    const one = all[this.group];
    const step = (by) => { this.group = (this.group + by + all.length) % all.length; this.show(access); };
    const says = `Lanes that go together: group ${this.group + 1} of ${all.length}, ${one.length} ` +
      `wavefront${one.length === 1 ? "" : "s"}; the whole request takes ${total}` +
      (access.wavefronts === undefined ? "." : `, and the machine counts ${access.wavefronts}.`);
    const hover = h("p", { class: "fa-hover" }, "Point at a cell for its lane and address.");
    const onlane = ({ bank, banks, lanes }, row) => {
      const where = banks === 1 ? `bank ${bank}` : `banks ${bank} to ${bank + banks - 1}`;
      hover.textContent = `Lane ${span(lanes)}: byte ${access.addresses[lanes[0]]}, ${where}, in wavefront ${row + 1}.`;
    };
    this.element.replaceChildren(...[
      h("p", { class: "fa-says", "data-wavefronts": one.length, "data-total": total, "data-counted": access.wavefronts ?? "" }, says),
      all.length < 2 ? null : h("div", { class: "fa-runner" },
        h("button", { type: "button", onclick: () => step(-1) }, "Previous group"),
        h("button", { type: "button", onclick: () => step(1) }, "Next group")),
      h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": "banks" },
        grid(one, Math.max(...all.map((each) => each.length)), onlane)),
      hover,
    ].filter(Boolean));
  }
}

class StrideWidget {
  constructor(place) {
    this.stride = Number(place.dataset.stride);
    this.bytes = 4;
    this.picture = new Picture();
    this.picture.element.className = "fa-steady";
    this.value = h("output");
    const slider = h("input", { type: "range", min: 0, max: LARGEST_STRIDE, value: this.stride, "aria-label": "stride",
      oninput: () => { this.stride = Number(slider.value); this.show(); } });
    const types = [[4, "float"], [16, "float4"]];
    take(place, h("div", { class: "fa-form" }, select("data of", types, this.bytes, (bytes) => { this.bytes = Number(bytes); this.show(); }),
      h("label", { class: "fa-scrub" }, this.value, slider)), this.picture.element);
    this.show();
    place.dataset.state = "done";
  }

  show() {
    this.value.textContent = `data[tid * ${this.stride}]`;
    const addresses = Array.from({ length: 32 }, (_, lane) => lane * this.stride * this.bytes);
    this.picture.show({ addresses, bytes: this.bytes, load: true });
  }
}

class BanksWidget {
  constructor(place, all, name) {
    this.place = place;
    this.all = all;
    const saved = (state.get("banks") ?? "").split(",");
    this.name = all.rungs.some((rung) => rung.name === saved[0]) ? saved[0] : name;
    this.wanted = Number(saved[1]) || null; // a line of the PTX
    this.layout = place.dataset.layout ?? "row";
    this.after = saved[2] || EXECUTED; // the layout once there is a run
    this.formula = state.get("formula") ?? FORMULAS.xor;
    this.request = 0;
    this.width = ROW_BYTES;
    this.choice = h("div", { class: "fa-form" });
    this.wrong = h("p", { class: "fa-bad" });
    this.picture = new Picture();
    this.runner = new Runner("Run", (report) => this.run(report));
    const rungs = select("Rung", all.rungs.map((rung) => rung.name), this.name, (value) => {
      this.name = value;
      this.wanted = null;
      this.runner.start();
    });
    take(place, h("div", { class: "fa-form" }, rungs), this.runner.element, this.choice, this.wrong, this.picture.element);
    this.showChoice();
    this.show();
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
    this.layout = this.after;
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
    this.after = this.layout;
    this.picture.group = 0;
    if (this.lines) state.set("banks", [this.name, this.wanted, this.layout].join(","));
    if (this.layout === OWN) state.set("formula", this.formula);
    this.showChoice();
    this.show();
  }

  showChoice() {
    const layouts = [...(this.lines ? [[EXECUTED, "as executed"]] : []), ...LAYOUTS];
    const formula = h("input", { type: "text", size: 28, value: this.formula, onchange: () => this.choose({ formula: formula.value }) });
    this.choice.replaceChildren(
      ...(this.lines ? [this.instructions()] : []),
      select("Layout", layouts, this.layout, (layout) => this.choose({ layout })),
      ...(this.layout === EXECUTED ? [this.requests()] : []),
      ...(this.layout === OWN ? [h("label", {}, "byte address of row r, chunk c, rows of W bytes ", formula)] : []));
  }

  instructions() {
    const source = this.data.source.split("\n");
    const lines = [...this.lines.values()].map(({ line, row }) =>
      [line, `${row[OPCODE].split(".")[0]}, line ${row[SOURCE]}: ${(source[row[SOURCE] - 1] ?? "").trim().slice(0, 60)} (PTX ${line})`]);
    return select("Instruction", lines, this.wanted, (value) => this.choose({ wanted: Number(value), request: 0 }));
  }

  requests() {
    const all = this.lines.get(this.wanted).requests.map(({ warp }, i) => [i, `${i + 1} (warp ${warp})`]);
    return select("Request", all, this.request, (value) => this.choose({ request: Number(value) }));
  }

  /** Addresses of 32 lanes: as executed, or those of a column of chunks in some layout. */
  access() {
    if (this.layout === EXECUTED) return this.lines.get(this.wanted).requests[this.request];
    const address = parse(FORMULAS[this.layout] ?? this.formula, ["r", "c", "W"]);
    const addresses = Array.from({ length: 32 }, (_, lane) =>
      address({ r: (lane % 8) + 8 * (Math.floor(lane / 8) % 2), c: Math.floor(lane / 16), W: this.width }));
    return { addresses, bytes: 16, load: false };
  }

  show() {
    this.wrong.textContent = "";
    try {
      this.picture.show(this.access());
    } catch (error) {
      this.wrong.textContent = error.message;
    }
  }
}

export async function start(place) {
  if (place.dataset.stride) new StrideWidget(place);
  else new BanksWidget(place, await catalogue(), place.dataset.rung);
}
