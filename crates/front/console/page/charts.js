// Charts, drawn as SVG: the parts that every chart is made of, and whole charts with axes. The console and the report of the load tool
// draw with them.

import { element, svg } from "./dom.js";
import { Scale } from "./scale.js";

/** Size of text in charts, see the style sheets. */
const [TICK_SIZE, LABEL_SIZE] = [11.5, 11];

/** A coordinate or a length: a tenth of a pixel is enough. */
export const px = (value) => (Number.isFinite(value) ? Math.round(value * 10) / 10 + 0 : 0);

/** Straight lines from place to place, `[x, y]` each; `null` is a gap. */
export function polyline(places) {
  return places.map((place, at) => place && `${at && places[at - 1] ? "L" : "M"}${px(place[0])} ${px(place[1])}`).join("");
}

/** Where each of some lengths begins when one follows the other. */
export function stacked(lengths) {
  return lengths.map((_, at) => lengths.slice(0, at).reduce((sum, length) => sum + length, 0));
}

/** What the lines of a chart mean: an entry is its key and what is written behind it. */
export function legend(entries) {
  return element("ul", { class: "legend" }, ...entries.map((parts) => element("li", {}, ...parts)));
}

/** About the width of a text, on the safe side: no fonts are asked here. */
export function textWidth(text, size) {
  const em = (character) => {
    if (character >= "\u1100") return 1.05;
    if ("mwMW@%".includes(character)) return 0.95;
    if (character >= "A" && character <= "Z") return 0.72;
    return "ijl.,:'| \u00a0".includes(character) ? 0.36 : 0.62;
  };
  return [...text].reduce((width, character) => width + em(character), 0) * size;
}

/** The text, or its beginning and end with an ellipsis between where it would be too wide. */
export function shortened(text, size, width) {
  if (textWidth(text, size) <= width) return text;
  const characters = [...text];
  for (let keep = characters.length - 1; keep > 0; keep -= 1) {
    const tail = Math.floor(keep / 3);
    const cut = `${characters.slice(0, keep - tail).join("")}…${characters.slice(characters.length - tail).join("")}`;
    if (textWidth(cut, size) <= width) return cut;
  }
  return "…";
}

// --- looks: a colour, and for those who do not see it a marker and a dash

const COLOURS = 6;
const DASHES = ["none", "8 4", "2 3", "10 3 2 3", "14 4", "5 2 1 2"];
const MARKERS = [
  null, // a circle
  [[-3.6, -3.6], [3.6, -3.6], [3.6, 3.6], [-3.6, 3.6]],
  [[0, -4.8], [4.6, 3.4], [-4.6, 3.4]],
  [[0, -5.2], [5.2, 0], [0, 5.2], [-5.2, 0]],
  [[0, 4.8], [4.6, -3.4], [-4.6, -3.4]],
  [[-1.6, -4.8], [1.6, -4.8], [1.6, -1.6], [4.8, -1.6], [4.8, 1.6], [1.6, 1.6], [1.6, 4.8], [-1.6, 4.8], [-1.6, 1.6], [-4.8, 1.6], [-4.8, -1.6], [-1.6, -1.6]],
];

/** Colours come again after six, then with other markers and dashes. */
export function lookOf(at) {
  const shifted = (at + Math.floor(at / COLOURS)) % COLOURS;
  return { kind: `run${at % COLOURS}`, marker: shifted, dash: DASHES[shifted], isHollow: Math.floor(at / COLOURS) % 2 === 1 };
}

/** Of an ordered row of lines: the first are pale, the last strong. */
export function rankedLook(rank, of) {
  const colour = of > 1 ? Math.floor((rank * (COLOURS - 1)) / (of - 1)) : COLOURS / 2;
  return { kind: `pct${colour}`, marker: rank % COLOURS, dash: "none", isHollow: false };
}

export const dashed = (look) => ({ ...look, dash: "5 4", isHollow: true });

function markerAt({ marker, isHollow }, x, y) {
  const kind = isHollow ? "marker hollow" : "marker";
  const corners = MARKERS[marker];
  if (!corners) return svg("circle", { class: kind, cx: px(x), cy: px(y), r: 4 });
  return svg("path", { class: kind, d: `${polyline(corners.map(([dx, dy]) => [x + dx, y + dy]))}Z` });
}

/** A piece of line with its marker, for a legend. */
export function sample(look) {
  const line = svg("path", { class: "line", d: "M1 7H35", "stroke-dasharray": look.dash });
  return svg("svg", { class: `sample ${look.kind}`, width: 36, height: 14, "aria-hidden": "true" }, line, markerAt(look, 18, 7));
}

// --- parts of charts

