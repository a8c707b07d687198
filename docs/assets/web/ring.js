// SPDX-License-Identifier: MIT
// The ring: a producer, a copy engine and a consumer pass tiles through slots with two mbarriers each.
import { checkbox, h, select, state, svg, take } from "./dom.js";

const TILES = 8;
const SLOT = 150; // width of a slot in the picture

/** wait(parity) passes once the phase of that parity is complete: PTX ISA, mbarrier.test_wait.parity. */
class Barrier {
  phase = 0;
  passes(parity) {
    return this.phase % 2 !== parity;
  }
}

/** The ring as a state that buttons change; `wrong` makes the consumer expect the other parity. */
export class Ring {
  constructor(slots, wrong = false) {
    this.slots = Array.from({ length: slots }, () => ({ full: new Barrier(), empty: new Barrier(), holds: null, flies: null }));
    this.wrong = wrong;
    this.sent = 0;
    this.read = 0;
    this.errors = [];
  }

  at(tile) {
    return { slot: this.slots[tile % this.slots.length], round: Math.floor(tile / this.slots.length) };
  }

  /** The producer waits until the slot is empty, announces the bytes and starts the copy. */
  produce() {
    if (this.sent === TILES) return "All tiles are on their way.";
    const { slot, round } = this.at(this.sent);
    const parity = (round + 1) % 2; // the first round passes: no phase was complete before phase 0
    if (!slot.empty.passes(parity)) {
      return `The producer waits: tile ${this.sent} goes to slot ${this.sent % this.slots.length}, whose empty barrier has not completed a phase of parity ${parity}.`;
    }
    slot.flies = this.sent;
    this.sent += 1;
    return `The producer has started the copy of tile ${this.sent - 1}.`;
  }

  /** The oldest copy lands: its bytes complete the phase of the slot's full barrier. */
  land() {
    const slot = this.slots.filter(({ flies }) => flies !== null).sort((a, b) => a.flies - b.flies)[0];
    if (!slot) return "No copy is in flight.";
    slot.holds = slot.flies;
    slot.flies = null;
    slot.full.phase += 1;
    return `Tile ${slot.holds} has landed; the full barrier of its slot is in phase ${slot.full.phase}.`;
  }

  /** The consumer waits until the slot is full, computes and arrives at its empty barrier. */
  consume() {
    if (this.read === TILES) return "All tiles are computed.";
    const { slot, round } = this.at(this.read);
    const parity = (round + (this.wrong ? 1 : 0)) % 2;
    if (!slot.full.passes(parity)) {
      return `The consumer waits: the full barrier of slot ${this.read % this.slots.length} has not completed a phase of parity ${parity}.`;
    }
    const wanted = this.read;
    this.read += 1;
    slot.empty.phase += 1;
    if (slot.holds === wanted) return `The consumer has computed with tile ${wanted} and released the slot.`;
    const found = slot.holds === null ? "memory that nobody has written" : `tile ${slot.holds}`;
    this.errors.push(wanted);
    return `Wrong: the consumer wanted tile ${wanted} and read ${found}; its wait passed on the phase before.`;
  }
}

class RingWidget {
  constructor(place) {
    this.place = place;
    this.count = Number(state.get("slots")) || 2;
    this.wrong = state.get("parity") === "wrong";
    this.picture = h("div", { class: "fa-wide fa-whole", tabindex: "0", role: "region", "aria-label": "slots" });
    this.says = h("p", { role: "status" });
    const button = (text, action) => h("button", { type: "button", "data-action": action, onclick: () => this.do(action) }, text);
    take(place, h("div", { class: "fa-form" },
      select("slots", [2, 3, 4], this.count, (value) => this.reset({ count: Number(value) })),
      checkbox("the consumer waits for the wrong parity", this.wrong, (wrong) => this.reset({ wrong }))),
      h("div", { class: "fa-runner" }, button("Producer: start the next copy", "produce"), button("A copy lands", "land"),
        button("Consumer: compute the next tile", "consume"),
        h("button", { type: "button", onclick: () => this.reset({}) }, "Begin again")),
      this.picture,
      h("p", { class: "fa-hover" }, "Circles: the phase in which a barrier is, filled where its parity is 1. A coloured button goes on, any other waits."),
      this.says);
    this.reset({});
  }

