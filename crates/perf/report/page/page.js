// Parts of every page that is one file: marks say what they mean, and paper has all of it.

import { element } from "./dom.js";

/** Shows what a mark means at once and beside the pointer. */
export function followPointer() {
  const tip = element("div", { class: "tip", "aria-hidden": "true" });
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("data-tip");
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, room))}px`;
    tip.style.top = `${Math.max(8, event.clientY - tip.offsetHeight - 12)}px`;
  });
  document.documentElement.addEventListener("pointerleave", () => { tip.hidden = true; });
}

/** What is folded is open on paper. */
export function openForPrint() {
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((box) => { box.open = true; }));
}
