// The page of one or several load tests. The first run is the one that was just measured, the others are what it is compared with.

import { timeSection } from "./breakdown.js";
import { comparison } from "./compare.js";
import { element } from "./dom.js";
import { namesOf, pointsOf } from "./figures.js";
import { headOf, runsSection } from "./head.js";
import { latencySection } from "./percentiles.js";
import { throughputSection } from "./throughput.js";
import { unstableSection, windowsSection } from "./windows.js";

/** Control characters, and overrides of the direction, which would reorder the page around a name. */
const UNPRINTABLE = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu;

function sections(runs) {
  const names = namesOf(runs);
  const isMeasured = runs.some((run) => pointsOf(run).length);
  const pictures = () => [...unstableSection(runs, names), throughputSection(runs, names), ...comparison(runs, names), latencySection(runs, names), timeSection(runs, names), ...windowsSection(runs, names)];
  return [headOf(runs, names), ...(isMeasured ? pictures() : []), ...runsSection(runs, names)];
}

/** Shows what a mark means at once and beside the pointer. */
function followPointer() {
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

const runs = JSON.parse(document.getElementById("runs-data").textContent, (_, value) => (typeof value === "string" ? value.replace(UNPRINTABLE, "\ufffd") : value));
document.title = `${runs[0]?.model ?? ""} – load test`;
document.querySelector("main").replaceChildren(...sections(runs));
followPointer();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((box) => { box.open = true; }));
