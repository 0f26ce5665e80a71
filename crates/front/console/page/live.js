// Charts of the last minutes and bars, drawn as SVG and changed in place.

import { legend as legendOf, polyline, stacked } from "./charts.js";
import { element, setAttribute, setText, svg } from "./dom.js";
import { clock, span as duration } from "./format.js";
import { MINUTES } from "./history.js";
import { Scale, roundUp } from "./scale.js";

const [WIDTH, HEIGHT] = [300, 100];
/** A chart begins with one minute and grows with what was seen. */
const [SHORTEST_MS, LONGEST_MS] = [60_000, MINUTES * 60_000];
/** Between two points that are further apart nothing was seen. */
const GAP_MS = 8000;

/** How far back these points go, as a chart shows them. */
function spanOf(points, now) {
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, now - (points[0]?.time ?? now)));
}

function line(points, now, top, of) {
  const x = new Scale(now - spanOf(points, now), now).over(0, WIDTH);
  const y = new Scale(0, top).over(HEIGHT, 0);
  const places = [];
  let last = -Infinity;
  for (const point of points) {
    const value = of(point);
    if (value === null || value === undefined || point.time < x.low) continue;
    if (point.time - last > GAP_MS) places.push(null);
    places.push([x.position(point.time), y.position(value)]);
    last = point.time;
  }
  return polyline(places);
}

/** The line with what is below it. A gap ends an area as it ends a line. */
function area(path) {
  return path.split("M").slice(1).map((part) => {
    const places = part.split("L");
    const x = (place) => place.split(" ")[0];
    return `M${x(places[0])} ${HEIGHT}L${part}L${x(places.at(-1))} ${HEIGHT}Z`;
  }).join("");
}

function picture(attributes, ...children) {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", ...attributes }, ...children);
}

function topOf(points, now, series) {
  const recent = points.filter((point) => now - point.time < LONGEST_MS);
  return Math.max(0, ...recent.flatMap((point) => series.map((one) => one.of(point) ?? 0)));
}

/** A small line without an axis. */
export function sparkline({ of, kind }) {
  const [stroke, fill] = ["line", "area"].map((part) => svg("path", { class: `${part} ${kind ?? "s0"}` }));
  const node = picture({ class: "spark", "aria-hidden": "true" }, fill, stroke);
  const update = (points, now) => {
    const path = line(points, now, (topOf(points, now, [{ of }]) || 1) * 1.05, of);
    setAttribute(stroke, "d", path);
    setAttribute(fill, "d", area(path));
  };
  return { node, update };
}

/** The point of a place between 0 and 1, or nothing where nothing was seen. */
function pointAt(points, now, share) {
  const time = now - spanOf(points, now) * (1 - share);
  const near = points.reduce((best, point) => (Math.abs(point.time - time) < Math.abs((best?.time ?? Infinity) - time) ? point : best), null);
  return near && Math.abs(near.time - time) < GAP_MS ? near : null;
}

/** Shows the values of the instant that is pointed at, in place of those of now. */
function followPointer(plot, cursor, state, drawLegend) {
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    state.at = pointAt(state.points, state.now, share);
    const x = state.at ? WIDTH * (1 - (state.now - state.at.time) / spanOf(state.points, state.now)) : -1;
    setAttribute(cursor, "d", `M${x} 0V${HEIGHT}`);
    drawLegend();
  });
  plot.addEventListener("pointerleave", () => {
    state.at = null;
    setAttribute(cursor, "d", "");
    drawLegend();
  });
}

/** A chart of `series`, each with a name and `of(point)`; `write(value)` is how values are written. */
export function chart(title, series, write) {
  const kinds = series.map((one, at) => one.kind ?? `s${at}`);
  const paths = kinds.map((kind) => svg("path", { class: `line ${kind}` }));
  const fill = svg("path", { class: `area ${kinds[0]}` });
  const cursor = svg("path", { class: "cursor" });
  const drawn = picture({ role: "img" }, svg("path", { class: "grid", d: `M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}` }), fill, ...paths, cursor);
  const values = series.map(() => element("b", {}, "–"));
  const mark = (at) => svg("svg", { viewBox: "0 0 18 6", class: "key", "aria-hidden": "true" }, svg("path", { class: `line ${kinds[at]}`, d: "M0 3H18" }));
  const legend = legendOf(series.map((one, at) => [mark(at), one.name, " ", values[at]]));
  const [top, from] = [element("span", { class: "top-label" }), element("span", {})];
  const plot = element("div", { class: "plot" }, drawn, top);
  const axis = element("div", { class: "axis", "aria-hidden": "true" }, from, element("span", {}, "now"));
  const node = element("figure", { class: "chart" }, element("figcaption", {}, element("h3", {}, title), legend), plot, axis);
  const state = { points: [], now: 0, at: null };
  const drawLegend = () => {
    const point = state.at ?? state.points.at(-1);
    series.forEach((one, at) => setText(values[at], point ? write(one.of(point)) : "–"));
    setText(from, state.at ? `at ${clock(state.at.time)}` : `${duration(spanOf(state.points, state.now) / 1000)} ago`);
  };
  followPointer(plot, cursor, state, drawLegend);
  const update = (points, now) => {
    Object.assign(state, { points, now });
    const most = topOf(points, now, series);
    const scale = roundUp(most || 1);
    setText(top, write(scale));
    const drawnPaths = series.map((one) => line(points, now, scale, one.of));
    drawnPaths.forEach((path, at) => setAttribute(paths[at], "d", path));
    setAttribute(fill, "d", series.length === 1 ? area(drawnPaths[0]) : "");
    const told = series.map((one) => `${one.name} ${write(points.length ? one.of(points.at(-1)) : null)}`).join(", ");
    setAttribute(drawn, "aria-label", `${title} over the last minutes. Now ${told}; highest ${write(most)}.`);
    drawLegend();
  };
  return { node, update };
}

/** A bar from 0 to 1. */
export function bar() {
  const filledPart = svg("rect", { x: 0, y: 0, width: 0, height: 10, class: "fill" });
  const node = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" }, filledPart);
  return { node, set: (share) => setAttribute(filledPart, "width", (100 * Math.min(1, Math.max(0, share))).toFixed(1)) };
}

/** Parts of a whole, one behind the other. */
export function stack(names) {
  const parts = names.map((_, at) => svg("rect", { x: 0, y: 0, width: 0, height: 10, class: `part s${at}` }));
  const node = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "bar stack", "aria-hidden": "true" }, ...parts);
  const set = (values) => {
    const whole = values.reduce((sum, value) => sum + value, 0) || 1;
    stacked(values).forEach((from, at) => {
      setAttribute(parts[at], "x", ((100 * from) / whole).toFixed(2));
      setAttribute(parts[at], "width", ((100 * values[at]) / whole).toFixed(2));
    });
  };
  return { node, set };
}