export const line = (kind, x1, y1, x2, y2) => svg("line", { class: kind, x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2) });
export const words = (kind, x, y, text) => svg("text", { class: kind, x: px(x), y: px(y) }, text);
/** `tip` is shown to who points there. */
export const rectangle = (kind, x, y, width, height, tip) => svg("rect", { class: kind, x: px(x), y: px(y), width: px(Math.max(0, width)), height: px(Math.max(0, height)), ...(tip && { "data-tip": tip }) });

/**
 * A chart as wide as there is room, named and described for those who do not see it. Every chart is drawn twice, and the style sheet
 * shows one of them: text of a chart that is only scaled down to the width of a phone cannot be read.
 */
export function picture({ id, title, about, isWide }, [width, height], ...children) {
  const name = `${id}${isWide ? "" : "-narrow"}`;
  const attributes = { class: `chart ${isWide ? "for-wide" : "for-narrow"}`, viewBox: `0 0 ${px(width)} ${px(height)}`, role: "img" };
  const said = [svg("title", { id: `${name}-title` }, title), svg("desc", { id: `${name}-about` }, about)];
  return svg("svg", { ...attributes, "aria-labelledby": `${name}-title ${name}-about` }, ...said, ...children);
}

/** An axis with round ticks, about as many as requested. */
export function axis(title, scale, about, write) {
  return { title, scale, ticks: scale.ticks(about).map((value) => [value, write(value)]) };
}

/** An axis with ticks at exactly these values, as many as there is room for. */
export function axisAt(title, scale, values, write) {
  return { title, scale, ticks: values.map((value) => [value, write(value)]) };
}

/** Leaves out labels of a horizontal axis that would touch the one before; the last is always there. */
export function thinnedTicks({ scale, ticks }) {
  const kept = [];
  ticks.forEach(([value, label], number) => {
    const [at, half] = [scale.position(value), textWidth(label, TICK_SIZE) / 2];
    const touches = () => kept.length && at - half < kept.at(-1).at + kept.at(-1).half + 8;
    while (number === ticks.length - 1 && touches()) kept.pop();
    if (!touches()) kept.push({ at, half, label });
  });
  return kept;
}

export function horizontalAxis({ left, right, bottom }, axis) {
  const ticks = thinnedTicks(axis).flatMap(({ at, label }) => [line("base", at, bottom, at, bottom + 5), words("tick middle", at, bottom + 19, label)]);
  return [line("base", left, bottom, right, bottom), ...ticks, words("axis-title end", right, bottom + 38, axis.title)];
}

function verticalAxis({ left, right, top }, axis) {
  const ticks = axis.ticks.flatMap(([value, label]) => {
    const y = axis.scale.position(value);
    return [line("grid", left, y, right, y), words("tick end", left - 8, y + 4, label)];
  });
  // The title is above the axis, not beside it: sideways text is hard to read.
  return [...ticks, words("axis-title", 4, top - 14, axis.title)];
}

// --- lines with markers, error bars, and labels that do not overlap

/**
 * `series` have a look, a name that is written at the end of the line, and marks: `at` in values, `xInterval` and `yInterval` for error
 * bars, a `label` that is written where there is room, and a `tip`.
 */
export function lineChart(caption, { size, x, y, series }) {
  const [width, height] = size;
  const labels = Math.max(0, ...y.ticks.map(([, label]) => textWidth(label, TICK_SIZE))) + 10;
  const names = Math.max(0, ...series.map(({ name }) => textWidth(name, TICK_SIZE)));
  const frame = { left: Math.max(34, labels), top: 34, right: width - names - 28, bottom: height - 46 };
  const plot = { frame, x: { ...x, scale: x.scale.over(frame.left, frame.right) }, y: { ...y, scale: y.scale.over(frame.bottom, frame.top) } };
  const place = ([x, y]) => [plot.x.scale.position(x), plot.y.scale.position(y)];
  const drawn = series.map((one) => ({ ...one, marks: one.marks.map((mark) => placed(mark, place)) }));
  const lines = drawn.filter(({ marks }) => marks.length > 1).map(({ look, marks }) =>
    svg("path", { class: `line ${look.kind}`, d: polyline(marks.map(({ spot }) => spot)), "stroke-dasharray": look.dash }));
  const markers = drawn.map(({ look, marks }) => svg("g", { class: look.kind }, ...marks.map((mark) => markWithBars(look, mark))));
  const axes = svg("g", { class: "axes" }, ...verticalAxis(frame, plot.y), ...horizontalAxis(frame, plot.x));
  return picture(caption, size, axes, ...lines, ...markers, ...endNames(frame, drawn), ...labelsWithRoom(frame, drawn));
}

