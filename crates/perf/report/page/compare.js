// The first run against each of the others, at the loads that both have.

import { element } from "./dom.js";
import { bestOfBoth, decidingOf, loadCell, loadName, loadOf, loadOfBoth, percentile, pointsOf, throughputInterval } from "./figures.js";
import { capitalized, change, durations, interval, number, times, unitOfTable } from "./numbers.js";
import { figureTable, folded } from "./tables.js";
import { evidenceOf, verdictOn } from "./verdict.js";

const ratioOf = (ours, theirs) => (ours > 0 && theirs > 0 ? ours / theirs : undefined);

export function comparison(runs, names) {
  if (runs.length < 2) return [];
  const note = "≈ marks changes where the 95 % confidence intervals (under the values) of the two runs overlap: no difference was shown. Changes without a mark are not judged, because an interval is missing.";
  const deciding = decidingOf(runs);
  const pairs = runs.slice(1).flatMap((theirs, at) => pairOf([runs[0], theirs], [names[0], names[at + 1]], deciding, runs.length > 2));
  return [element("section", { id: "comparison" }, element("h2", {}, "Comparison"), ...pairs, element("p", { class: "about" }, note))];
}

function pairOf([ours, theirs], [ourName, theirName], deciding, isOneOfMany) {
  const points = commonPoints(ours, theirs);
  const verdicts = verdictsOn([ours, theirs], points, deciding);
  const nodes = [element("p", { class: "verdict" }, element("b", {}, ourName), " against ", element("b", {}, theirName), points.length ? ":" : ": no load in common.")];
  if (verdicts.length) nodes.push(element("ul", { class: "verdicts" }, ...verdicts.map((verdict) => element("li", {}, verdict))));
  if (ours.model !== theirs.model || ours.batch_size !== theirs.batch_size) {
    const [a, b] = [ours, theirs].map((run) => `${run.model} with batch size ${run.batch_size}`);
    nodes.push(element("p", { class: "caution" }, `Not the same load: ${a} against ${b}.`));
  }
  const table = comparisonTable([ours, theirs], points, deciding, `${ourName} (first of each pair) against ${theirName}`);
  if (isOneOfMany) nodes.push(...folded("Load by load", [table]));
  else if (table.rows.length) nodes.push(figureTable(table));
  return nodes;
}

/** Points of equal load. */
function commonPoints(ours, theirs) {
  const others = pointsOf(theirs);
  const isSame = (a, b) => a.mode === b.mode && Math.abs(a.value - b.value) <= 1e-6 * Math.max(a.value, b.value);
  return pointsOf(ours).flatMap((point) => {
    const other = others.find((theirs) => isSame(point, theirs));
    return other ? [[point, other]] : [];
  });
}

/** One sentence for each measure that has intervals; p99 has none unless it decides. */
function verdictsOn([ours, theirs], points, deciding) {
  const findings = (of) => points.flatMap(([a, b]) => {
    const [[value, ends], [other, otherEnds]] = [of(ours, a), of(theirs, b)];
    const ratio = ratioOf(value, other);
    return ratio === undefined ? [] : [{ load: loadOfBoth(a, b), ratio, intervals: [ends, otherEnds] }];
  });
  const throughput = { name: "Throughput", ratio: times, interval: (ends) => `${interval(ends)} inferences/s` };
  const latency = { name: capitalized(deciding.name), ratio: change, interval: durations };
  return [
    verdictOn(throughput, findings((_, point) => [point.throughput, throughputInterval(point)])),
    verdictOn(latency, findings((run, point) => [deciding.us(point), deciding.interval(run, point)])),
  ].filter(Boolean);
}

function comparisonTable([ours, theirs], points, deciding, caption) {
  const ourPoints = points.map(([point]) => point);
  const unit = unitOfTable(points.flat().map(deciding.us));
  const row = (load, [a, b], kind) => {
    const rates = [a, b].map(throughputInterval);
    const intervals = [deciding.interval(ours, a), deciding.interval(theirs, b)];
    const cells = [load, ...pairCells([a.throughput, b.throughput], rates, number), changeCell(ratioOf(a.throughput, b.throughput), true, evidenceOf(...rates)), ...latencyCells([a, b].map(deciding.us), unit, intervals)];
    if (!deciding.isP99) cells.push(...latencyCells([a, b].map((point) => percentile(point.latency, "99")), unit, []));
    return { kind, cells };
  };
  const rows = points.map((pair) => row(loadCell(ourPoints, pair[0]), pair, "point"));
  const best = bestOfBoth(ours, theirs);
  if (best) rows.push(row(`best of each: ${best.map(loadOf).join(" and ")}`, best, "best"));
  const latencies = [deciding.shortName, ...(deciding.isP99 ? [] : ["p99"])];
  const head = [loadName(ourPoints), "Inferences/s", "against", "ratio", ...latencies.flatMap((name) => [`${name}, ${unit.name}`, "against", "change"])];
  return { caption, head, rows };
}

/** Values with their intervals in small print. */
const pairCells = (values, intervals, write) => values.map((value, at) => ({ text: write(value), below: intervals[at] && interval(intervals[at], write) }));

function latencyCells(values, unit, intervals) {
  return [...pairCells(values, intervals, unit.write), changeCell(ratioOf(...values), false, evidenceOf(...intervals))];
}

export function changeCell(ratio, isHigherBetter, evidence) {
  if (ratio === undefined) return "–";
  const text = isHigherBetter ? times(ratio) : change(ratio);
  if (evidence === "missing") return { text, kind: "unjudged", note: "not judged, no confidence interval" };
  if (evidence === "overlapping") return { text, kind: "even", note: "no difference shown" };
  if (Math.abs(ratio - 1) < 0.005) return { text, kind: "even", note: "hardly a difference" };
  const kind = ratio > 1 === isHigherBetter ? "better" : "worse";
  return { text, kind, note: kind };
}
