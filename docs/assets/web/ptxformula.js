// SPDX-License-Identifier: MIT
// Formulas as in C, made into the body of a PTX function: whole numbers, or floats.

const LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<=", ">=", "<", ">"], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]];
const TOKEN = /\d+\.?\d*(?:e[-+]?\d+)?f?|[A-Za-z_]\w*|\|\||&&|==|!=|<=|>=|<<|>>|\S/g;
const WHOLE = {
  "+": "add.s32", "-": "sub.s32", "*": "mul.lo.s32", "/": "div.s32", "%": "rem.s32",
  "|": "or.b32", "^": "xor.b32", "&": "and.b32", "<<": "shl.b32", ">>": "shr.s32",
};
const FLOAT = { "+": "add.rn.f32", "-": "sub.rn.f32", "*": "mul.rn.f32", "/": "div.full.f32" };
const COMPARE = { "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge" };
const CALLS = { min: 2, max: 2, exp: 1 };

/** The tree of a formula: {number}, {name}, {call, of}, {operator, of}. Throws what is wrong with the text. */
export function parseFormula(text, names) {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const expect = (token) => {
    if (tokens[at++] !== token) throw new Error(`a ${token} is missing`);
  };
  const call = (name) => {
    const of = [];
    expect("(");
    do of.push(choice()); while (tokens[at] === "," && ++at);
    expect(")");
    if (of.length !== CALLS[name]) throw new Error(`${name} has ${CALLS[name]} arguments`);
    return { call: name, of };
  };
  const primary = () => {
    const token = tokens[at++];
    if (token === undefined) throw new Error("the formula ends too early");
    if (/^\d/.test(token)) return { number: Number(token.replace(/f$/, "")) };
    if (token === "-" || token === "!") return { operator: token, of: [primary()] };
    if (names.includes(token)) return { name: token };
    if (token in CALLS) return call(token);
    if (token !== "(") throw new Error(`'${token}' is not a number, ( or one of ${[...names, ...Object.keys(CALLS)].join(", ")}`);
    const inside = choice();
    expect(")");
    return inside;
  };
  const level = (height) => {
    if (height === LEVELS.length) return primary();
    let left = level(height + 1);
    while (LEVELS[height].includes(tokens[at])) left = { operator: tokens[at++], of: [left, level(height + 1)] };
    return left;
  };
  const choice = () => {
    const condition = level(0);
    if (tokens[at] !== "?") return condition;
    at += 1;
    const yes = choice();
    expect(":");
    return { operator: "?", of: [condition, yes, choice()] };
  };
  const whole = choice();
  if (at < tokens.length) throw new Error(`'${tokens[at]}' is not expected here`);
  return whole;
}

const TRUTH = { "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, "<=": (a, b) => a <= b,
  ">": (a, b) => a > b, ">=": (a, b) => a >= b, "&&": (a, b) => a && b, "||": (a, b) => a || b };
const NUMBER = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "%": (a, b) => a % b, "|": (a, b) => a | b,
  "^": (a, b) => a ^ b, "&": (a, b) => a & b, "<<": (a, b) => a << b, ">>": (a, b) => a >> b };

/** The value of a tree, with {name: number}. */
export function valueOf(tree, type, values) {
  if ("number" in tree) return tree.number;
  if ("name" in tree) return values[tree.name];
  const of = tree.of.map((each) => valueOf(each, type, values));
  if (tree.call) return Math[tree.call](...of);
  const { operator } = tree;
  if (operator === "?") return of[0] ? of[1] : of[2];
  if (operator === "!") return Number(!of[0]);
  if (operator === "-" && of.length === 1) return -of[0];
  if (operator === "/") return type === "float" ? of[0] / of[1] : Math.trunc(of[0] / of[1]);
  return operator in TRUTH ? Number(Boolean(TRUTH[operator](...of))) : NUMBER[operator](...of);
}

function floatBits(value) {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return `0f${view.getUint32(0).toString(16).padStart(8, "0")}`;
}