/** A mark with its place and the ends of its error bars in pixels. */
function placed(mark, place) {
  const spot = place(mark.at);
  const across = mark.xInterval?.map((value) => place([value, mark.at[1]])[0]);
  const along = mark.yInterval?.map((value) => place([mark.at[0], value])[1]);
  return { ...mark, spot, across, along };
}

function markWithBars(look, { spot: [x, y], across, along, tip }) {
  const bars = [];
  if (across) bars.push(line("error", across[0], y, across[1], y), ...across.map((end) => line("error", end, y - 3, end, y + 3)));
  if (along) bars.push(line("error", x, along[0], x, along[1]), ...along.map((end) => line("error", x - 3, end, x + 3, end)));
  return svg("g", { class: "mark", "data-tip": tip }, ...bars, markerAt(look, x, y));
}

/** Names at the ends of lines, pushed apart where lines end close to each other. */
function endNames({ bottom }, series) {
  const ends = series.filter(({ name, marks }) => name && marks.length).map(({ name, look, marks }) => ({ name, look, spot: marks.at(-1).spot }));
  ends.sort((a, b) => a.spot[1] - b.spot[1]);
  const free = apart(ends.map(({ spot }) => spot[1]), 13, bottom);
  return ends.map(({ name, look, spot }, at) => words(`end-label ${look.kind}`, spot[0] + 10, free[at] + 4, name));
}

/** Ascending positions moved so that neighbours are `distance` apart and none is beyond `end`. */
export function apart(wanted, distance, end) {
  const free = [];
  for (const y of wanted) free.push(free.length ? Math.max(y, free.at(-1) + distance) : y);
  let limit = end;
  for (let at = free.length - 1; at >= 0; at -= 1) {
    free[at] = Math.min(free[at], limit);
    limit = free[at] - distance;
  }
  return free;
}

const around = ([x, y], half, high) => ({ left: x - half, right: x + half, top: y - high, bottom: y + high });
const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const holds = (box, [x, y]) => box.left < x && x < box.right && box.top < y && y < box.bottom;

/** The marker and its error bars. */
function outlines({ spot: [x, y], across, along }) {
  const [left, right] = across ?? [x, x];
  const [bottom, top] = along ?? [y, y];
  return [around([x, y], 4.5, 4.5), { left, right, top: y - 3, bottom: y + 3 }, { left: x - 3, right: x + 3, top, bottom }];
}

/** Places every few pixels along the lines. */
function alongLines(series) {
  return series.flatMap(({ marks }) => marks.slice(1).flatMap(({ spot: b }, before) => {
    const a = marks[before].spot;
    const steps = Math.max(1, Math.ceil(Math.hypot(b[0] - a[0], b[1] - a[1]) / 4));
    return Array.from({ length: steps }, (_, at) => [a[0] + ((b[0] - a[0]) * at) / steps, a[1] + ((b[1] - a[1]) * at) / steps]);
  }));
}

/** Labels beside their marks. Those for which there is no room are left out: the tip and the table have them. */
function labelsWithRoom(frame, series) {
  const taken = series.flatMap(({ marks }) => marks.flatMap(outlines));
  const lines = alongLines(series);
  const labelled = series.flatMap(({ look, marks }) => marks.map((mark, at) => ({ look, mark, isBetween: at > 0 && at < marks.length - 1 })));
  // The ends of a line show where it goes, so they choose their place first.
  const inOrder = [false, true].flatMap((isBetween) => labelled.filter((one) => one.mark.label && one.isBetween === isBetween));
  return inOrder.flatMap(({ look, mark }) => {
    const found = roomFor(frame, mark, taken, lines);
    if (!found) return [];
    taken.push({ ...found.box, left: found.box.left - 3, right: found.box.right + 3 });
    return [words(`label middle ${look.kind}`, found.spot[0], found.spot[1] + 4, mark.label)];
  });
}

/** The first place where the label covers nothing; one where it only covers a line if there is no better. */
function roomFor(frame, mark, taken, lines) {
  const [x, y] = mark.spot;
  const [marker, across, along] = outlines(mark);
  const half = textWidth(mark.label, LABEL_SIZE) / 2;
  const [left, right] = [Math.min(marker.left, across.left) - half - 4, Math.max(marker.right, across.right) + half + 4];
  const [above, below] = [Math.min(marker.top, along.top) - 8, Math.max(marker.bottom, along.bottom) + 8];
  const isInside = ({ left, right, top, bottom }) => left >= frame.left && right <= frame.right + 12 && top >= frame.top - 14 && bottom <= frame.bottom;
  const free = [[x, above], [left, y - 7], [right, y], [x, below], [left, y], [right, y + 10]]
    .map((spot) => ({ spot, box: around(spot, half, 5.5) }))
    .filter(({ box }) => isInside(box) && !taken.some((other) => meets(other, box)));
  return free.find(({ box }) => !lines.some((spot) => holds(box, spot))) ?? free[0];
}

