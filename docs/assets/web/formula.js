// SPDX-License-Identifier: MIT
// Whole-number formulas of a few names, as in C: + - * / % ^ & | << >> and parentheses.

const LEVELS = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]];
const APPLY = {
  "|": (a, b) => a | b, "^": (a, b) => a ^ b, "&": (a, b) => a & b, "<<": (a, b) => a << b, ">>": (a, b) => a >> b,
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => Math.trunc(a / b), "%": (a, b) => a % b,
};

/** A function of {name: number}. Throws an Error that says what is wrong with the text. */
export function parse(text, names) {
  const tokens = text.match(/\d+|[A-Za-z]\w*|<<|>>|\S/g) ?? [];
  let at = 0;
  const primary = () => {
    const token = tokens[at++];
    if (token === undefined) throw new Error("the formula ends too early");
    if (/^\d+$/.test(token)) return () => Number(token);
    if (names.includes(token)) return (values) => values[token];
    if (token !== "(") throw new Error(`'${token}' is not a number, ( or one of ${names.join(", ")}`);
    const inside = level(0);
    if (tokens[at++] !== ")") throw new Error("a ) is missing");
    return inside;
  };
  const level = (height) => {
    if (height === LEVELS.length) return primary();
    let left = level(height + 1);
    while (LEVELS[height].includes(tokens[at])) {
      const apply = APPLY[tokens[at++]];
      const [a, b] = [left, level(height + 1)];
      left = (values) => apply(a(values), b(values));
    }
    return left;
  };
  const whole = level(0);
  if (at < tokens.length) throw new Error(`'${tokens[at]}' is not expected here`);
  return whole;
}
