// The ways to look at an output: classes as bars, a curve, a table, a picture, texts, numbers.

import { element, region, svg, table, text } from "./dom.js";
import { checkbox, choice, download, labelled } from "./try-form.js";
import { axes, drawn, guessLayout, guessRange, toPixels } from "./try-image.js";
import { classes, summary } from "./try-response.js";
import { TYPES, asText, count, digits } from "./try-types.js";

const [MOST_BARS, MOST_ROWS, MOST_COLUMNS, MOST_TEXTS, LONGEST_TEXT, FIRST_VALUES, MOST_PICTURES] = [10, 20, 20, 50, 4000, 24, 100];
const MOST_CLASSES = 1 << 18;
const MOST_PIXELS = 1 << 24;
const CHART = { width: 600, height: 160 };
const PICTURES = [["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/gif", [0x47, 0x49, 0x46, 0x38]]];

/** A number for people. */
export function figure(value) {
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(5)));
}

/** The highest first; negative scores have bars by their distance from the lowest. */
function bars(rows, caption) {
  const shown = [...rows].sort((a, b) => b.value - a.value).slice(0, MOST_BARS);
  const values = shown.map((row) => row.value).filter(Number.isFinite);
  const [low, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const high = low === 0 && most <= 1 ? 1 : most;
  const filled = (value) => svg("rect", { width: `${((value - low) / (high - low || 1)) * 100 || 0}%`, height: "100%" });
  const cells = shown.map(({ label, value }) => [text(label), text(svg("svg", { class: "try-bar", "aria-hidden": "true" }, filled(value)), "try-cell"), figure(value)]);
  return region(caption, table(caption, ["*Class", "*", "Value"], cells));
}

function softmax(values) {
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = values.map((value) => Math.exp(value - high));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** The last axis of a tensor has the classes; each row before it is told by its number. */
function rowsOf({ shape, values }) {
  const size = shape[shape.length - 1] ?? 1;
  const rows = size ? Math.min(MOST_ROWS, values.length / size) : 0;
  return Array.from({ length: rows }, (_, row) => Array.from(values.slice(row * size, (row + 1) * size), Number));
}

function scoreBars(output) {
  const rows = rowsOf(output);
  const { box, node } = checkbox("softmax", "Softmax of the values, not the values themselves", false);
  const place = element("div", {});
  const draw = () => {
    const shown = rows.map((row, at) => {
      const values = box.checked ? softmax(row) : row;
      const name = rows.length > 1 ? `row ${at}: ` : "";
      const kind = box.checked ? "softmax" : "values";
      return bars(values.map((value, index) => ({ value, label: `class ${index}` })), `${name}the ${Math.min(MOST_BARS, row.length)} highest ${kind} of ${row.length}`);
    });
    place.replaceChildren(...shown);
  };
  box.addEventListener("change", draw);
  draw();
  return element("div", {}, ...(rows.every(isProbabilities) ? [] : [node]), place);
}

function labelBars(output) {
  const all = classes(output);
  const size = output.shape[output.shape.length - 1] || all.length;
  const rows = Math.min(MOST_ROWS, Math.ceil(all.length / size));
  const one = (row) => bars(all.slice(row * size, (row + 1) * size), rows > 1 ? `row ${row}: the ${size} highest` : `the ${size} highest`);
  return element("div", {}, ...Array.from({ length: rows }, (_, row) => one(row)));
}

/** At most two points for each place of the curve, so that no peak is lost. */
export function curvePoints(values, places) {
  const step = Math.max(1, Math.ceil(values.length / places));
  const points = [];
  for (let at = 0; at < values.length; at += step) {
    const part = Array.from(values.slice(at, at + step), Number).filter(Number.isFinite);
    const [low, high] = [part.reduce((a, b) => Math.min(a, b), Infinity), part.reduce((a, b) => Math.max(a, b), -Infinity)];
    if (part.length) points.push([at, low], ...(part.length > 1 ? [[at + step / 2, high]] : []));
  }
  return points;
}

function chart(output) {
  const { low, high } = summary(output);
  const span = high - low || 1;
  const last = Math.max(1, output.values.length - 1);
  const points = curvePoints(output.values, CHART.width / 2).map(([at, value]) => {
    const [x, y] = [(at / last) * CHART.width, CHART.height - ((value - low) / span) * CHART.height];
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  const line = svg("polyline", { points: points.join(" ") });
  const view = `0 -4 ${CHART.width} ${CHART.height + 8}`;
  const name = `${output.values.length} values from ${figure(low)} to ${figure(high)}`;
  const curve = svg("svg", { class: "try-chart", viewBox: view, preserveAspectRatio: "none", role: "img", "aria-label": name }, line);
  return element("figure", {}, curve, element("figcaption", {}, name));
}

function shownElement(output, value) {
  return output.datatype === "BYTES" ? elementText(value) : digits(output.datatype, value);
}

function elementText(bytes) {
  const said = asText(bytes);
  if (said !== null) return said.length > LONGEST_TEXT ? `${said.slice(0, LONGEST_TEXT)} … (${said.length} characters)` : said;
  const first = Array.from(bytes.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return `${bytes.length} byte${bytes.length === 1 ? "" : "s"} that are not text: ${first}${bytes.length > 16 ? " …" : ""}`;
}

function matrix(output) {
  const columns = output.shape[output.shape.length - 1] ?? 1;
  const rows = columns ? output.values.length / columns : 0;
  const [height, width] = [Math.min(rows, MOST_ROWS), Math.min(columns, MOST_COLUMNS)];
  const at = (row, column) => shownElement(output, output.values[row * columns + column]);
  const cells = Array.from({ length: height }, (_, row) => [text(String(row)), ...Array.from({ length: width }, (_, column) => at(row, column))]);
  const isCut = height < rows || width < columns;
  const caption = isCut ? `the first ${height} of ${rows} rows, ${width} of ${columns} columns` : `${rows} × ${columns}`;
  return region(`${output.name} as a table`, table(caption, ["*", ...Array.from({ length: width }, (_, column) => String(column))], cells));
}

function pictureType(bytes) {
  const isWebp = asText(bytes.subarray(0, 4)) === "RIFF" && asText(bytes.subarray(8, 12)) === "WEBP";
  return isWebp ? "image/webp" : PICTURES.find(([, start]) => start.every((byte, at) => bytes[at] === byte))?.[0];
}

function texts(output) {
  const shown = Array.from(output.values.slice(0, MOST_TEXTS), (value) => {
    const type = pictureType(value);
    return type ? pictureFile(output, value, type) : element("pre", { class: "try-text" }, elementText(value));
  });
  const rest = output.values.length - shown.length;
  return element("div", {}, ...shown, ...(rest > 0 ? [element("p", {}, `${rest} more elements: in the file below`)] : []));
}

function pictureFile(output, bytes, type) {
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  const picture = element("img", { src: url, alt: `Picture in ${output.name}`, class: "try-picture" });
  picture.addEventListener("load", () => URL.revokeObjectURL(url));
  return element("figure", {}, picture, download("Download the picture", `${output.name}.${type.slice(6)}`, () => new Blob([bytes], { type })));
}

function numbers(output) {
  const { low, high, mean, notFinite, finite } = summary(output);
  const facts = finite ? `least ${figure(low)}, greatest ${figure(high)}, mean ${figure(mean)}` : "no finite element";
  const first = Array.from(output.values.slice(0, FIRST_VALUES), (value) => digits(output.datatype, value));
  const more = output.values.length > first.length ? ", …" : "";
  return element(
    "div",
    {},
    element("p", {}, `${output.values.length} elements: ${facts}${notFinite ? `, ${notFinite} not finite` : ""}`),
    element("pre", { class: "try-text", tabindex: 0 }, `${first.join(", ")}${more}`),
  );
}

function value(output) {
  return element("p", { class: "try-value" }, digits(output.datatype, output.values[0]));
}

/** The layout of a tensor that may be a picture, whatever its values. */
function pictureLayout({ shape, datatype, values }) {
  const layout = TYPES[datatype] && !TYPES[datatype].isBool ? guessLayout(shape) : null;
  const pixels = layout ? shape[axes(layout).height] * shape[axes(layout).width] : 0;
  return layout && values.length && pixels <= MOST_PIXELS ? layout : null;
}

function picture(output) {
  const layout = pictureLayout(output);
  const { low, high } = summary(output);
  const guessed = guessRange(output.datatype, summary(output));
  const ranges = [[0, 1], [-1, 1], [0, 255], [low, high]];
  const names = ranges.map(([a, b], at) => [at, at < 3 ? `${a} to ${b}` : `least to greatest: ${figure(a)} to ${figure(b)}`]);
  const range = choice("range", names, String(guessed ? ranges.findIndex(([a, b]) => a === guessed[0] && b === guessed[1]) : 3));
  const batch = axes(layout).batch < 0 ? 1 : Math.min(MOST_PICTURES, output.shape[0]);
  const index = choice("picture", Array.from({ length: batch }, (_, at) => [at, at]), "0");
  const place = element("div", {});
  const draw = () => {
    const [from, to] = ranges[range.value];
    const canvas = drawn(toPixels(output, layout, [from, to === from ? from + 1 : to], Number(index.value)), `${output.name} as a picture`);
    canvas.className = "try-picture";
    place.replaceChildren(canvas, download("Download as PNG", `${output.name}.png`, () => new Promise((done) => canvas.toBlob(done))));
  };
  [range, index].forEach((list) => list.addEventListener("change", draw));
  draw();
  return element("div", {}, place, element("div", { class: "try-panel" }, labelled("Values from and to", range), ...(batch > 1 ? [labelled("Picture", index)] : [])));
}

function isProbabilities(row) {
  const sum = row.reduce((all, value) => all + value, 0);
  return row.length > 1 && row.every((value) => value >= 0) && Math.abs(sum - 1) < 0.01;
}

const VIEWS = { labels: ["Classes", labelBars], scores: ["Classes by score", scoreBars], picture: ["Picture", picture], chart: ["Curve", chart], table: ["Table", matrix], text: ["Text", texts], numbers: ["Numbers", numbers], value: ["Value", value] };

/** The views that fit an output, the likeliest first. */
export function viewsOf(output) {
  const { datatype, shape, values, name } = output;
  if (datatype === "BYTES") return [...(classes(output) ? ["labels"] : []), "text", ...(values.length > 1 ? ["table"] : [])];
  if (values.length === 1) return ["value"];
  if (TYPES[datatype].isBool || !values.length) return ["table", "numbers"];
  const wide = shape[shape.length - 1] ?? 1;
  const rest = count(shape.slice(0, -1));
  const isScores = TYPES[datatype].isFloat && wide > 1 && wide <= MOST_CLASSES && rest <= MOST_ROWS;
  const looksLikeScores = isScores && (rowsOf(output).every(isProbabilities) || /logit|prob|score|class/i.test(name));
  const layout = pictureLayout(output);
  const looksLikePicture = layout && layout !== "HW" && guessRange(datatype, summary(output));
  const isLong = rest === 1 && wide > MOST_COLUMNS;
  const isSmall = rest <= MOST_ROWS && wide <= MOST_COLUMNS;
  const first = [looksLikeScores && "scores", looksLikePicture && "picture", isLong && "chart", isSmall && "table", "numbers"];
  return [...new Set([...first, isScores && "scores", layout && "picture", values.length > 1 && "chart", "table"])].filter(Boolean);
}

/** Draws one view of an output. */
export function view(name, output) {
  return VIEWS[name][1](output);
}

/** What people call a view. */
export function viewLabel(name) {
  return VIEWS[name][0];
}
