// The figures of a run that the page shows, free of values that cannot be drawn.

import { shortened } from "./charts.js";
import { number, short, usable } from "./numbers.js";

/** Deeper than any ensemble that a person would draw. */
export const DEEPEST = 8;
export const amount = (us) => usable(us) ?? 0;

/** A wide interval may reach below zero, which no throughput or latency does. */
function usableInterval(ends) {
  const [low, high] = [usable(ends?.[0] < 0 ? 0 : ends?.[0]), usable(ends?.[1])];
  return low !== undefined && high >= low ? [low, high] : undefined;
}

export const throughputInterval = (point) => usableInterval(point.throughput_ci95);
export const percentile = (latency, key) => usable(latency?.percentiles_us?.[key]);

/** The latency that decides: a percentile, or the average. The first run's is used for all, so that they compare. */
export function decidingOf(runs) {
  const rank = runs[0]?.percentile;
  const isAverage = rank === undefined;
  return {
    name: isAverage ? "average latency" : `p${rank} latency`,
    shortName: isAverage ? "average" : `p${rank}`,
    isP99: rank === 99,
    us: (point) => (isAverage ? usable(point.latency.avg_us) : percentile(point.latency, rank)),
    // A run's interval is of the latency that decided there.
    interval: (run, point) => (run.percentile === rank ? usableInterval(point.latency_ci95) : undefined),
  };
}

/** All percentiles that these points have anywhere, ascending. */
export function percentileKeys(points) {
  const latencies = points.flatMap((point) => [point.latency, point.scheduled_latency ?? {}]);
  const keys = new Set(latencies.flatMap((latency) => Object.keys(latency.percentiles_us ?? {})));
  return [...keys].filter((key) => Number(key) >= 0 && Number(key) <= 100 && key.trim()).sort((a, b) => a - b);
}

/** Points by load, those without a usable load or throughput left out. */
export function pointsOf(run) {
  const isUsable = (point) => usable(point.value) !== undefined && usable(point.throughput) !== undefined;
  const byMode = (a, b) => (a.mode < b.mode ? -1 : a.mode > b.mode ? 1 : 0);
  return run.points.filter(isUsable).sort((a, b) => byMode(a, b) || a.value - b.value);
}

/** The last of those for which `value` is the highest. */
export const highest = (items, value) => items.reduce((best, item) => (best === undefined || value(item) >= value(best) ? item : best), undefined);

/** The point of the highest throughput. One that was not stable counts only where there is no other. */
export function bestOf(run) {
  const points = pointsOf(run);
  const stable = points.filter((point) => !point.unstable);
  return highest(stable.length ? stable : points, (point) => point.throughput);
}

/** The best of each, where both are under the same kind of load: a rate is what was requested, not what can be had. */
export function bestOfBoth(ours, theirs) {
  const best = [bestOf(ours), bestOf(theirs)];
  return best[0] && best[0].mode === best[1]?.mode ? best : undefined;
}

/** `concurrency 16`, `250 requests/s`. */
export function plainLoad({ mode, value }) {
  if (mode === "concurrency") return `concurrency ${short(value)}`;
  return mode === "request_rate" ? `${short(value)} requests/s` : `${shortened(mode, 1, 12)} ${short(value)}`;
}

const marked = (load, point) => (point.unstable ? `${load}, unstable` : load);
export const loadOf = (point) => marked(plainLoad(point), point);
/** The load of a point in each of two runs, marked where it was unstable in one. */
export const loadOfBoth = (ours, theirs) => `${plainLoad(ours)}${ours.unstable || theirs.unstable ? " (unstable)" : ""}`;

/** The head of the column that has the loads. */
export function loadName(points) {
  const names = { concurrency: "Concurrency", request_rate: "Requests/s" };
  const mode = points[0]?.mode;
  return (points.every((point) => point.mode === mode) && Object.hasOwn(names, mode) && names[mode]) || "Load";
}

/** A load in a column with that head. */
export const loadCell = (points, point) => (loadName(points) === "Load" ? loadOf(point) : marked(short(point.value), point));

/** One name for each run; equal labels are numbered. */
export function namesOf(runs) {
  const labels = runs.map((run) => run.label.trim() || "unnamed run");
  return labels.map((label, at) => {
    const same = labels.filter((other) => other === label).length;
    return same === 1 ? label : `${label} (${labels.slice(0, at).filter((other) => other === label).length + 1})`;
  });
}

/**
 * The mean batch size: the items of all executions over all executions. Inferences leave out requests that failed, so where the server
 * tells no batch sizes they give a mean only as long as it is a possible one.
 */
export function batchSize(server) {
  const items = server.executed_items || server.inference_count;
  const executions = server.execution_count;
  return executions > 0 && items >= executions ? number(items / executions) : "–";
}