  reset(change) {
    Object.assign(this, change);
    state.set("slots", this.count === 2 ? null : this.count);
    state.set("parity", this.wrong ? "wrong" : null);
    this.ring = new Ring(this.count, this.wrong);
    this.show("Nothing has happened yet. Both barriers of each slot are in phase 0.");
  }

  do(action) {
    this.show(this.ring[action]());
  }

  show(text) {
    this.picture.replaceChildren(this.drawing());
    this.says.textContent = text;
    this.says.className = text.startsWith("Wrong") ? "fa-bad" : "";
    for (const button of this.place.querySelectorAll("[data-action]")) button.classList.toggle("fa-run", this.goes(button.dataset.action));
  }

  /** Whether an action would go on, as far as the barriers tell. */
  goes(action) {
    const copy = new Ring(this.count, this.wrong);
    const { sent, read } = this.ring;
    Object.assign(copy, { sent, read, slots: this.ring.slots.map(({ full, empty, ...slot }) =>
      ({ ...slot, full: Object.assign(new Barrier(), full), empty: Object.assign(new Barrier(), empty) })) });
    copy[action]();
    return copy.sent !== sent || copy.read !== read || copy.slots.some(({ holds }, i) => holds !== this.ring.slots[i].holds);
  }

  /** The slots in a row, between the arrows of the producer above and the consumer below. */
  drawing() {
    const slots = this.ring.slots.map((slot, index) => this.slot(slot, index));
    const width = this.count * SLOT;
    return svg("svg", { viewBox: `0 0 ${width} 196`, class: "fa-ring", role: "img", "aria-label": `ring of ${this.count} slots` },
      this.arrow("producer", this.ring.sent, 14, 34), slots, this.arrow("consumer", this.ring.read, 190, 164));
  }

  /** Who works at which slot next. */
  arrow(who, tile, y, tip) {
    if (tile === TILES) return svg("text", { x: 8, y, class: "fa-begin" }, `${who}: all ${TILES} tiles done`);
    const x = (tile % this.count) * SLOT + SLOT / 2;
    const back = tip > y ? tip - 12 : tip + 12;
    return svg("g", { class: `fa-${who}` }, svg("text", { x, y }, `${who}: tile ${tile}`),
      svg("path", { d: `M${x - 7} ${back}L${x + 7} ${back}L${x} ${tip}Z` }));
  }

  slot({ full, empty, holds, flies }, index) {
    const x = index * SLOT + 6;
    const width = SLOT - 12;
    const state = flies !== null ? "loading" : full.phase > empty.phase ? "full" : "free";
    const inside = flies !== null ? `tile ${flies} in flight` : holds === null ? "unwritten" : state === "free" ? `tile ${holds}, read` : `tile ${holds}`;
    const barrier = (name, { phase }, left) => [
      svg("circle", { cx: x + left + 10, cy: 138, r: 7, class: phase % 2 ? "fa-odd" : "fa-even" }),
      svg("text", { x: x + left + 21, y: 142, class: "fa-begin" }, `${name} ${phase}`)];
    return svg("g", { "data-slot": index, "data-slot-state": state },
      svg("rect", { x, y: 40, width, height: 76, rx: 4, class: `fa-slot fa-slot-${state}` }),
      svg("text", { x: x + width / 2, y: 60, class: "fa-axis" }, `slot ${index}, ${state}`),
      svg("text", { x: x + width / 2, y: 88 }, inside),
      ...barrier("full", full, 0), ...barrier("empty", empty, width / 2));
  }
}

export async function start(place) {
  new RingWidget(place);
}
