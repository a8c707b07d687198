// SPDX-License-Identifier: MIT
// Who holds what: which lane has which element of a tile in which register, asked of the machine.
import { machine } from "./machine.js";
import { h, Runner, select, state, still, take, whenSeen } from "./dom.js";

const HEAD = `.version 8.0
.target sm_80
.address_size 64
.visible .entry holds(.param .u64 out)
{
  .reg .b32 %a<4>, %b<2>, %r<40>;
  .reg .f32 %c<8>, %f<8>;
  .reg .b16 %h<8>;
  .reg .pred %p<4>;
  .reg .b64 %o<4>;
  .shared .align 16 .b8 tile[512];
  .shared .align 16 .b8 right[512];
  ld.param.u64 %o0, [out];
  cvta.to.global.u64 %o0, %o0;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %o1, %r0, 16;
  add.s64 %o0, %o0, %o1;
  mov.u32 %r1, tile;
  mov.u32 %r2, right;
`;
const TAIL = `  ret;
}
`;

/** Stores elements 8 lane .. 8 lane + 7 of a tile of 16 columns, each made by `element`. */
const fill = (base, element) => Array.from({ length: 8 }, (_, i) => `
  mad.lo.u32 %r10, %r0, 8, ${i};
  shr.u32 %r11, %r10, 4;
  and.b32 %r12, %r10, 15;
${element}
  mad.lo.u32 %r13, %r10, 2, ${base};
  st.shared.b16 [%r13], %h0;`).join("");
const NUMBERED = "  cvt.u16.u32 %h0, %r10;";
// Rows of 16 columns: 16 row in the first, 1 in the second; and 1 in the first row, column in the second.
const ROW_AND_ONE = `  setp.eq.u32 %p0, %r12, 0;
  setp.eq.u32 %p1, %r12, 1;
  shl.b32 %r14, %r11, 3;
  selp.b32 %r15, 1, 0, %p1;
  selp.b32 %r15, %r14, %r15, %p0;
  cvt.rn.f16.u32 %h0, %r15;`;
const ONE_AND_COLUMN = `  setp.eq.u32 %p0, %r11, 0;
  setp.eq.u32 %p1, %r11, 1;
  selp.b32 %r15, %r12, 0, %p1;
  selp.b32 %r15, 1, %r15, %p0;
  cvt.rn.f16.u32 %h0, %r15;`;
const AT_LANE = (base) => `
  and.b32 %r20, %r0, 15;
  shr.u32 %r21, %r0, 4;
  shl.b32 %r20, %r20, 5;
  shl.b32 %r21, %r21, 4;
  add.u32 %r22, ${base}, %r20;
  add.u32 %r22, %r22, %r21;
`;
const LOAD_A = (suffix) => `${AT_LANE("%r1")}
  ldmatrix.sync.aligned.m8n8.x4${suffix}.shared.b16 {%a0, %a1, %a2, %a3}, [%r22];
`;
const WRITE = (registers) => `  st.global.v4.b32 [%o0], {${registers.join(", ")}};\n`;
const SYNC = "\n  bar.warp.sync -1;\n";

const TILES = {
  a: { name: "A of mma.m16n8k16, and ldmatrix.x4", rows: 16, columns: 16, registers: 4, halves: true,
    text: fill("%r1", NUMBERED) + SYNC + LOAD_A("") + WRITE(["%a0", "%a1", "%a2", "%a3"]) },
  trans: { name: "ldmatrix.x4.trans", rows: 16, columns: 16, registers: 4, halves: true,
    text: fill("%r1", NUMBERED) + SYNC + LOAD_A(".trans") + WRITE(["%a0", "%a1", "%a2", "%a3"]) },
  b: { name: "B of mma.m16n8k16 (16 rows of k, 8 columns)", rows: 16, columns: 8, pitch: 16, registers: 2, halves: true,
    text: fill("%r1", NUMBERED) + SYNC + LOAD_A(".trans") + WRITE(["%a0", "%a1", "%a0", "%a1"]) },
  c: { name: "C and D of mma.m16n8k16", rows: 16, columns: 8, registers: 4, halves: false,
    text: fill("%r1", ROW_AND_ONE) + fill("%r2", ONE_AND_COLUMN) + SYNC + LOAD_A("") + AT_LANE("%r2") +
      `  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%b0, %b1}, [%r22];
  mov.f32 %c0, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c4, %c5, %c6, %c7}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c0, %c0, %c0};
` + [4, 5, 6, 7].map((i) => `  cvt.rzi.u32.f32 %r${26 + i}, %c${i};\n`).join("") + WRITE(["%r30", "%r31", "%r32", "%r33"]) },
};

