// Latency percentiles by load: how far the slow requests are from the usual ones. One small chart for each run, all on the same scale.

import { axis, axisAt, dashed, legend, lineChart, rankedLook, sample } from "./charts.js";
import { element } from "./dom.js";
import { loadCell, loadName, loadOf, percentile, percentileKeys, pointsOf } from "./figures.js";
import { duration, short, tickDuration, unitOfTable } from "./numbers.js";
import { Scale } from "./scale.js";
import { numbersBelow } from "./tables.js";

const LOG_LATENCY_FROM = 15;
/** Those drawn a second time as the schedule saw them; all of them would hide each other. */
const SCHEDULED = ["50", "99"];

export function latencySection(runs, names) {
  const points = runs.map(pointsOf);
  const all = points.flat();
  const keys = percentileKeys(all);
  const hasSchedule = all.some((point) => point.scheduled_latency);
  const scheduled = hasSchedule ? " Dashed: counted from when the schedule wanted each request sent, so that stalls of the server count." : "";
  const lines = linesOf(keys);
  const entries = lines.filter(({ isScheduled }) => hasSchedule || !isScheduled).map(({ look, name }) => [sample(look), element("span", {}, name)]);
  const drawn = keys.length
    ? [element("p", { class: "about" }, `Time from sending a request to its response, by load.${scheduled}`), legend(entries), latencyCharts(points, names, keys, lines)]
    : [element("p", { class: "nothing" }, "No percentiles were measured.")];
  return element("section", { id: "latency" }, element("h2", {}, "Latency percentiles"), ...drawn, ...numbersBelow(points.map((points, at) => latencyTable(points, names[at], keys))));
}

/** The lines of every chart: what each is called, and its value at a point. */
function linesOf(keys) {
  const looks = keys.map((_, rank) => rankedLook(rank, keys.length));
  const sent = keys.map((key, rank) => ({ look: looks[rank], name: `p${key}`, end: `p${key}`, us: (point) => percentile(point.latency, key) }));
  const again = keys.map((key, rank) => ({ key, look: dashed(looks[rank]), name: `p${key} from the schedule`, end: "", isScheduled: true, us: (point) => percentile(point.scheduled_latency, key) }));
  return [...sent, ...again.filter(({ key }) => SCHEDULED.includes(key))];
}

function latencyCharts(points, names, keys, lines) {
  const isAlone = points.length === 1;
  const values = points.flat().flatMap((point) => lines.map((line) => line.us(point))).filter((us) => us !== undefined);
  const y = axis("latency", Scale.fitting(values, LOG_LATENCY_FROM), 7, tickDuration);
  const figures = points.map((points, at) => {
    const title = isAlone ? [] : [element("figcaption", { class: `run${at % 6}` }, names[at])];
    if (!points.length) return element("figure", {}, ...title, element("p", { class: "nothing" }, "Nothing was measured."));
    const caption = { id: `latency-${at}`, title: `Latency percentiles, ${names[at]}`, about: describedEnds(points, keys) };
    const wide = isAlone ? [960, 380] : [470, 320];
    return element("figure", {}, ...title, ...[true, false].map((isWide) => latencyChart({ ...caption, isWide }, points, lines, y, isWide ? wide : [340, 320])));
  });
  return element("div", { class: isAlone ? "single" : "small-charts" }, ...figures);
}

function describedEnds(points, keys) {
  const ends = points.length > 1 ? [points[0], points.at(-1)] : points;
  return ends.map((point) => {
    const known = keys.filter((key) => percentile(point.latency, key) !== undefined);
    return `At ${loadOf(point)}: ${known.map((key) => `p${key} ${duration(percentile(point.latency, key))}`).join(", ")}. `;
  }).join("");
}

function latencyChart(caption, points, lines, y, size) {
  const loads = points.map((point) => point.value);
  const series = lines.map(({ look, name, end, us }) => ({
    look,
    name: end,
    marks: points.filter((point) => us(point) !== undefined).map((point) => ({ at: [point.value, us(point)], tip: `${loadOf(point)}\n${name}: ${duration(us(point))}` })),
  }));
  return lineChart(caption, { size, x: axisAt(loadName(points).toLowerCase(), Scale.ofLoads(loads), loads, short), y, series });
}

function latencyTable(points, name, keys) {
  const unit = unitOfTable(points.flatMap((point) => [...Object.values(point.latency.percentiles_us ?? {}), point.latency.avg_us]));
  const head = [loadName(points), "Counted from", "Average", "Deviation", "Min", ...keys.map((key) => `p${key}`), "Max"];
  const row = (point, from, latency) => ({
    kind: "point",
    cells: [loadCell(points, point), from, ...[latency.avg_us, latency.std_us, latency.min_us, ...keys.map((key) => percentile(latency, key)), latency.max_us].map(unit.write)],
  });
  const rows = points.flatMap((point) => [row(point, "sending", point.latency), ...(point.scheduled_latency ? [row(point, "schedule", point.scheduled_latency)] : [])]);
  return { caption: `${name}: latencies in ${unit.name}`, head, rows };
}
