// SPDX-License-Identifier: MIT
// What this browser keeps of a reader's answers; a browser that keeps nothing throws.
export const kept = {
  get(name) {
    try { return localStorage.getItem(name) ?? ""; } catch { return ""; }
  },
  set(name, value) {
    try { localStorage.setItem(name, value); } catch { /* It lasts as long as the page. */ }
  },
};
