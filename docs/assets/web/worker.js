// SPDX-License-Identifier: MIT
// The one instance of the machine. It runs to the end of a request; the page stops it by ending this
// worker.

const BETWEEN_REPORTS_MS = 50;

let request = 0;
let reported = 0;

const module = import("./data/machine.js").then(({ default: create }) => create({
  onBlock(done, of) {
    const now = performance.now();
    if (now - reported < BETWEEN_REPORTS_MS) return;
    reported = now;
    postMessage({ request, progress: { done, of } });
  },
}));
module.catch(() => null); // what waits for it says so

function call(machine, text) {
  const bytes = machine.lengthBytesUTF8(text) + 1;
  const input = machine._malloc(bytes);
  machine.stringToUTF8(text, input, bytes);
  const output = machine._fa_call(input);
  const answer = machine.UTF8ToString(output);
  machine._free(input);
  machine._free(output);
  return answer;
}

addEventListener("message", async ({ data }) => {
  const machine = await module.catch(() => null);
  if (!machine) return postMessage({ request: data.request, lost: true });
  try {
    request = data.request;
    reported = performance.now();
    postMessage({ request: data.request, answer: JSON.parse(call(machine, data.text)) });
  } catch (error) {
    postMessage({ request: data.request, answer: { error: String(error) } });
  }
  return undefined;
});
