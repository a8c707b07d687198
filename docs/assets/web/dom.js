// SPDX-License-Identifier: MIT
// Small helpers of the widgets: elements, state in the address, a bar for what takes long.
import { machine, Stopped } from "./machine.js";

/** An element with attributes, listeners (`onclick`) and children (elements or texts). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.flat());
  return element;
}

/** Whole numbers with thin spaces between groups of three. */
export const number = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");

/** 1.5, 0.062, 8, with at most three digits. */
export const quotient = (a, b) => (b === 0 ? "–" : String(Number((a / b).toPrecision(3))));

/** A labelled select; options are values or [value, text]. */
export function select(label, options, value, onchange) {
  const list = h("select", { onchange: () => onchange(list.value) });
  for (const option of options) {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    list.append(h("option", { value: key, selected: String(key) === String(value) }, String(text)));
  }
  return h("label", {}, `${label} `, list);
}

const MASKS = {
  full: "none", causal: "causal", queries: "4 new queries", equal: "all keys each", lengths: "lengths that differ", pages: "lengths and pages",
};

/** What a rung may be asked for besides N and d; nothing where there is no choice. */
export function maskSelect(rung, mask, onchange) {
  if (rung.masks.length < 2) return null;
  const label = rung.family === "decode" ? "cache" : "mask";
  return select(label, rung.masks.map((each) => [each, MASKS[each]]), mask, onchange);
}

/** The name of N: a cache has keys and one new query. */
export const lengthName = (rung) => (rung.family === "decode" ? "keys" : "N");

export function checkbox(label, checked, onchange) {
  const box = h("input", { type: "checkbox", checked, onchange: () => onchange(box.checked) });
  return h("label", {}, box, ` ${label}`);
}

/** The part of the address that belongs to a widget: `?run=02,256`. */
export const state = {
  get(key) {
    return new URLSearchParams(location.search).get(key);
  },
  set(key, value) {
    const parameters = new URLSearchParams(location.search);
    if (value == null || value === "") parameters.delete(key);
    else parameters.set(key, value);
    const text = parameters.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
  },
};

/**
 * A Run button with its Stop, its bar and a line for what happens. `work(report)` gets a function
 * (done, of, text); what it throws is shown.
 */
export class Runner {
  constructor(label, work) {
    this.work = work;
    this.run = h("button", { type: "button", class: "fa-run", onclick: () => this.start() }, label);
    this.end = h("button", { type: "button", class: "fa-stop", disabled: true, onclick: () => this.stop() }, "Stop");
    this.bar = h("progress", { max: 1, value: 0, "aria-label": "progress", hidden: true });
    this.status = h("span", { role: "status", class: "fa-status" });
    this.element = h("div", { class: "fa-runner" }, this.run, this.end, this.bar, this.status);
  }

  async start() {
    if (this.running) return;
    this.running = true;
    this.run.disabled = true;
    this.end.disabled = false;
    const begun = performance.now();
    const show = setTimeout(() => (this.bar.hidden = false), 200);
    this.bar.removeAttribute("value");
    this.status.textContent = "running";
    try {
      const said = await this.work((done, of, text) => {
        this.bar.value = of > 0 ? done / of : 0;
        if (text) this.status.textContent = text;
      });
      const ms = Math.round(performance.now() - begun);
      this.status.textContent = said ?? `done in ${ms} ms`;
    } catch (error) {
      this.status.textContent = error instanceof Stopped ? "stopped" : `failed: ${error.message}`;
    } finally {
      clearTimeout(show);
      this.bar.hidden = true;
      this.running = false;
      this.run.disabled = false;
      this.end.disabled = true;
    }
  }

  stop() {
    machine.stop();
  }
}

/** Puts what a widget shows in place of its static part. */
export function take(place, ...children) {
  place.replaceChildren(...children.filter((child) => child != null));
  place.dataset.live = "yes";
}

/** The static part of a widget, to be shown until there is a result. */
export function still(place) {
  const part = h("div", { class: "fa-still" });
  part.append(...place.childNodes);
  return part;
}

const STAYS_MS = 400; // a reader who scrolls past sees less of a widget

/** Calls `act` once a reader looks at the place. */
export function whenSeen(place, act) {
  let later;
  const seen = new IntersectionObserver((entries) => {
    clearTimeout(later);
    if (!entries.at(-1).isIntersecting) return;
    later = setTimeout(() => {
      seen.disconnect();
      act();
    }, STAYS_MS);
  }, { rootMargin: "-15% 0px" });
  seen.observe(place);
}
