// Throughput against latency: what more load gains, and what it costs.

import { axis, legend, lineChart, lookOf, sample } from "./charts.js";
import { element } from "./dom.js";
import { decidingOf, loadCell, loadName, loadOf, pointsOf, throughputInterval } from "./figures.js";
import { count, duration, interval, number, percent, short, tick, tickDuration, unitOfTable } from "./numbers.js";
import { Scale } from "./scale.js";
import { numbersBelow, without } from "./tables.js";

/** Over this ratio between the largest and the smallest latency a linear axis would squeeze the small ones together. */
const LOG_THROUGHPUT_FROM = 12;

export function throughputSection(runs, names) {
  const deciding = decidingOf(runs);
  const series = runs.map((run, at) => ({ look: lookOf(at), name: "", marks: marksOfRun(run, names[at], deciding) }));
  const description = runs.map((run, at) => sentenceOfRun(run, names[at], deciding)).join("");
  const caption = { id: "throughput-chart", title: "Throughput against latency", about: description };
  const charts = [true, false].map((isWide) => throughputChart({ ...caption, isWide }, series, deciding));
  const isEmpty = series.every(({ marks }) => !marks.length);
  return element(
    "section",
    { id: "throughput" },
    element("h2", {}, "Throughput against latency"),
    element("p", { class: "about" }, "Up and to the left is better. Numbers beside the points are the load; bars are 95 % confidence intervals (CI) over the windows."),
    ...(runs.length > 1 ? [legend(series.map(({ look }, at) => [sample(look), element("span", {}, names[at])]))] : []),
    ...(isEmpty ? [element("p", { class: "nothing" }, "Nothing was measured.")] : charts),
    ...numbersBelow(runs.map((run, at) => throughputTable(run, names[at], deciding))),
  );
}

function marksOfRun(run, name, deciding) {
  const known = pointsOf(run).filter((point) => deciding.us(point) !== undefined);
  return known.map((point) => ({
    at: [deciding.us(point), point.throughput],
    xInterval: deciding.interval(run, point),
    yInterval: throughputInterval(point),
    label: short(point.value),
    tip: `${name}\n${loadOf(point)}\n${number(point.throughput)} inferences/s\n${deciding.name} ${duration(deciding.us(point))}`,
  }));
}

function throughputChart(caption, series, deciding) {
  const marks = series.flatMap((one) => one.marks);
  // Wide intervals may run out of the picture, but not squeeze the points together.
  const inside = ({ at: [x], xInterval: ends }) => (ends ? [Math.max(ends[0], x / 2), Math.min(ends[1], x * 2)] : []);
  const x = [...marks.map(({ at }) => at[0]), ...marks.flatMap(inside)];
  const y = [...marks.map(({ at }) => at[1]), ...marks.flatMap(({ yInterval }) => yInterval ?? [])];
  // One point has no spread to zoom into.
  const scale = marks.length === 1 ? Scale.fromZero(x) : Scale.fitting(x, LOG_THROUGHPUT_FROM);
  return lineChart(caption, {
    size: caption.isWide ? [960, 440] : [340, 320],
    x: axis(deciding.name, scale, caption.isWide ? 9 : 4, tickDuration),
    y: axis("inferences/s", Scale.fromZero(y), 6, tick),
    series,
  });
}

function sentenceOfRun(run, name, deciding) {
  const points = pointsOf(run);
  const say = (point) => `${number(point.throughput)} inferences/s with ${duration(deciding.us(point))} at ${loadOf(point)}`;
  if (!points.length) return `${name}: no points. `;
  return points.length === 1 ? `${name}: ${say(points[0])}. ` : `${name}: from ${say(points[0])} to ${say(points.at(-1))}. `;
}

function throughputTable(run, name, deciding) {
  const points = pointsOf(run);
  const unit = unitOfTable(points.map(deciding.us));
  const ci = (ends, write) => (ends ? interval(ends, write) : "–");
  const head = [loadName(points), "Inferences/s", "95 % CI", `${deciding.name}, ${unit.name}`, "95 % CI", "Responses/s", "Requests", "Delayed", "Duration, s", "Tool busy", "Tool CPU/request"];
  const rows = points.map((point) => ({
    kind: "point",
    cells: [
      loadCell(points, point),
      number(point.throughput),
      ci(throughputInterval(point), number),
      unit.write(deciding.us(point)),
      ci(deciding.interval(run, point), unit.write),
      number(point.response_throughput),
      count(point.request_count),
      count(point.delayed_request_count),
      number(point.duration_s),
      percent(point.overhead_percent),
      duration(point.tool_cpu_us_per_request),
    ],
  }));
  const isAnywhere = { "Responses/s": (point) => point.response_throughput !== undefined, Delayed: (point) => point.delayed_request_count > 0 };
  const empty = Object.keys(isAnywhere).filter((column) => !points.some(isAnywhere[column]));
  return without({ caption: `${name}: throughput and ${deciding.name}`, head, rows }, empty);
}