/** Instructions that compute a tree; registers are numbered as they come. */
class Writer {
  constructor(type, registers) {
    this.isFloat = type === "float";
    this.values = new Map(registers);
    this.next = registers.length;
    this.lines = [];
  }

  put(instruction, ...operands) {
    const result = `%${this.isFloat ? "f" : "r"}${this.next++}`;
    this.lines.push(`${instruction} ${[result, ...operands].join(", ")};`);
    return result;
  }

  /** A predicate as 0 or 1. */
  truth(comparison, a, b) {
    const predicate = `%p${this.next++}`;
    this.lines.push(`setp.${comparison}.${this.isFloat ? "f32" : "s32"} ${predicate}, ${a}, ${b};`);
    return this.isFloat ? this.put("selp.f32", floatBits(1), floatBits(0), predicate) : this.put("selp.b32", 1, 0, predicate);
  }

  value(tree) {
    if ("number" in tree) return this.constant(tree.number);
    if ("name" in tree) return this.values.get(tree.name);
    const of = tree.of.map((each) => this.value(each));
    return tree.call ? this.call(tree.call, of) : this.operator(tree.operator, of);
  }

  constant(number) {
    if (this.isFloat) return this.put("mov.f32", floatBits(number));
    if (!Number.isInteger(number)) throw new Error(`${number} is not a whole number`);
    return this.put("mov.b32", number);
  }

  get zero() {
    return this.constant(0);
  }

  call(name, of) {
    if (name !== "exp") return this.put(`${name}.${this.isFloat ? "f32" : "s32"}`, ...of);
    if (!this.isFloat) throw new Error("exp is of floats");
    return this.put("ex2.approx.ftz.f32", this.put("mul.rn.f32", of[0], floatBits(Math.LOG2E)));
  }

  operator(operator, of) {
    if (operator in COMPARE) return this.truth(COMPARE[operator], ...of);
    if (operator === "!") return this.truth("eq", of[0], this.zero);
    if (operator === "-" && of.length === 1) return this.put(this.isFloat ? "neg.f32" : "neg.s32", of[0]);
    if (operator === "?") return this.select(...of);
    if (operator === "&&") return this.select(of[0], this.truth("ne", of[1], this.zero), this.zero);
    if (operator === "||") return this.select(of[0], this.constant(1), this.truth("ne", of[1], this.zero));
    const instruction = (this.isFloat ? FLOAT : WHOLE)[operator];
    if (!instruction) throw new Error(`${operator} is of whole numbers`);
    return this.put(instruction, ...of);
  }

  select(condition, yes, no) {
    const predicate = `%p${this.next++}`;
    this.lines.push(`setp.ne.${this.isFloat ? "f32" : "s32"} ${predicate}, ${condition}, ${this.zero};`);
    return this.put(this.isFloat ? "selp.f32" : "selp.b32", yes, no, predicate);
  }
}

/** `text` with the declaration of an external function replaced by one that computes `formula`. */
export function define(text, { name, type, parameters }, formula) {
  const declaration = new RegExp(`\\.extern \\.func\\s*\\(([^)]*)\\)\\s*${name}\\s*\\(([^)]*)\\)\\s*;`);
  const found = text.match(declaration);
  if (!found) throw new Error(`the kernel does not call ${name}`);
  const places = found[2].split(",").map((each) => each.trim().split(/\s+/).at(-1));
  const letter = type === "float" ? "f" : "r";
  const registers = parameters.map((parameter, index) => [parameter, `%${letter}${index}`]);
  const writer = new Writer(type, registers);
  const result = writer.value(parseFormula(formula, parameters));
  const kind = type === "float" ? "f32" : "b32";
  const body = [
    `.reg .pred %p<${writer.next + 1}>;`, `.reg .${kind} %${letter}<${writer.next + 1}>;`,
    ...places.map((place, index) => `ld.param.${kind} %${letter}${index}, [${place}];`),
    ...writer.lines, `st.param.${kind} [${found[1].trim().split(/\s+/).at(-1)}], ${result};`, "ret;",
  ];
  return text.replace(declaration, () => `.func (${found[1]}) ${name}(${found[2]})\n{\n${body.join("\n")}\n}\n`);
}
