// SPDX-License-Identifier: MIT
// The machine as the widgets see it, and the files that the build exported for it.

/** Thrown into what was waiting when the reader pressed Stop. */
export class Stopped extends Error {}

/** What a reader can do where a file is not loaded. */
const lost = (what) => `${what} could not be loaded; check the connection, then press the button again`;

const WORKER = new URL("./worker.js", import.meta.url);
const DATA = new URL("./data/", import.meta.url);

class Machine {
  #worker = null;
  #next = 0;
  #waiting = new Map();
  #texts = new Map(); // entry: key of the text that it was last loaded from

  /** Answers an object; `onProgress(done, of)` is called as blocks end. */
  call(request, onProgress = () => {}) {
    const number = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, onProgress });
      this.#running().postMessage({ request: number, text: JSON.stringify(request) });
    });
  }

  /** Reads a text unless its entries are those that are loaded; answers with them or an error. */
  async load(name, text) {
    const known = this.#texts.get(name);
    if (known?.text === text && !known.stale) return known.answer;
    const answer = await this.call({ do: "load", name, text });
    if (answer.error) return answer;
    const entries = answer.entries.map((each) => each.name);
    for (const other of this.#texts.values()) {
      if (other.answer.entries.some((each) => entries.includes(each.name))) other.stale = true;
    }
    this.#texts.set(name, { text, answer, stale: false });
    return answer;
  }

  /** Ends whatever runs, at once. The next call starts a fresh instance. */
  stop() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#texts.clear();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const each of waiting) each.reject(new Stopped("stopped"));
  }

  /** Starts the instance before it is needed. */
  warm() {
    this.#running();
  }

  #running() {
    if (this.#worker) return this.#worker;
    this.#worker = new Worker(WORKER, { type: "module" });
    this.#worker.addEventListener("message", ({ data }) => {
      const waiting = this.#waiting.get(data.request);
      if (!waiting) return;
      if (data.progress) {
        waiting.onProgress(data.progress.done, data.progress.of);
        return;
      }
      this.#waiting.delete(data.request);
      if (data.lost) {
        waiting.reject(new Error(lost("the machine")));
        this.stop();
      } else {
        waiting.resolve(data.answer);
      }
    });
    this.#worker.addEventListener("error", (event) => {
      const failure = new Error(event.message || lost("the machine"));
      for (const each of this.#waiting.values()) each.reject(failure);
      this.#waiting.clear();
      this.stop(); // the next call tries again
    });
    return this.#worker;
  }
}

/** The instance that all widgets of a page share. */
export const machine = new Machine();

const fetched = new Map();

function once(path, read) {
  if (!fetched.has(path)) {
    const wanted = fetch(new URL(path, DATA)).catch(() => null).then((response) => {
      if (!response?.ok) throw new Error(lost(response ? `${path} (status ${response.status})` : path));
      return read(response);
    });
    wanted.catch(() => fetched.delete(path));
    fetched.set(path, wanted);
  }
  return fetched.get(path);
}

async function unpacked(response) {
  const bytes = await response.arrayBuffer();
  // Some hosts unpack on the way.
  const [first, second] = new Uint8Array(bytes, 0, 2);
  const packed = first === 0x1f && second === 0x8b;
  const body = new Response(bytes).body;
  return new Response(packed ? body.pipeThrough(new DecompressionStream("gzip")) : body).text();
}

/**
 * {rungs: [{id, name, parent, family, head_dims, seqs, masks}]}. `masks` are what a rung may be
 * asked for besides N and d: full, causal; with a cache queries, equal, lengths, pages.
 */
export const catalogue = () => once("rungs.json", (response) => response.json());

/** Measured rows by card. */
export const chart = () => once("chart.json", (response) => response.json());

/** What scripts/web.py wrote of a rung: source, plans, expected, break, redundant. */
export const rungData = (name) => once(`rungs/${name}.json`, (response) => response.json());

/** The PTX of a rung's kernels for a head_dim. */
export const ptxOf = (name, dim) => once(`ptx/${name}.d${dim}.ptx.gz`, unpacked);

/** An exercise of scripts/web_exercises.py: formulas, trials, rules; and its PTX, which lacks the formulas. */
export const exerciseData = (number) => once(`exercises/ex${number}.json`, (response) => response.json());
export const exercisePtx = (number) => once(`exercises/ex${number}.ptx.gz`, unpacked);

export const ptxName = (name) => `${name}.ptx`;

/** Rungs for new queries against a cache have their own problems. */
export const isDecode = (rung) => rung.family === "decode";

/** The plan of a rung for a choice {n, d, mask}, which may have `refused`. */
export async function planOf(name, { n, d, mask }) {
  const { plans } = await rungData(name);
  const plan = plans.find(({ choice }) => choice.n === n && choice.d === d && choice.mask === mask);
  return plan ?? { refused: `${name} was not planned for N=${n} d=${d} ${mask}` };
}

/** A rung through the gate, from the given PTX or its own. */
export async function runRung(name, plan, options = {}, onProgress) {
  const text = options.text ?? (await ptxOf(name, plan.problem.head_dim));
  const loaded = await machine.load(ptxName(name), text);
  if (loaded.error) return loaded;
  return machine.call(
    { do: "run", source: `${name}.cu`, problem: plan.problem, plan, ...options, text: undefined },
    onProgress,
  );
}
