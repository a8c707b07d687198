// SPDX-License-Identifier: MIT
// Playground: any rung's PTX to edit, or a text of the reader's own with typed arguments.
import { catalogue, machine, planOf, ptxOf, runRung } from "./machine.js";
import { h, lengthName, maskSelect, Runner, select, take } from "./dom.js";
import { countsTable } from "./counts.js";
import { paint } from "./paint.js";
import { apply, difference, pack, unpack } from "./share.js";

const OWN = "own";
const MAX_STEPS = 1 << 24; // a warp that goes on longer is taken for an endless loop
const SCALARS = ["i32", "u32", "i64", "u64", "f32", "f64"];
const ELEMENTS = ["f32", "f16", "f64", "i32", "u32"];
const FILLS = [["normal", "normal(0, 1)"], ["index", "0, 1, 2, ..."], ["zero", "zeros"], ["poison", "NaN"]];
const EXAMPLE = `// Pasted PTX runs here too: this kernel doubles every element.
.version 8.0
.target sm_80
.address_size 64

.visible .entry twice(.param .u64 in, .param .u64 out)
{
  .reg .f32 %f<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.s32 %rd3, %r4, 4;
  cvta.to.global.u64 %rd4, %rd1;
  add.s64 %rd5, %rd4, %rd3;
  cvta.to.global.u64 %rd6, %rd2;
  add.s64 %rd7, %rd6, %rd3;
  ld.global.f32 %f1, [%rd5];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd7], %f2;
  ret;
}
`;

const message = (text, bad = true) => h("pre", { class: `fa-message ${bad ? "fa-bad" : ""}` }, text);

function defaultArgument(parameter, index) {
  if (parameter.size === 8) {
    return { buffer: `buffer ${index}`, type: "f32", count: 256, fill: index === 0 ? "normal" : "zero" };
  }
  return { [parameter.type.startsWith("f") ? "f32" : "i32"]: 1 };
}

/** One argument of a foreign kernel: what it is, and its value. */
function argumentRow(parameter, argument, onchange) {
  const kind = argument.buffer ? "buffer" : Object.keys(argument)[0];
  const input = (name, value, set) => {
    const field = h("input", { type: "text", value, size: 8, "aria-label": `${parameter.name} ${name}`,
      onchange: () => { set(field.value); onchange(argument); } });
    return field;
  };
  const change = (next) => onchange(kindOf(next, parameter, argument));
  const parts = argument.buffer
    ? [select("of", ELEMENTS, argument.type, (type) => onchange({ ...argument, type })),
      h("label", {}, "elements ", input("elements", argument.count, (text) => { argument.count = Number(text); })),
      select("filled with", FILLS, argument.fill, (fill) => onchange({ ...argument, fill }))]
    : [input("value", argument[kind], (text) => { argument[kind] = Number(text); })];
  return h("li", {}, h("code", {}, `.${parameter.type} ${parameter.name}`), " ",
    select("as", ["buffer", ...SCALARS], kind, change), " ", ...parts);
}

function kindOf(next, parameter, before) {
  if (next !== "buffer") return { [next]: before.buffer ? 1 : Object.values(before)[0] };
  return before.buffer ? before : { buffer: parameter.name, type: "f32", count: 256, fill: "zero" };
}

class Playground {
  constructor(place, all) {
    this.place = place;
    this.all = all;
    this.choice = { base: OWN, n: 256, d: 128, mask: "full" };
    this.launch = { grid: [1, 1, 1], block: [256, 1, 1], cluster: [1, 1, 1], shared: 0, arguments: [] };
    this.gutter = h("pre", { class: "fa-gutter", "aria-hidden": "true" });
    this.text = h("textarea", { class: "fa-editor", spellcheck: "false", wrap: "off", rows: 24, "aria-label": "PTX",
      oninput: () => this.changed(), onscroll: () => this.scrolled(),
      ondragover: (event) => event.preventDefault(), ondrop: (event) => this.drop(event) });
    this.under = h("pre", { class: "fa-under", "aria-hidden": "true" });
    new ResizeObserver(() => this.scrolled()).observe(this.text);
    this.form = h("div");
    this.runner = new Runner("Run", (report) => this.run(report));
    this.messages = h("div");
    this.result = h("div", { class: "fa-wide", tabindex: "0", role: "region", "aria-label": "result" });
    const share = h("button", { type: "button", onclick: () => this.share() }, "Put this into the address");
    take(place, this.form, h("div", { class: "fa-edit" }, this.gutter, h("div", { class: "fa-paper" }, this.under, this.text)), this.runner.element, share, this.messages, this.result);
  }

