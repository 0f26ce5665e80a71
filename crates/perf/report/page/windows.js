// The windows of each point: whether the throughput was steady while it was measured; and of points that did not become stable every
// window, which of them the figures are made of, and why they do not count as stable.

import { axis, axisAt, dashed, line, lineChart, lookOf, picture, polyline, px, words } from "./charts.js";
import { element, svg } from "./dom.js";
import { decidingOf, loadCell, loadName, loadOf, plainLoad, pointsOf } from "./figures.js";
import { capitalized, count, duration, number, percent, ratioPercent, short, tick, tickDuration, unitOfTable, usable } from "./numbers.js";
import { Scale } from "./scale.js";
import { numbersBelow } from "./tables.js";

const [CELL_WIDTH, CELL_HEIGHT] = [158, 74];
/** The cells' scale reaches at least this far from the average, so that noise does not look like a trend. */
const LEAST_SPREAD = 0.1;

export function windowsSection(runs, names) {
  if (!runs.some((run) => run.points.some(({ windows }) => windows.length > 1))) return [];
  const about = "Throughput of each window that was merged against the average of its point; the titles are the load. A flat line is a steady server.";
  const drawn = runs.flatMap((run, at) => [...(runs.length > 1 ? [element("h3", { class: `run${at % 6}` }, names[at])] : []), ...runCells(at, run, names[at])]);
  const tables = runs.map((run, at) => windowsTable(pointsOf(run), names[at]));
  return [element("section", { id: "windows" }, element("h2", {}, "Stability"), element("p", { class: "about" }, about), ...drawn, ...numbersBelow(tables))];
}

function runCells(at, run, name) {
  const cells = pointsOf(run).flatMap(cellOfPoint);
  if (!cells.length) return [element("p", { class: "nothing" }, "No point has more than one window.")];
  const spread = Math.max(LEAST_SPREAD, ...cells.map((cell) => cell.spread));
  const about = cells.map((cell) => `${cell.load}: within ${ratioPercent(cell.spread)} of the average. `).join("");
  const charts = [true, false].map((isWide) => {
    const [columns, width] = isWide ? [6, 960] : [2, 340];
    const nodes = cells.map((cell, at) => windowCell(cell, (at % columns) * (CELL_WIDTH + 2), Math.floor(at / columns) * CELL_HEIGHT, spread));
    const size = [width, Math.ceil(cells.length / columns) * CELL_HEIGHT + 4];
    return picture({ id: `windows-${at}`, title: `Throughput of the windows, ${name}`, about, isWide }, size, svg("g", { class: lookOf(at).kind }, ...nodes));
  });
  return [...charts, element("p", { class: "about" }, `The lines above and below are ±${percent(spread * 100)} of the average.`)];
}

function cellOfPoint(point) {
  const throughputs = point.windows.map((window) => window.throughput).filter((value) => usable(value) !== undefined);
  const average = throughputs.reduce((sum, value) => sum + value, 0) / throughputs.length;
  if (throughputs.length < 2 || !(average > 0)) return [];
  // The title is short enough for its place.
  const title = point.mode === "request_rate" ? `${short(point.value)}/s` : short(point.value);
  return [{ load: loadOf(point), title, throughputs, average, spread: Math.max(...throughputs.map((value) => Math.abs(value / average - 1))) }];
}

function windowCell({ load, title, throughputs, average, spread: own }, left, top, spread) {
  const [from, to, middle, half] = [left + 8, left + CELL_WIDTH - 12, top + 46, 18];
  const step = (to - from) / (throughputs.length - 1);
  const places = throughputs.map((value, at) => [from + step * at, middle - (half * (value / average - 1)) / spread]);
  const dots = places.map(([x, y], at) => svg("circle", { class: "dot", cx: px(x), cy: px(y), r: 3, "data-tip": `${load}\nwindow ${at + 1}: ${number(throughputs[at])} inferences/s` }));
  return svg(
    "g",
    { class: "cell" },
    words("cell-title", left + 4, top + 16, title),
    words("cell-note end", to + 4, top + 16, `±${ratioPercent(own)}`),
    ...[["grid", -half], ["base", 0], ["grid", half]].map(([kind, away]) => line(kind, from, middle + away, to, middle + away)),
    svg("path", { class: "line", d: polyline(places) }),
    ...dots,
  );
}