// --- bars of what a time is made of: to scale at the left, as shares at the right

const [SHARE_WIDTH, TOTAL_WIDTH, INDENT, BARS_TOP] = [230, 74, 14, 10];

/**
 * `bars` have a label, a name for tips, a depth (zero, and more for what is inside the bar before) and segments of a kind, a name and a
 * value. The scale reaches to `longest`, so that several charts can be compared; `write(value)` and `writeTick(value)` write values.
 */
export function barChart(caption, { title, bars, scale, write, writeTick }) {
  const layout = barLayout(caption.isWide, bars, axis(title, scale, caption.isWide ? 6 : 2, writeTick));
  const { width, frame, axes } = layout;
  const drawnAxes = axes.flatMap(({ frame, axis }) => [
    ...axis.ticks.map(([value]) => line("grid", axis.scale.position(value), frame.top - 4, axis.scale.position(value), frame.bottom)),
    ...horizontalAxis(frame, axis),
  ]);
  return picture(caption, [width, frame.bottom + 48], svg("g", { class: "axes" }, ...drawnAxes), ...bars.flatMap((bar, at) => drawnBar(layout, bar, layout.tops[at], write)));
}

/** Where everything is: the frames with their axes (the shares only where there is room), and where each bar begins. */
function barLayout(isWide, bars, times) {
  const hasSteps = bars.some(({ depth }) => depth > 0);
  const pitch = hasSteps ? 21 : bars.length > 24 ? 19 : 26;
  const space = hasSteps ? 10 : 0;
  let end = BARS_TOP - space;
  const tops = bars.map(({ depth }) => {
    const top = end + (depth ? 0 : space);
    end = top + pitch;
    return top;
  });
  const widest = Math.max(0, ...bars.map(({ label, depth }) => textWidth(label, TICK_SIZE) + INDENT * depth));
  const [width, shareLeft] = isWide ? [960, 960 - SHARE_WIDTH - 24] : [340, 340];
  const frame = { left: Math.min(Math.max(widest, 40), isWide ? 230 : 118) + 14, top: BARS_TOP, right: shareLeft - TOTAL_WIDTH, bottom: end + 3 };
  const axes = [{ frame, axis: { ...times, scale: times.scale.over(frame.left, frame.right) } }];
  if (isWide) {
    const beside = { ...frame, left: shareLeft, right: shareLeft + SHARE_WIDTH };
    const ticks = [0, 20, 40, 60, 80, 100].map((percent) => [percent / 100, `${percent} %`]);
    axes.push({ frame: beside, axis: { title: "share", scale: new Scale(0, 1).over(beside.left, beside.right), ticks } });
  }
  return { width, frame, axes, pitch, space, tops };
}

function drawnBar({ width, frame, axes, pitch, space, tops }, bar, top, write) {
  const height = pitch - (bar.depth ? 9 : 5);
  const [y, middle] = [top + (pitch - height) / 2, top + pitch / 2 + 4];
  const nodes = [];
  if (!bar.depth && top > frame.top && tops.length > 1) nodes.push(line("separator", 4, top - space / 2, width - 24, top - space / 2));
  const indent = 4 + INDENT * bar.depth;
  const label = words(bar.depth ? "bar-label step" : "bar-label", indent, middle, shortened(bar.label, TICK_SIZE, frame.left - indent - 8));
  label.setAttribute("data-tip", bar.name);
  nodes.push(label);
  const segments = bar.segments.filter(({ value }) => value > 0);
  const total = segments.reduce((sum, { value }) => sum + value, 0);
  const begins = stacked(segments.map(({ value }) => value));
  segments.forEach(({ kind, name, value }, at) => {
    const tip = `${bar.name}\n${name}: ${write(value)}, ${((value / total) * 100).toFixed(1)} %`;
    axes.forEach(({ axis: { scale } }, number) => {
      const whole = number ? total : 1;
      const x = scale.position(begins[at] / whole);
      const wide = scale.position((begins[at] + value) / whole) - x;
      // A gap before the next one, unless nothing would be left of it.
      nodes.push(rectangle(kind, x, y, wide - (wide > 3 ? 1 : 0), height, tip));
      // The share is written where it fits into the segment.
      if (number && wide > 31 && height > 10) nodes.push(words(`inside middle on-${kind}`, x + wide / 2, middle, `${((value / total) * 100).toFixed(0)} %`));
    });
  });
  nodes.push(words("total", axes[0].axis.scale.position(total) + 6, middle, write(total)));
  return nodes;
}