/** Where each element is: element (row * columns + column) to {lane, register, half}. */
async function ask(tile) {
  const loaded = await machine.load("holds.ptx", HEAD + tile.text + TAIL);
  if (loaded.error) throw new Error(loaded.error);
  const answer = await machine.call({
    do: "launch", entry: "holds", grid: [1, 1, 1], block: [32, 1, 1], cluster: [1, 1, 1], shared: 0,
    arguments: [{ buffer: "out", type: "u32", count: 128, fill: "zero" }], shown: 128,
  });
  if (answer.error || answer.fault) throw new Error(answer.error ?? answer.fault.text);
  const places = new Map();
  const put = (number, place) => {
    const pitch = tile.pitch ?? tile.columns;
    const [row, column] = [Math.floor(number / pitch), number % pitch];
    if (row < tile.rows && column < tile.columns && !places.has(`${row},${column}`)) places.set(`${row},${column}`, place);
  };
  answer.buffers[0].values.forEach((word, index) => {
    const [lane, register] = [index >> 2, index & 3];
    if (register >= tile.registers) return;
    if (!tile.halves) put(word, { lane, register, part: "" });
    else [word & 0xffff, word >>> 16].forEach((number, half) => put(number, { lane, register, part: half === 0 ? "low" : "high" }));
  });
  return places;
}

class HoldsWidget {
  constructor(place) {
    this.place = place;
    this.key = TILES[state.get("tile")] ? state.get("tile") : "a";
    this.says = h("p", { role: "status" }, "Point at an element, or move to it with the Tab key: all elements of its lane light up.");
    this.table = h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": "tile" }, still(place));
    this.runner = new Runner("Run", () => this.run());
    take(place, h("div", { class: "fa-form" },
      select("Tile", Object.entries(TILES).map(([key, { name }]) => [key, name]), this.key, (key) => {
        this.key = key;
        state.set("tile", key);
        this.runner.start();
      })), this.runner.element, this.table, this.says);
    whenSeen(place, () => this.runner.start());
  }

  async run() {
    this.place.dataset.state = "running";
    const tile = TILES[this.key];
    const places = await ask(tile);
    const head = h("tr", {}, h("th", {}, ""), Array.from({ length: tile.columns }, (_, c) => h("th", { scope: "col" }, String(c))));
    const rows = Array.from({ length: tile.rows }, (_, row) => h("tr", {}, h("th", { scope: "row" }, String(row)),
      Array.from({ length: tile.columns }, (_, column) => this.cell(row, column, places.get(`${row},${column}`)))));
    this.table.replaceChildren(h("table", { class: "fa-tile" }, h("thead", {}, head), h("tbody", {}, rows)));
    this.place.dataset.state = "done";
  }

  cell(row, column, { lane, register, part }) {
    const light = () => {
      for (const cell of this.table.querySelectorAll("td")) cell.classList.toggle("fa-own", cell.dataset.lane === String(lane));
      this.says.textContent = `Row ${row}, column ${column}: lane ${lane}, register ${register}${part ? `, ${part} half` : ""}.`;
    };
    return h("td", { "data-lane": lane, "data-register": register, style: `--fa-hue: ${(lane * 11) % 360}`, tabindex: row === 0 || column === 0 ? "0" : "-1",
      onpointerenter: light, onfocus: light, onclick: light }, `${lane}`);
  }
}

export async function start(place) {
  new HoldsWidget(place);
}
