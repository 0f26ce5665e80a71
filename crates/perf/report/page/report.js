// The page of one or several load tests. The first run is the one that was just measured, the others are what it is compared with.

import { timeSection } from "./breakdown.js";
import { comparison } from "./compare.js";
import { element, printable } from "./dom.js";
import { namesOf, pointsOf } from "./figures.js";
import { headOf, runsSection } from "./head.js";
import { followPointer, openForPrint } from "./page.js";
import { latencySection } from "./percentiles.js";
import { throughputSection } from "./throughput.js";
import { unstableSection, windowsSection } from "./windows.js";

function sections(runs) {
  const names = namesOf(runs);
  const isMeasured = runs.some((run) => pointsOf(run).length);
  const pictures = () => [...unstableSection(runs, names), throughputSection(runs, names), ...comparison(runs, names), latencySection(runs, names), timeSection(runs, names), ...windowsSection(runs, names)];
  return [headOf(runs, names), ...(isMeasured ? pictures() : []), ...runsSection(runs, names)];
}

const runs = JSON.parse(document.getElementById("runs-data").textContent, printable);
document.title = `${runs[0]?.model ?? ""} – load test`;
document.querySelector("main").replaceChildren(...sections(runs));
followPointer();
openForPrint();
