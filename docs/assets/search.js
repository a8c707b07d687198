// SPDX-License-Identifier: MIT
// The theme requests the index of the search beside every page, half a megabyte that few readers
// need. Here the request waits until the search is opened.
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