function windowsTable(points, name) {
  const unit = unitOfTable(points.flatMap(({ windows }) => windows.map((window) => window.latency_us)));
  const rows = points.map((point) => ({
    kind: "point",
    cells: [
      loadCell(points, point),
      count(point.windows.length),
      point.windows.map((window) => number(window.throughput)).join("\u2002"),
      point.windows.map((window) => unit.write(window.latency_us)).join("\u2002"),
    ],
  }));
  return { caption: `${name}: windows, oldest first`, head: [loadName(points), "Windows", "Inferences/s of each window", `Latency of each window, ${unit.name}`], rows };
}

// --- points that did not become stable

/** So many points have a picture; the others have their reason and their table. */
const MOST_CHARTS = 6;
/** So many of the last windows are shown; the summary has all. */
const MOST_WINDOWS = 60;
const MEASURES = [
  { id: "throughput", axis: "inferences/s", of: (trial) => usable(trial.throughput), write: (value) => `${number(value)} inferences/s`, writeTick: tick },
  { id: "latency", axis: "latency", of: (trial) => usable(trial.latency_us), write: duration, writeTick: tickDuration },
];

export function unstableSection(runs, names) {
  const given = runs.flatMap((run, at) => pointsOf(run).filter((point) => point.instability).map((point) => ({
    run: at,
    point,
    name: runs.length > 1 ? `${names[at]}, ${plainLoad(point)}` : plainLoad(point),
  })));
  if (!given.length) return [];
  const about = "The figures of these points are a hint only. They are made of the last windows (filled marks, solid lines); the windows before (hollow marks, dashed lines) were measured and not merged.";
  const points = given.flatMap((one, at) => unstablePoint(one, at, decidingOf(runs)));
  return [element("section", { id: "unstable" }, element("h2", {}, "Unstable: windows that do not agree"), element("p", { class: "about" }, about), ...points)];
}

function unstablePoint(given, at, deciding) {
  const { reason, trials: all } = given.point.instability;
  const hidden = Math.max(0, all.length - MOST_WINDOWS);
  const trials = all.map((trial, before) => ({ ...trial, number: before + 1 })).slice(hidden);
  const nodes = [element("h3", { class: lookOf(given.run).kind }, capitalized(given.name)), element("p", { class: "reason" }, `Unstable because ${reason || "the windows do not agree"}.`)];
  if (!trials.length) return nodes;
  if (at < MOST_CHARTS) nodes.push(element("div", { class: "small-charts" }, ...MEASURES.map((measure) => element("div", {}, ...trialCharts(given, at, trials, measure)))));
  if (hidden) nodes.push(element("p", { class: "about" }, `${count(hidden)} earlier windows are only in the summary (--json).`));
  return [...nodes, ...numbersBelow([trialsTable(given, trials, deciding)])];
}

function trialCharts({ run, point, name }, at, trials, measure) {
  const known = trials.filter((trial) => measure.of(trial) !== undefined);
  if (!known.length) return [];
  const say = (trial) => `Window ${trial.number}: ${known.includes(trial) ? measure.write(measure.of(trial)) : "failed"}${trial.merged ? ", merged" : ""}. `;
  const caption = { id: `unstable-${at}-${measure.id}`, title: `${capitalized(measure.id)} of each window, ${name}`, about: trials.map(say).join("") };
  const merged = { ...lookOf(run), dash: "none", isHollow: false };
  const series = [[false, dashed(merged)], [true, merged]].map(([isMerged, look]) => ({
    look,
    name: "",
    marks: known.filter((trial) => trial.merged === isMerged).map((trial) => ({
      at: [trial.number, measure.of(trial)],
      tip: `${loadOf(point)}\nwindow ${trial.number}, ${isMerged ? "merged" : "not merged"}\n${measure.write(measure.of(trial))}`,
    })),
  }));
  const numbers = trials.map((trial) => trial.number);
  const x = axisAt("window", Scale.ofLoads(numbers), numbers, short);
  const y = axis(measure.axis, Scale.fromZero(known.map(measure.of)), 5, measure.writeTick);
  return [true, false].map((isWide) => lineChart({ ...caption, isWide }, { size: [isWide ? 470 : 340, 240], x, y, series }));
}

function trialsTable({ name }, trials, deciding) {
  const unit = unitOfTable(trials.map((trial) => trial.latency_us));
  const latency = (trial) => (trial.latency_us === undefined ? "failed" : unit.write(trial.latency_us));
  const rows = trials.map((trial) => ({ kind: "point", cells: [String(trial.number), trial.merged ? "merged" : "no", number(trial.throughput), latency(trial)] }));
  return { caption: `${name}: windows, oldest first`, head: ["Window", "In the figures", "Inferences/s", `${deciding.name}, ${unit.name}`], rows };
}
