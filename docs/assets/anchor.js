// SPDX-License-Identifier: MIT
// What an address names stays where the browser has put it, while widgets and pictures above it get
// their sizes, until the reader moves the page.
const HOLDS_MS = 10_000;
let held = null;
let since = 0;

function hold() {
  held = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  since = performance.now();
}

const release = () => (held = null);
for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(kind, release, { passive: true });
addEventListener("hashchange", hold);
new ResizeObserver(() => {
  if (performance.now() - since < HOLDS_MS) held?.scrollIntoView();
}).observe(document.querySelector("article"));
hold();
