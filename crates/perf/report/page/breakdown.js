// Where the time goes: client, network, queue and compute, for each step of an ensemble too.

import { barChart, legend, rectangle, shortened } from "./charts.js";
import { element, svg } from "./dom.js";
import { DEEPEST, amount, batchSize, highest, loadCell, loadName, loadOf, pointsOf } from "./figures.js";
import { count, duration, tickDuration, unitOfTable } from "./numbers.js";
import { Scale } from "./scale.js";
import { numbersBelow, without } from "./tables.js";

/** More than this cannot be read. */
const MOST_BARS = 60;

/** What a part of the time is called, and the class that colours it; in the order of the bars. */
const PARTS = {
  send: ["client send", "part-send"],
  wait: ["wait for the response", "part-wait"], // all of it, where the server gives no times
  network: ["network + overhead", "part-network"],
  queue: ["queue", "part-queue"],
  input: ["compute input", "part-input"],
  infer: ["compute infer", "part-infer"],
  output: ["compute output", "part-output"],
  hit: ["cache hit", "part-hit"],
  miss: ["cache miss", "part-miss"],
  overlapping: ["steps, overlapping", "part-overlapping"], // they ran at the same time, so their times do not add up
  receive: ["client receive", "part-receive"],
};
const INSIDE = { queue: "queue_us", input: "compute_input_us", infer: "compute_infer_us", output: "compute_output_us", hit: "cache_hit_us", miss: "cache_miss_us" };
const segment = (part, value) => ({ part, name: PARTS[part][0], kind: PARTS[part][1], value });
const sumOf = (segments) => segments.reduce((sum, { value }) => sum + value, 0);

export function timeSection(runs, names) {
  const groups = runs.map((run) => pointsOf(run).map((point) => barsOf(run, point)));
  const bars = groups.flat(2);
  const scale = Scale.fromZero(bars.map(({ segments }) => sumOf(segments)));
  const about = "An average request from the client’s call to its return, to scale, with shares at the right if there is room.";
  const drawn = groups.flatMap((groups, at) => [
    ...(runs.length > 1 ? [element("h3", { class: `run${at % 6}` }, names[at])] : []),
    ...runBars(at, groups, names[at], scale),
  ]);
  const tables = runs.map((run, at) => timesTable(run, names[at]));
  return element("section", { id: "time" }, element("h2", {}, "Time by phase"), element("p", { class: "about" }, about), partsLegend(bars), ...drawn, ...numbersBelow(tables));
}

/** The parts that occur. */
function partsLegend(bars) {
  const occurring = new Set(bars.flatMap(({ segments }) => segments.filter(({ value }) => value > 0).map(({ part }) => part)));
  const key = (kind) => svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, rectangle(kind, 0, 0, 14, 14));
  return legend(Object.keys(PARTS).filter((part) => occurring.has(part)).map((part) => [key(PARTS[part][1]), element("span", {}, PARTS[part][0])]));
}

function runBars(at, groups, name, scale) {
  const kept = thinnedGroups(groups);
  const bars = kept.flat();
  if (!bars.length) return [element("p", { class: "nothing" }, "Nothing was measured.")];
  const about = bars.filter(({ depth }) => !depth).map(({ name, segments }) => `${name}: ${duration(sumOf(segments))}, most of it ${highest(segments, ({ value }) => value).name}. `).join("");
  const caption = { id: `time-${at}`, title: `Time by phase, ${name}`, about };
  const chart = { title: "time of a request", bars, scale, write: duration, writeTick: tickDuration };
  const more = kept.length < groups.length ? [element("p", { class: "about" }, `${kept.length} of ${groups.length} points are drawn; the table has all.`)] : [];
  return [...[true, false].map((isWide) => barChart({ ...caption, isWide }, chart)), ...more];
}

/** The bars of the points to draw: all, or the first, the last, and some evenly between. */
export function thinnedGroups(groups) {
  const bars = groups.flat().length;
  const most = Math.max(2, Math.floor(MOST_BARS / Math.max(1, ...groups.map((group) => group.length))));
  if (bars <= MOST_BARS || groups.length <= most) return groups;
  return Array.from({ length: most }, (_, at) => groups[Math.floor((at * (groups.length - 1)) / (most - 1))]);
}

