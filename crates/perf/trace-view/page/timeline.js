// One request over time: a bar for it, and one for each step and call below it, all on the same axis.

import { axis, horizontalAxis, line, picture, rectangle, shortened, words } from "./charts.js";
import { duration, tickDuration } from "./numbers.js";
import { Scale } from "./scale.js";

const [ROW_LABEL_SIZE, ROW_INDENT, ROW_TOTAL_WIDTH, ROWS_TOP] = [11.5, 12, 70, 8];
/** Deeper rows are not indented further. */
const MOST_INDENTS = 6;
/** What is shorter than this many pixels is drawn as long as this. */
const LEAST_WIDTH = 1;

/** In microseconds: a page writes times that are given so. */
export const us = (ns) => ns / 1000;

/** `rows` have a label, a name for tips, a depth, `from` and `to`, and pieces of a kind, a name, `from` and `to`: in microseconds. */
export function timeline(caption, { rows, length }) {
  const { isWide } = caption;
  const [width, pitch] = isWide ? [960, 24] : [340, 38];
  // On a phone a label is above its bar, so that both are long enough to read.
  const frame = { left: isWide ? 230 : 6, right: width - ROW_TOTAL_WIDTH, top: ROWS_TOP, bottom: ROWS_TOP + rows.length * pitch + 4 };
  const scale = Scale.fromZero([length / 1.05]).over(frame.left, frame.right);
  const times = axis("time since the request began", scale, isWide ? 6 : 3, tickDuration);
  const grid = times.ticks.map(([value]) => line("grid", scale.position(value), frame.top, scale.position(value), frame.bottom));
  const bars = rows.flatMap((row, at) => timelineRow(row, { isWide, frame, scale, top: ROWS_TOP + at * pitch, pitch }));
  return picture(caption, [width, frame.bottom + 48], ...grid, ...bars, ...horizontalAxis(frame, times));
}

function timelineRow(row, { isWide, frame, scale, top, pitch }) {
  const indent = 4 + ROW_INDENT * Math.min(row.depth, MOST_INDENTS);
  const kind = row.depth ? "bar-label step" : "bar-label";
  const [labelTop, barTop, height] = isWide ? [top + pitch / 2 + 4, top + 4, pitch - 8] : [top + 13, top + 18, 14];
  const room = isWide ? frame.left - indent - 8 : frame.right - indent;
  const label = words(kind, indent, labelTop, shortened(row.label, ROW_LABEL_SIZE, room));
  label.setAttribute("data-tip", row.name);
  const pieces = row.pieces.map(({ kind, name, from, to }) => {
    const [left, right] = [scale.position(from), scale.position(to)];
    const tip = `${row.name}\n${name}: ${duration(to - from)}, from ${duration(from)} to ${duration(to)}`;
    return rectangle(kind, left, barTop, Math.max(LEAST_WIDTH, right - left), height, tip);
  });
  const total = words("total", scale.position(row.to) + 6, barTop + height / 2 + 4, duration(row.to - row.from));
  return [label, ...pieces, total];
}
