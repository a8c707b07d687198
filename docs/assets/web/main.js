// SPDX-License-Identifier: MIT
// Starts each widget of the page when it comes near the window.
const WIDGETS = ["run", "break", "banks", "play", "softmax", "ring", "holds", "timeline", "chart", "exercise"];

async function start(place) {
  const name = place.dataset.widget;
  if (!WIDGETS.includes(name)) return;
  try {
    const widget = await import(`./${name}.js`);
    await widget.start(place);
  } catch (error) {
    // The static part stays where it is.
    place.dataset.live = "failed";
    place.append(`This part could not be started: ${error.message}. Reload the page to try again.`);
  }
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      start(target);
    }
  },
  { rootMargin: "600px" },
);
for (const place of document.querySelectorAll(".fa-widget")) near.observe(place);