  async start() {
    const saved = location.hash.match(/^#play=(.+)$/)?.[1];
    if (saved) {
      const { choice, launch, hunk, text } = await unpack(saved);
      Object.assign(this.choice, choice);
      Object.assign(this.launch, launch);
      this.text.value = text ?? apply(await this.baseText(), hunk);
    } else {
      this.text.value = await this.baseText();
    }
    this.numberLines();
    await this.showForm();
    this.place.dataset.state = "ready";
  }

  baseText() {
    return this.choice.base === OWN ? EXAMPLE : ptxOf(this.choice.base, this.choice.d);
  }

  scrolled() {
    this.gutter.scrollTop = this.text.scrollTop;
    paint(this.text, this.under);
  }

  numberLines() {
    this.scrolled();
    const lines = this.text.value.split("\n").length;
    if (lines === this.lines) return;
    this.lines = lines;
    this.gutter.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n");
  }

  /** A pasted text has other entries: their launch is shown once the reader stops typing. */
  changed() {
    this.numberLines();
    clearTimeout(this.later);
    if (this.choice.base !== OWN) return;
    this.later = setTimeout(() => this.runner.running || this.entries(true).catch(() => {}), 300);
  }

  async drop(event) {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    await this.choose({ base: OWN });
    this.text.value = await file.text();
    this.numberLines();
    await this.entries();
  }

  async choose(change) {
    Object.assign(this.choice, change);
    const rung = this.all.rungs.find(({ name }) => name === this.choice.base);
    if (rung && !rung.head_dims.includes(this.choice.d)) this.choice.d = rung.head_dims.at(-1);
    if (rung && !rung.seqs.includes(this.choice.n)) this.choice.n = rung.seqs[0];
    if (rung && !rung.masks.includes(this.choice.mask)) this.choice.mask = rung.masks[0];
    if (change.base || change.d) this.text.value = await this.baseText();
    this.numberLines();
    await this.showForm();
  }

  async showForm() {
    const { base, n, d, mask } = this.choice;
    const rung = this.all.rungs.find(({ name }) => name === base);
    const bases = [[OWN, "a text of your own: paste or drop it"], ...this.all.rungs.map(({ name }) => name)];
    this.form.replaceChildren(h("div", { class: "fa-form" },
      select("Begin with", bases, base, (value) => this.choose({ base: value })),
      ...(rung ? [
        select(lengthName(rung), rung.seqs, n, (value) => this.choose({ n: Number(value) })),
        select("d", rung.head_dims, d, (value) => this.choose({ d: Number(value) })),
        maskSelect(rung, mask, (value) => this.choose({ mask: value })),
      ].filter(Boolean) : [])));
    if (!rung) await this.entries();
  }

  /** Reads the text and shows the launch of the chosen entry; quietly, while it is typed. */
  async entries(quietly = false) {
    const loaded = await machine.load("kernel.ptx", this.text.value);
    if (quietly && (loaded.error || this.choice.base !== OWN)) return null;
    this.form.querySelector(".fa-launch")?.remove();
    if (loaded.error) {
      this.fail(loaded);
      return null;
    }
    const entry = loaded.entries.find(({ name }) => name === this.launch.entry) ?? loaded.entries[0];
    if (!entry) return null;
    if (this.launch.entry !== entry.name || this.launch.arguments.length !== entry.parameters.length) {
      this.launch.entry = entry.name;
      this.launch.arguments = entry.parameters.map(defaultArgument);
    }
    this.form.append(this.launchForm(loaded.entries, entry));
    return loaded;
  }

  launchForm(entries, entry) {
    const three = (name) => {
      const field = h("input", { type: "text", size: 10, value: this.launch[name].join(","),
        onchange: () => { this.launch[name] = [...field.value.split(",").map(Number), 1, 1].slice(0, 3); } });
      return h("label", {}, `${name} `, field);
    };
    const shared = h("input", { type: "text", size: 8, value: this.launch.shared,
      onchange: () => { this.launch.shared = Number(shared.value); } });
    const rows = entry.parameters.map((parameter, index) =>
      argumentRow(parameter, this.launch.arguments[index], (argument) => {
        this.launch.arguments[index] = argument;
        this.entries();
      }));
    return h("div", { class: "fa-launch" }, h("div", { class: "fa-form" },
      select("entry", entries.map(({ name }) => name), entry.name, (name) => { this.launch.entry = name; this.entries(); }),
      three("grid"), three("block"), h("label", {}, "dynamic shared bytes ", shared)),
      h("ul", { class: "fa-arguments" }, rows));
  }

  async run(report) {
    this.place.dataset.state = "running";
    this.messages.replaceChildren();
    this.result.replaceChildren();
    const columns = this.choice.base === OWN ? await this.runOwn(report) : await this.runEdited(report);
    if (columns) this.result.replaceChildren(countsTable(columns));
    this.place.dataset.state = "done";
    return columns ? undefined : "stopped at an error";
  }

  async runOwn(report) {
    if (!(await this.entries())) return null;
    const answer = await machine.call({ do: "launch", max_steps: MAX_STEPS, ...this.launch }, report);
    if (answer.error) return this.fail(answer);
    if (answer.fault) this.fail({ error: answer.fault.text });
    this.showFindings(answer.findings);
    for (const { name, values, count } of answer.buffers) {
      const more = count > values.length ? ", ..." : "";
      this.messages.append(message(`${name} afterwards: ${values.map((v) => typeof v === "number" ? Number(v.toPrecision(6)) : v).join(", ")}${more}`, false));
    }
    return answer.fault ? null : [{ name: this.launch.entry, counts: answer.counts }];
  }

  async runEdited(report) {
    const { base } = this.choice;
    const plan = await planOf(base, this.choice);
    if (plan.refused) return this.fail({ error: plan.refused });
    const answer = await runRung(base, plan, { text: this.text.value, max_steps: MAX_STEPS }, report);
    if (answer.error) return this.fail(answer);
    const { verdict } = answer;
    if (verdict.ok) this.messages.append(h("p", { class: "fa-good" }, "correct"));
    else if (verdict.details) this.showFindings(verdict.details.split(/\n(?=\S)/));
    else this.fail({ error: verdict.reason });
    if (!answer.counts) return null;
    const columns = [{ name: "this text", counts: answer.counts }];
    if (this.text.value === (await this.baseText())) return columns;
    const whole = await runRung(base, plan, {}, report);
    return [...columns, { name: base, counts: whole.counts }];
  }

  /** Findings under their kind, which is their first word, each place once. */
  showFindings(findings) {
    const kinds = Map.groupBy(new Set(findings), (text) => text.match(/^\w+/)?.[0] ?? "finding");
    for (const [kind, all] of kinds) {
      const places = [...Map.groupBy(all, (text) => this.lineOf(text) ?? text).values()];
      this.messages.append(h("section", { class: "fa-group" }, h("h4", {}, all.length > 1 ? `${kind}: ${all.length} findings` : kind),
        places.map(([first, ...others]) => h("div", {}, message(first), this.button(this.lineOf(first)),
          others.length === 0 ? null : h("details", {}, h("summary", {}, `${others.length} more here`), others.map((text) => message(text)))))));
    }
  }

  /** The line of the text that a message names. */
  lineOf(text) {
    return Number(text.match(/\.ptx:(\d+)/)?.[1]) || null;
  }

  button(line) {
    return line ? h("button", { type: "button", "data-line": line, onclick: () => this.goTo(line) }, `Go to line ${line}`) : null;
  }

  /** Shows an error, with a way to its line. */
  fail(answer) {
    const button = this.button(answer.diagnostics?.[0]?.line ?? this.lineOf(answer.error));
    this.messages.append(h("section", { class: "fa-group" }, message(answer.error), ...(button ? [button] : [])));
    return null;
  }

  goTo(line) {
    const lines = this.text.value.split("\n");
    const begin = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    this.text.focus();
    this.text.setSelectionRange(begin, begin + lines[line - 1].length);
    this.text.scrollTop = (this.text.scrollHeight / lines.length) * Math.max(0, line - 8);
  }

  async share() {
    const { base } = this.choice;
    const text = this.text.value;
    const content = base === OWN ? { text, launch: this.launch } : { hunk: difference(await this.baseText(), text) };
    location.hash = `play=${await pack({ choice: this.choice, ...content })}`;
  }
}

export async function start(place) {
  await new Playground(place, await catalogue()).start();
}
