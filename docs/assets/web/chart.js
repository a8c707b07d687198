// SPDX-License-Identifier: MIT
// The chart: measured rates of rungs and peers for a problem that the reader chooses.
import { chart } from "./machine.js";
import { h, select, state, svg, take } from "./dom.js";

const LEFT = 118, RIGHT = 48, ROW = 16, GAP = 4;
const FIELDS = ["card", "dtype", "n", "d", "causal", "inputs"];
const TITLES = { card: "Card", dtype: "Type", n: "N", d: "d", causal: "Mask", inputs: "Inputs" };
const PREFERRED = { card: "h200", dtype: "float16", n: "8192", d: "128", causal: "false", inputs: "normal, spread 1" };

const value = (row, field) => (field === "inputs" ? `${row.inputs}, spread ${row.spread}` : String(row[field]));
const text = (field, key) => (field === "causal" ? (key === "true" ? "causal" : "full") : key);

function describe(row) {
  const parts = [`${row.chapter ?? row.id}${row.variant ? ` at tile ${row.variant}` : ""}: ${row.tflops.toFixed(1)} TFLOPS`];
  if (row.back_to_back) parts.push(`${row.back_to_back.toFixed(1)} back to back`);
  if (row.limit) parts.push(`${Math.round(row.limit * 100)} % of the card's limit for its family`);
  if (row.clock_mhz) parts.push(`${row.clock_mhz} MHz`);
  if (row.power_w) parts.push(`${row.power_w} W`);
  return `${parts.join(", ")}.`;
}

class ChartWidget {
  constructor(place, cards) {
    this.place = place;
    this.rows = Object.entries(cards).flatMap(([card, rows]) => rows.map((row) => ({ ...row, card })));
    this.chosen = Object.fromEntries((state.get("chart") ?? "").split(";").map((word, i) => [FIELDS[i], word]).filter(([, word]) => word));
    this.form = h("div", { class: "fa-form" });
    this.picture = h("div", { class: "fa-wide fa-whole", tabindex: "0", role: "region", "aria-label": "rates" });
    this.says = h("p", { role: "status" }, "Point at a bar for its clock, its power and its share of the card's limit; a click opens the chapter.");
    take(place, this.form, this.picture, this.says);
    this.show();
    new ResizeObserver(() => this.show()).observe(this.place);
  }

  /** Each choice leaves those that have rows under the choices before it. */
  narrow() {
    let rows = this.rows;
    const lists = [];
    for (const field of FIELDS) {
      const keys = [...new Set(rows.map((row) => value(row, field)))];
      if (field === "n" || field === "d") keys.sort((a, b) => a - b);
      if (!keys.includes(this.chosen[field])) this.chosen[field] = keys.includes(PREFERRED[field]) ? PREFERRED[field] : keys[0];
      lists.push(select(TITLES[field], keys.map((key) => [key, text(field, key)]), this.chosen[field], (key) => this.choose(field, key)));
      rows = rows.filter((row) => value(row, field) === this.chosen[field]);
    }
    return { lists, rows };
  }

  choose(field, key) {
    this.chosen[field] = key;
    this.show();
    state.set("chart", FIELDS.map((each) => this.chosen[each]).join(";"));
  }

  show() {
    const { lists, rows } = this.narrow();
    this.form.replaceChildren(...lists);
    const shown = rows.filter((row) => !row.variant);
    const most = Math.max(...shown.map((row) => row.tflops));
    const room = Math.max(120, this.picture.clientWidth - LEFT - RIGHT);
    const bars = shown.map((row, index) => this.bar(row, index, room / most));
    this.picture.replaceChildren(svg("svg", { width: LEFT + room + RIGHT, height: shown.length * (ROW + GAP), role: "group", class: "fa-chart",
      "aria-label": "TFLOPS of each kernel" }, bars));
    this.place.dataset.state = "done";
  }

  bar(row, index, scale) {
    const y = index * (ROW + GAP);
    const width = row.tflops * scale;
    const say = () => { this.says.textContent = describe(row); };
    const parts = [svg("text", { x: LEFT - 6, y: y + 12, class: "fa-end" }, row.chapter ?? row.id),
      svg("rect", { x: LEFT, y, width, height: ROW, class: row.kind === "rung" ? "fa-rung" : "fa-peer" }),
      svg("text", { x: LEFT + width + 4, y: y + 12, class: "fa-begin" }, row.tflops.toFixed(row.tflops < 100 ? 1 : 0))];
    const bar = row.chapter
      ? svg("a", { href: new URL(`../../${row.chapter}/`, import.meta.url).href, "aria-label": describe(row) }, parts)
      : svg("g", { tabindex: "0", role: "img", "aria-label": describe(row) }, parts);
    bar.addEventListener("pointerenter", say);
    bar.addEventListener("focus", say);
    return bar;
  }
}

export async function start(place) {
  new ChartWidget(place, await chart());
}
