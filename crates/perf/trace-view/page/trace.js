// The page of traced requests: where their time goes by model, and the selected ones over time.

import { barChart, shortened } from "./charts.js";
import { element, printable } from "./dom.js";
import { count, duration, percent, tickDuration, unitOfTable } from "./numbers.js";
import { followPointer, openForPrint } from "./page.js";
import { Scale } from "./scale.js";
import { folded, numbersBelow } from "./tables.js";
import { kindOf, legendOf, nameOf, spansOf, strip, timeIn, timelines } from "./timeline.js";

/** More bars cannot be read. */
const [MOST_MODELS, MOST_ROWS] = [30, 60];

/** In microseconds: the functions that write times take those. */
const us = (ns) => ns / 1000;
const write = (ns) => duration(us(ns));
const writeTick = (ns) => tickDuration(us(ns));

const counted = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;

function headOf(report) {
  const facts = [
    ["Requests", count(report.request_count)],
    ...(report.step_count ? [["Steps and calls", count(report.step_count)]] : []),
    ["Traced for", duration(us(report.covered_ns))],
    ...(report.selection.model ? [["Only the model", report.selection.model]] : []),
    ...(report.selection.id ? [["Only the id", report.selection.id]] : []),
  ];
  const names = report.files.map((path) => path.split("/").at(-1));
  const files = names.length > 3 ? [...names.slice(0, 2), `${names.length - 2} more`] : names;
  const list = element("dl", { class: "facts" }, ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  return element("header", {}, element("p", { class: "kicker" }, "Traced requests"), element("h1", {}, files.join(", ")), list, ...warningsOf(report));
}

function warningsOf({ problem_count: all, problems }) {
  if (!all) return [];
  const more = all > problems.length ? [`${count(all - problems.length)} more`] : [];
  const items = [...problems, ...more].map((problem) => element("li", {}, problem));
  return [element("div", { class: "warnings" }, element("h2", {}, all === 1 ? "One fault in the files" : `${count(all)} faults in the files`), element("ul", {}, ...items))];
}

// --- by model

function modelsSection({ models }) {
  const measured = models.filter(({ spans }) => spans.length);
  const bars = measured.slice(0, MOST_MODELS).map((model) => ({
    label: model.name ?? "(no model)",
    name: `${nameOf(model)}, ${counted(model.request_count, "request")}`,
    depth: 0,
    segments: model.spans.map(({ span, mean_ns }) => ({ kind: kindOf(span), name: span, value: us(mean_ns) })),
  }));
  const about = "An average request of each model, to scale. The model that took the most time is the first; steps and calls count as requests of their own models.";
  const section = (...drawn) => element("section", { id: "models" }, element("h2", {}, "Where the time goes"), element("p", { class: "about" }, about), ...drawn, ...numbersBelow(models.map(modelTable)));
  if (!bars.length) return section(element("p", { class: "nothing" }, "No request ended."));
  const sum = ({ segments }) => segments.reduce((sum, { value }) => sum + value, 0);
  const said = bars.map((bar) => `${bar.name}: ${duration(sum(bar))}. `).join("");
  const chart = { title: "time of a request", bars, scale: Scale.fromZero(bars.map(sum)), write: duration, writeTick: tickDuration };
  const drawn = [true, false].map((isWide) => barChart({ id: "models-chart", title: "Where the time goes by model", about: said, isWide }, chart));
  const more = measured.length > bars.length ? [element("p", { class: "about" }, `${bars.length} of ${measured.length} models are drawn; the table has all.`)] : [];
  const spans = measured.flatMap(({ spans }) => spans.map(({ span }) => span));
  return section(legendOf(spans, true), ...drawn, ...more);
}

/** A table for each model: few columns, so that a phone shows them all. */
function modelTable(model) {
  const unit = unitOfTable([us(model.total.mean_ns)]);
  const times = ({ mean_ns, p50_ns, p99_ns, max_ns }) => [mean_ns, p50_ns, p99_ns, max_ns].map((ns) => unit.write(us(ns)));
  const rows = model.spans.map((span) => ({ kind: "point", cells: [span.span, ...times(span), percent(span.share * 100)] }));
  const total = { kind: "best", cells: ["total", ...times(model.total), ""] };
  const caption = `${nameOf(model)}: ${[counted(model.request_count, "request"), ...outcomes(model)].join(", ")}; times in ${unit.name}`;
  return { caption, head: ["Span", "Mean", "p50", "p99", "Max", "Share"], rows: [...rows, total] };
}

function outcomes({ no_response_count, not_queued_count, unfinished_count }) {
  const parts = [[no_response_count, "without a response"], [not_queued_count, "refused before the queue"], [unfinished_count, "unfinished and not counted in the times"]];
  return parts.filter(([number]) => number).map(([number, what]) => `${count(number)} ${what}`);
}

// --- one by one

function requestsSection(report) {
  const { requests, selection } = report;
  const to = selection.model ? ` to ${selection.model}` : "";
  const slowest = requests.length === 1 ? `The slowest request${to}` : `The ${requests.length} slowest requests${to}`;
  const longest = requests.reduce((most, { length_ns }) => Math.max(most, length_ns), 1);
  const about = "The bar of each request is to the same scale. An opened request shows its steps and calls on a scale of its own.";
  const spans = spansOf(requests.flatMap(({ rows }) => rows));
  return element("section", { id: "requests" }, element("h2", {}, selection.id ? "Requests with this id" : slowest), element("p", { class: "about" }, about), legendOf(spans), ...requests.map((tree, at) => requestBox(tree, at, longest)));
}

function requestBox(tree, at, longest) {
  const [root] = tree.rows;
  const words = [
    element("span", { class: "rank" }, `${at + 1}.`), " ",
    element("b", { class: "time" }, write(root.total_ns)), " ",
    element("span", { class: "name" }, nameOf(root)), " ",
    element("span", { class: "more" }, factsOf(root)),
  ];
  const box = element("details", { class: "request" }, element("summary", {}, element("span", { class: "words" }, ...words), strip(root, longest, write)));
  // Only what is looked at is drawn: a page may have many requests.
  const fill = () => { if (box.open && box.childElementCount === 1) box.append(...insideOf(tree, at)); };
  box.addEventListener("toggle", fill);
  if (at === 0) box.open = true;
  fill();
  return box;
}

function factsOf({ id, request_id, protocol, outcome, responses, parent_id }) {
  const parts = [`trace ${id}`];
  if (request_id) parts.push(`request id ${request_id}`);
  if (protocol) parts.push(protocol);
  if (responses > 1) parts.push(`${count(responses)} responses`);
  if (outcome !== "answered") parts.push(outcome);
  if (parent_id !== null) parts.push(`part of trace ${parent_id}`);
  return parts.join(" · ");
}

function insideOf(tree, at) {
  const drawn = timelines(`request-${at}`, tree, { most: MOST_ROWS, write, writeTick });
  const hidden = Math.max(0, tree.rows.length - MOST_ROWS) + tree.omitted_count;
  const more = hidden ? [element("p", { class: "about" }, `${count(hidden)} more steps and calls below it are not drawn.`)] : [];
  const tables = [spansTable(tree), eventsTable(tree)];
  return [...drawn, ...more, ...folded("Numbers", tables)];
}

function spansTable({ rows }) {
  const unit = unitOfTable(rows.map(({ total_ns }) => us(total_ns)));
  const spans = spansOf(rows);
  const cells = (row) => [`${"\u2003".repeat(Math.min(row.depth, 8))}${shortened(nameOf(row), 1, 40)}`, String(row.id), unit.write(us(row.from_ns)), unit.write(us(row.total_ns)), ...spans.map((span) => unit.write(us(timeIn(row, span)))), row.outcome];
  return { caption: `Spans in ${unit.name}`, head: ["Model", "Trace", "Begins", "Total", ...spans, "Outcome"], rows: rows.map((row) => ({ kind: row.depth ? "step" : "point", cells: cells(row) })) };
}

function eventsTable({ rows }) {
  const unit = unitOfTable(rows.flatMap(({ events }) => events.map(({ at_ns }) => us(at_ns))));
  const lines = rows.flatMap((row) => row.events.map(({ name, at_ns }) => ({ kind: "point", cells: [`${shortened(row.model ?? "(no model)", 1, 40)}, trace ${row.id}`, name, unit.write(us(at_ns))] })));
  return { caption: `Events, times since the first in ${unit.name}`, head: ["Request", "Event", "At"], rows: lines };
}

const report = JSON.parse(document.getElementById("trace-data").textContent, printable);
document.title = `${(report.files[0] ?? "").split("/").at(-1)} – traced requests`;
document.querySelector("main").replaceChildren(headOf(report), modelsSection(report), requestsSection(report));
followPointer();
openForPrint();
