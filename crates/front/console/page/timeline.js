// Requests over time: a bar for each, and one for each step and call below it, all on the same axis. The console and the page of
// `galatea trace` draw with it. Times are in nanoseconds, and `write` writes them.

import { axis, horizontalAxis, legend, line, picture, rectangle, shortened, words } from "./charts.js";
import { element, svg } from "./dom.js";
import { Scale } from "./scale.js";

const [ROW_LABEL_SIZE, ROW_INDENT, ROW_TOTAL_WIDTH, ROWS_TOP] = [11.5, 12, 70, 8];
/** Deeper rows are not indented further. */
const MOST_INDENTS = 6;
/** What is shorter than this many pixels is drawn as long as this. */
const LEAST_WIDTH = 1;

/** What a span is, and the class that colours it; in the order of the legend. */
const SPANS = {
  receive: ["part-receive", "reading the request from the network"],
  queue: ["part-queue", "waiting for an instance"],
  input: ["part-input", "preparing the inputs"],
  compute: ["part-infer", "running the model"],
  output: ["part-output", "making the outputs"],
  steps: ["part-steps", "running steps of an ensemble"],
  send: ["part-send", "writing the response to the network"],
  other: ["part-network", "decoding, encoding and all else"],
};

/** The class that colours a span. */
export const kindOf = (span) => SPANS[span][0];
/** A model with its version. */
export const nameOf = ({ model, name = model, version }) => `${name ?? "(no model)"}${version ? `, version ${version}` : ""}`;
/** The spans that occur in some rows, in the order of the legend. */
export const spansOf = (rows) => Object.keys(SPANS).filter((span) => rows.some(({ pieces }) => pieces.some((piece) => piece.span === span)));
/** The time of a row in one span. */
export const timeIn = ({ pieces }, span) => pieces.filter((piece) => piece.span === span).reduce((sum, { from_ns, to_ns }) => sum + to_ns - from_ns, 0);

/** What the colours of some spans mean. */
export function legendOf(spans, isExplained = false) {
  const key = (span) => svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, rectangle(kindOf(span), 0, 0, 14, 14));
  const shown = Object.keys(SPANS).filter((span) => spans.includes(span));
  return legend(shown.map((span) => [key(span), isExplained ? element("span", {}, element("b", {}, span), ` ${SPANS[span][1]}`) : element("span", {}, span)]));
}

/** A bar without words, as wide as the page; the words above it and the table say the same. */
export function strip({ pieces }, longest, write) {
  const bars = pieces.map(({ span, from_ns, to_ns }) => {
    const left = ((from_ns - pieces[0].from_ns) / longest) * 1000;
    return rectangle(kindOf(span), left, 0, Math.max(1, ((to_ns - from_ns) / longest) * 1000), 10, `${span}: ${write(to_ns - from_ns)}`);
  });
  return svg("svg", { class: "strip", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" }, ...bars);
}

/** A request with its steps and calls, drawn for a wide page and for a narrow one. `most` rows are drawn at most. */
export function timelines(id, { rows: all, length_ns: length }, { most, write, writeTick }) {
  const rows = all.slice(0, most);
  const said = rows.map((row) => `${tipOf(row)}: ${write(row.total_ns)}, from ${write(row.from_ns)} on. `).join("");
  const title = `Trace ${rows[0].id} over time`;
  return [true, false].map((isWide) => timeline({ id, title, about: said, isWide }, { rows, length, write, writeTick }));
}

const tipOf = (row) => `${nameOf(row)}, trace ${row.id}`;

function timeline(caption, { rows, length, write, writeTick }) {
  const { isWide } = caption;
  const [width, pitch] = isWide ? [960, 24] : [340, 38];
  // On a phone a label is above its bar, so that both are long enough to read.
  const frame = { left: isWide ? 230 : 6, right: width - ROW_TOTAL_WIDTH, top: ROWS_TOP, bottom: ROWS_TOP + rows.length * pitch + 4 };
  const scale = Scale.fromZero([length / 1.05]).over(frame.left, frame.right);
  const times = axis("time since the request began", scale, isWide ? 6 : 3, writeTick);
  const grid = times.ticks.map(([value]) => line("grid", scale.position(value), frame.top, scale.position(value), frame.bottom));
  const bars = rows.flatMap((row, at) => timelineRow(row, { isWide, frame, scale, write, top: ROWS_TOP + at * pitch, pitch }));
  return picture(caption, [width, frame.bottom + 48], ...grid, ...bars, ...horizontalAxis(frame, times));
}

function timelineRow(row, { isWide, frame, scale, write, top, pitch }) {
  const indent = 4 + ROW_INDENT * Math.min(row.depth, MOST_INDENTS);
  const kind = row.depth ? "bar-label step" : "bar-label";
  const [labelTop, barTop, height] = isWide ? [top + pitch / 2 + 4, top + 4, pitch - 8] : [top + 13, top + 18, 14];
  const room = isWide ? frame.left - indent - 8 : frame.right - indent;
  const label = words(kind, indent, labelTop, shortened(row.model ?? "(no model)", ROW_LABEL_SIZE, room));
  label.setAttribute("data-tip", tipOf(row));
  const pieces = row.pieces.map(({ span, from_ns: from, to_ns: to }) => {
    const [left, right] = [scale.position(from), scale.position(to)];
    const tip = `${tipOf(row)}\n${span}: ${write(to - from)}, from ${write(from)} to ${write(to)}`;
    return rectangle(kindOf(span), left, barTop, Math.max(LEAST_WIDTH, right - left), height, tip);
  });
  const total = words("total", scale.position(row.from_ns + row.total_ns) + 6, barTop + height / 2 + 4, write(row.total_ns));
  return [label, ...pieces, total];
}
