// SPDX-License-Identifier: MIT
// What a bar or a line of a chart says, beside the pointer. Without this the browser shows it as a title.
for (const chart of document.querySelectorAll(".chart")) {
  const says = document.createElement("span");
  says.className = "chart-says";
  says.hidden = true;
  chart.append(says);
  for (const title of chart.querySelectorAll("a > title")) {
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }

  const show = (event) => {
    const link = event.target.closest?.("a");
    says.hidden = !link;
    if (!link) return;
    says.textContent = link.getAttribute("aria-label");
    const frame = chart.getBoundingClientRect(), mark = link.getBoundingClientRect();
    const x = event.clientX ?? mark.left, y = event.clientY ?? mark.bottom;
    says.style.left = `${Math.max(0, Math.min(x - frame.left + 12, frame.width - says.offsetWidth))}px`;
    says.style.top = `${y - frame.top + 16}px`;
  };
  for (const kind of ["pointermove", "focusin"]) chart.addEventListener(kind, show);
  for (const kind of ["pointerleave", "focusout"]) chart.addEventListener(kind, () => (says.hidden = true));
}
