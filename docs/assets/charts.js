// SPDX-License-Identifier: MIT
// Makes the charts of a page a part of it when they come near the window: their colours follow the page's
// switch, each bar and line is a link to its chapter, and says what it is beside the pointer. Without
// this they are pictures.
const narrow = matchMedia("(max-width: 700px)");

class Chart {
  constructor(place) {
    this.place = place;
    this.image = place.querySelector("img");
    this.says = document.createElement("span");
    this.says.className = "chart-says";
    this.says.hidden = true;
    place.append(this.says);
    for (const kind of ["pointermove", "focusin"]) place.addEventListener(kind, (event) => this.say(event));
    for (const kind of ["pointerleave", "focusout"]) place.addEventListener(kind, () => (this.says.hidden = true));
    narrow.addEventListener("change", () => this.show());
    this.show();
  }

  async show() {
    const source = narrow.matches && this.place.querySelector("source");
    const address = new URL(source ? source.srcset : this.image.src, location.href);
    const answer = await fetch(address);
    if (!answer.ok) return;
    const svg = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", this.image.alt);
    const style = svg.querySelector("style");
    style.textContent = style.textContent.replace("text{", ".chart text{")
      .replace("@media(prefers-color-scheme:dark){", '[data-md-color-scheme="slate"] .chart{');
    for (const link of svg.querySelectorAll("a")) {
      const title = link.querySelector("title");
      link.setAttribute("aria-label", title.textContent);
      link.setAttribute("href", new URL(link.getAttribute("href").replace(/\.md$/, "/"), address).href);
      title.remove();
    }
    this.place.querySelector("svg")?.remove();
    this.place.prepend(svg);
  }

  say(event) {
    const link = event.target.closest?.("a");
    this.says.hidden = !link;
    if (!link) return;
    this.says.textContent = link.getAttribute("aria-label");
    const frame = this.place.getBoundingClientRect(), mark = link.getBoundingClientRect();
    const x = (event.clientX ?? mark.left) - frame.left, y = (event.clientY ?? mark.bottom) - frame.top;
    this.says.style.left = `${Math.max(0, Math.min(x + 12, frame.width - this.says.offsetWidth))}px`;
    this.says.style.top = `${y + 16}px`;
  }
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      new Chart(target);
    }
  },
  { rootMargin: "600px" },
);
for (const place of document.querySelectorAll(".chart")) near.observe(place);
