// What was measured, the key figures, the warnings; and at the end of the page where each run came from.

import { element } from "./dom.js";
import { bestOf, bestOfBoth, decidingOf, highest, loadOf, percentile, pointsOf, throughputInterval } from "./figures.js";
import { count, date, duration, durations, interval, number, percent, times, unitOf } from "./numbers.js";
import { figureTable } from "./tables.js";
import { evidenceOf, listed } from "./verdict.js";

const nothing = (text) => element("p", { class: "nothing" }, text);

export function headOf(runs, names) {
  const run = runs[0];
  if (!run) return element("header", {}, element("h1", {}, "No run"));
  // Word by word, so that lines break between options and not inside them.
  const command = run.command.split(" ").flatMap((word, at) => [at ? " " : "", element("span", {}, word)]);
  const facts = [["Server", serverOf(run)], ["Protocol", run.protocol], ["Model version", run.model_version || "latest"], ["Batch size", count(run.batch_size)], ...tensorsOf(run), ["Measured", date(run.started_at)]];
  return element(
    "header",
    {},
    element("p", { class: "kicker" }, "Load test"),
    element("h1", {}, run.model),
    element("dl", { class: "facts" }, ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    element("pre", { class: "command" }, element("code", {}, ...command)),
    ...warningsOf(runs, names),
    keyFigures(runs, names),
  );
}

function serverOf(run) {
  const reported = `${run.server_name} ${run.server_version}`.trim();
  const implementation = run.server_implementation ?? "";
  if (!implementation) return reported || "unknown";
  return `${reported} (${implementation})`;
}

/** The way of the tensors, and their bytes. */
function tensorsOf(run) {
  const bytes = run.tensor_bytes;
  if (!run.shared_memory || !bytes) return [];
  const way = run.shared_memory === "none" ? "through the socket" : `in shared memory (${run.shared_memory}), not through the socket`;
  const open = bytes.uncounted_outputs ?? [];
  const outputs = `${count(bytes.outputs_per_response)} bytes${open.length ? `, without ${open.join(", ")}` : ""}`;
  return [["Tensors", way], ["Inputs of a request", `${count(bytes.inputs_per_request)} bytes`], ["Outputs of a response", outputs]];
}

function warningsOf(runs, names) {
  const warnings = runs.flatMap((run, at) => (run.warnings ?? []).map((warning) => [...(runs.length > 1 ? [element("b", {}, `${names[at]}: `)] : []), warning.trim()]));
  if (!warnings.length) return [];
  const title = element("h2", {}, warnings.length === 1 ? "Warning" : "Warnings");
  return [element("div", { class: "warnings", role: "note" }, title, element("ul", {}, ...warnings.map((parts) => element("li", {}, ...parts))))];
}

/** Where each run came from. */
export function runsSection(runs, names) {
  if (runs.length < 2) return [];
  const head = ["Run", "Model", "Version", "Server", "Protocol", "Batch size", "Points", "Measured", "Command"];
  const rows = runs.map((run, at) => ({
    kind: "texts",
    cells: [names[at], run.model, run.model_version, serverOf(run), run.protocol, count(run.batch_size), count(run.points.length), date(run.started_at), { text: run.command, kind: "code" }],
  }));
  return [element("section", { id: "runs" }, element("h2", {}, "Runs"), figureTable({ caption: "All runs of this page", head, rows }))];
}

// --- key figures: a point is called the best, and a run faster than another, only where the confidence intervals do not overlap

function keyFigures(runs, names) {
  const [run, best] = [runs[0], bestOf(runs[0])];
  if (!best) return nothing("Nothing was measured.");
  const deciding = decidingOf(runs);
  const figures = [throughputFigure(run, best, runs, names), ...higherFigure(run, best), ...latencyFigure(run, best, deciding, "Latency at that load"), ...lowestFigure(run, best, deciding), toolFigure(best)];
  return element("dl", { class: "figures" }, ...figures.map(({ name, value, unit, notes }) => element(
    "div",
    {},
    element("dt", {}, name),
    element("dd", { class: "value" }, value, element("span", { class: "unit" }, ` ${unit}`)),
    ...notes.map((note) => element("dd", {}, note)),
  )));
}

/**
 * Whether a point is really the best of its run: `only` where there is no other, `clear` where its interval overlaps none, `tied` with
 * those that overlap, or `unknown` for lack of an interval. `note` says so.
 */
function rankOf(run, best, ends, write) {
  const others = pointsOf(run).filter((point) => point !== best);
  const with_ = (wanted) => others.filter((other) => evidenceOf(ends(best), ends(other)) === wanted);
  const tied = with_("overlapping");
  if (!others.length) return { rank: "only", notes: [] };
  if (tied.length) return { rank: "tied", notes: [`no difference shown from ${listed(tied, (other) => `${loadOf(other)} (95 % CI ${write(ends(other))})`)}`] };
  if (with_("missing").length) return { rank: "unknown", notes: ["not every load has a confidence interval to compare with"] };
  return { rank: "clear", notes: [] };
}

function throughputFigure(run, best, runs, names) {
  const ends = throughputInterval(best);
  const { rank, notes } = rankOf(run, best, throughputInterval, interval);
  // Of more than two runs the comparison has them.
  const both = runs.length === 2 ? bestOfBoth(...runs) : undefined;
  const name = () => {
    if (rank === "only") return "Throughput";
    // Others may be more, and did not become stable.
    if (unstableAbove(run, best)) return "Best stable throughput";
    return rank === "clear" ? "Best throughput" : "Highest throughput measured";
  };
  const ci = ends ? [`95 % CI ${interval(ends)}`] : [];
  return { name: name(), value: number(best.throughput), unit: "inferences/s", notes: [`at ${loadOf(best)}`, ...ci, ...notes, ...(both ? against(...both, names[1]) : [])] };
}

/** The unstable point with the highest throughput, where that is above the best stable one. */
function unstableAbove(run, best) {
  if (best.unstable) return undefined;
  return highest(pointsOf(run).filter((point) => point.unstable && point.throughput > best.throughput), (point) => point.throughput);
}

/**
 * The highest throughput that was measured, where that is more than the best stable one. It is no result, for a longer measurement may
 * show less; but who sees only the stable figure takes it for the most that the server does.
 */
function higherFigure(run, best) {
  const point = unstableAbove(run, best);
  if (!point) return [];
  const why = point.instability;
  const by = why?.throughput_percent;
  const differ = by > why?.allowed_percent ? `its windows differ by ${percent(by)}, ${percent(why.allowed_percent)} are allowed` : "its windows agree in throughput, not in latency";
  const notes = [`at ${loadOf(point)}`, ...(typeof by === "number" ? [differ] : []), "no result: measure it for longer (--measurement-interval)"];
  return [{ name: "Higher, but unstable", value: number(point.throughput), unit: "inferences/s", notes }];
}

/** The best of two runs. */
function against(ours, theirs, name) {
  const [a, b] = [ours, theirs].map(throughputInterval);
  const evidence = evidenceOf(a, b);
  if (evidence === "apart" && theirs.throughput > 0) return [`${times(ours.throughput / theirs.throughput)} the best of ${name}, at ${loadOf(theirs)}`];
  return evidence === "overlapping" ? [`no difference shown from the best of ${name}, at ${loadOf(theirs)} (95 % CI ${interval(b)})`] : [];
}

function latencyFigure(run, point, deciding, name, more = []) {
  const us = deciding.us(point);
  if (us === undefined) return [];
  const unit = unitOf(us);
  const ends = deciding.interval(run, point);
  const p99 = deciding.isP99 ? undefined : percentile(point.latency, "99");
  const ci = ends ? [`95 % CI ${interval(ends, unit.write)} ${unit.name}`] : [];
  return [{ name, value: unit.write(us), unit: unit.name, notes: [`${deciding.name} at ${loadOf(point)}`, ...ci, ...(p99 === undefined ? [] : [`p99 ${duration(p99)}`]), ...more] }];
}

function lowestFigure(run, best, deciding) {
  const known = pointsOf(run).filter((point) => Boolean(point.unstable) === Boolean(best.unstable) && deciding.us(point) !== undefined);
  const lowest = highest(known.reverse(), (point) => -deciding.us(point));
  if (!lowest || lowest === best) return [];
  const { rank, notes } = rankOf(run, lowest, (point) => deciding.interval(run, point), durations);
  return latencyFigure(run, lowest, deciding, rank === "clear" ? "Lowest latency" : "Lowest latency measured", notes);
}

/** Whether the tool itself may have been the limit. */
function toolFigure(best) {
  const notes = ["of its threads’ time at that load", `${duration(best.tool_cpu_us_per_request)} of CPU for each request`];
  return { name: "Load tool busy", value: percent(best.overhead_percent), unit: "", notes };
}