/** The bar of a point, then those of the steps. */
function barsOf(run, point) {
  const load = loadOf(point);
  const segments = segmentsOf(point);
  if (!(sumOf(segments) > 0)) return [];
  return [{ label: load, name: `${run.model}, ${load}`, depth: 0, segments }, ...stepBars(point.server, 1, load)];
}

const stepsOf = (server, depth) => (depth <= DEEPEST ? (server?.composing ?? []) : []);

function stepBars(parent, depth, load) {
  return stepsOf(parent, depth).flatMap((step) => {
    const parts = insideOf(step);
    const rest = segment("network", Math.max(0, amount(step.request_us) - sumOf(parts)));
    const name = step.version ? `${step.model}, version ${step.version}, ${load}` : `${step.model}, ${load}`;
    return [{ label: step.model, name, depth, segments: [rest, ...parts] }, ...stepBars(step, depth + 1, load)];
  });
}

/** The client's view: send, what is neither client nor known to the server, the server's parts, receive. */
function segmentsOf({ client, latency, server }) {
  const [send, receive, waited] = [client.send_us, client.receive_us, client.response_wait_us].map(amount);
  // Streams have no times of the client: there the latency is all that is known.
  const wait = send + receive + waited > 0 ? waited : amount(latency.avg_us);
  return [segment("send", send), ...(server ? serverSegments(server, wait) : [segment("wait", wait)]), segment("receive", receive)];
}

export function serverSegments(server, wait) {
  let parts = insideOf(server);
  const request = amount(server.request_us);
  if (sumOf(parts) > Math.max(request, wait) && stepsOf(server, 1).length) parts = [segment("overlapping", request)];
  return [segment("network", Math.max(0, wait - sumOf(parts))), ...parts];
}

/** Parts of a model's request; those of an ensemble are the sums over its steps. */
function insideOf(server, depth = 0) {
  const own = Object.entries(INSIDE).map(([part, key]) => segment(part, amount(server[key])));
  if (own.some(({ value }) => value !== 0)) return own;
  // A step may run more than once, or not at all, in a request of the ensemble.
  const runsOf = (step) => (step.success_count && server.success_count ? step.success_count / server.success_count : 1);
  const steps = stepsOf(server, depth).map((step) => [insideOf(step, depth + 1), runsOf(step)]);
  return own.map((one, at) => segment(one.part, steps.reduce((sum, [parts, runs]) => sum + parts[at].value * runs, 0)));
}

// --- the same in numbers

/** A row for each point, then one for each step of it. */
function timesTable(run, name) {
  const points = pointsOf(run);
  const unit = unitOfTable(points.flatMap((point) => [point.latency.avg_us, point.client.response_wait_us]));
  const rows = points.flatMap((point) => {
    const { client, server } = point;
    const times = [client.send_us, client.response_wait_us, client.receive_us].map(unit.write);
    const model = server ? shortened(server.model, 1, 30) : "–";
    return [{ kind: "point", cells: [loadCell(points, point), model, ...times, ...(server ? serverCells(server, unit) : Array(11).fill("–"))] }, ...stepRows(server, 1, unit)];
  });
  const head = [loadName(points), "Model", "Send", "Wait", "Receive", "Request", "Queue", "Input", "Infer", "Output", "Cache hit", "Cache miss", "Requests", "Inferences", "Executions", "Batch"];
  const isAnywhere = (server, key, depth) => amount(server?.[key]) > 0 || stepsOf(server, depth + 1).some((step) => isAnywhere(step, key, depth + 1));
  const empty = [["Cache hit", "cache_hit_us"], ["Cache miss", "cache_miss_us"]].filter(([, key]) => !points.some(({ server }) => isAnywhere(server, key, 0)));
  return without({ caption: `${name}: average times in ${unit.name}`, head, rows }, empty.map(([column]) => column));
}

function stepRows(parent, depth, unit) {
  return stepsOf(parent, depth).flatMap((step) => {
    const name = `${"\u2003".repeat(depth)}${shortened(step.model, 1, 30)}`;
    return [{ kind: "step", cells: ["", name, "", "", "", ...serverCells(step, unit)] }, ...stepRows(step, depth + 1, unit)];
  });
}

function serverCells(server, unit) {
  const times = [server.request_us, ...Object.values(INSIDE).map((key) => server[key])].map(unit.write);
  return [...times, ...[server.success_count, server.inference_count, server.execution_count].map(count), batchSize(server)];
}
