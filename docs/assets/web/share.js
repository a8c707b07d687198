// SPDX-License-Identifier: MIT
// A text in the address: what differs from a known one, packed.

async function pipe(bytes, stream) {
  return new Uint8Array(await new Response(new Response(bytes).body.pipeThrough(stream)).arrayBuffer());
}

/** An object as letters that an address may hold. */
export async function pack(value) {
  const bytes = await pipe(new TextEncoder().encode(JSON.stringify(value)), new CompressionStream("deflate"));
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function unpack(text) {
  const raw = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await pipe(bytes, new DecompressionStream("deflate"))));
}

/** The lines in which `text` differs from `base`: [first, how many of the base, lines instead]. */
export function difference(base, text) {
  const a = base.split("\n");
  const b = text.split("\n");
  let first = 0;
  while (first < a.length && first < b.length && a[first] === b[first]) ++first;
  let same = 0;
  while (same < a.length - first && same < b.length - first && a.at(-1 - same) === b.at(-1 - same)) ++same;
  return [first, a.length - same - first, b.slice(first, b.length - same)];
}

export function apply(base, [first, count, lines]) {
  const all = base.split("\n");
  all.splice(first, count, ...lines);
  return all.join("\n");
}
