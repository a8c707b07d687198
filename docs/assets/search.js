// SPDX-License-Identifier: MIT
// The theme requests the index of the search and its worker beside every page, half a megabyte that few
// readers need. Here the request waits until the search is opened, and the worker for its first message.
const INDEX = "search/search_index.json";
const opened = document.getElementById("__search"); // the theme's switch, also for the keyboard
const { open, send } = XMLHttpRequest.prototype;

XMLHttpRequest.prototype.open = function (method, address, ...rest) {
  if (new URL(address, document.baseURI).pathname.endsWith(INDEX)) {
    this.send = function (body) {
      if (opened.checked) send.call(this, body);
      else opened.addEventListener("change", () => send.call(this, body), { once: true });
    };
  }
  return open.call(this, method, address, ...rest);
};

const Started = Worker;
class Late extends EventTarget {
  constructor(address) {
    super();
    this.address = address;
  }

  postMessage(message) {
    if (!this.worker) {
      this.worker = new Started(this.address);
      this.worker.onmessage = ({ data }) => this.dispatchEvent(new MessageEvent("message", { data }));
    }
    this.worker.postMessage(message);
  }
}
window.Worker = function (address, options) {
  return /workers\/search\./.test(address) ? new Late(address) : new Started(address, options);
};

// The search compares the beginnings of words. What a reader may call something else, or may have
// mistyped, is searched in the words of the book.
const CALLED = [
  [/\b(gqa|mqa|(grouped|multi)[- ]query( attention)?)\b/gi, "group"],
  [/\b(fp8|float8|8[- ]bit)\b/gi, "e4m3"],
  [/\b(paged|page[- ]tables?|vllm)\b/gi, "pages"],
  [/\b(split[- ]?k|flash[- ]?decod\w*)(?!\w)/gi, "split"],
  [/\b(stream[- ]?k|lean[- ]?attention)\b/gi, "even stream"],
  [/\b(bf16|brain[- ]?float\w*)(?!\w)/gi, "bfloat16"],
  [/\b(swa|(sliding|local)[- ](window|attention))\b/gi, "window"],
  [/\b(varlen|variable[- ]length)\b/gi, "ragged"],
  [/\b(warp[- ]speciali[sz]\w*)/gi, "specialized"],
  [/\b(double[- ]buffer\w*)/gi, "stages"],
  [/\b(cta|threadblock)\b/gi, "block"],
  [/\b(smem|lds)\b/gi, "shared"],
  [/\b(hbm|dram|gmem)\b/gi, "device"],
  [/\b(flops?)\b/gi, "TFLOPS"],
];
const SHORTEST = 4; // of words that are corrected
const asWords = (text) => text.replace(/<[^>]*>/g, " ").toLowerCase().match(/[a-z_]\w+/g) ?? [];
let counts = new Map(); // word of the index -> how often it is there

// Whether `other` begins with `word`, or would but for one letter too many, one that is missing, one
// that is wrong, or two that have changed places.
function isNear(word, other) {
  let same = 0;
  while (same < word.length && word[same] === other[same]) same += 1;
  const [first, second = "", ...rest] = word.slice(same);
  const after = second + rest.join("");
  return (
    first === undefined ||
    other.startsWith(after, same) ||
    other.startsWith(first + after, same + 1) ||
    other.startsWith(after, same + 1) ||
    other.startsWith(second + first + rest.join(""), same)
  );
}

function corrected(word) {
  const known = [...counts.keys()].filter((other) => isNear(word.toLowerCase(), other));
  if (known.some((other) => other.startsWith(word.toLowerCase()))) return word;
  return known.sort((a, b) => counts.get(b) - counts.get(a))[0] ?? word;
}

function inTheWordsOfTheBook(query) {
  const renamed = CALLED.reduce((text, [others, own]) => text.replace(others, own), query);
  return renamed.replace(new RegExp(`(?<![\\w.])\\w{${SHORTEST},}(?![\\w.])`, "g"), corrected);
}

const note = document.createElement("p");
note.className = "searched";
note.setAttribute("role", "status");
document.querySelector(".md-search-result").before(note);

const { postMessage } = Started.prototype;
Started.prototype.postMessage = function (message, ...rest) {
  if (message.type === 0) {
    counts = new Map();
    for (const { title, text } of message.data.docs) {
      for (const word of asWords(`${title} ${text}`)) counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  } else if (message.type === 2) {
    const data = inTheWordsOfTheBook(message.data);
    note.textContent = data === message.data ? "" : `Searched for: ${data}`;
    return postMessage.call(this, { ...message, data }, ...rest);
  }
  return postMessage.call(this, message, ...rest);
};
