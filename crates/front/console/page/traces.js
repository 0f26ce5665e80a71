// The last traced requests of a model: each with its times, and opened with its steps and calls over time.

import { announce } from "./connection.js";
import { button, element, printable, region, setChildren, setText, svg, table, text } from "./dom.js";
import { ask } from "./events.js";
import { clock, counted, duration, figure, moment } from "./format.js";
import { headers, refusal } from "./restricted.js";
import { known } from "./store.js";
import { legendOf, nameOf, spansOf, strip, timeIn, timelines } from "./timeline.js";

/** More bars cannot be read. */
const MOST_ROWS = 60;
/** What the button asks for. */
const WANTED = { trace_level: ["TIMESTAMPS"], trace_rate: "1", trace_count: "20" };
/** Settings that are given back. */
const NONE = { trace_level: null, trace_rate: null, trace_count: null, log_frequency: null };

const write = (ns) => duration(ns / 1e6);
const writeTick = (ns) => (ns ? write(ns) : "0");
const writeCell = (ns) => (ns ? write(ns) : "–");
const keyOf = (trace) => `${trace.rows[0].id} ${trace.finished_ms}`;

/** Which requests are traced, in a sentence. */
function sentence({ is_on: isOn, has_destination: hasPlace, trace_level: levels, trace_rate: rate, trace_count: count }) {
  if (!hasPlace) return "No request is traced: this server has no place for traces. Start it with --trace-config triton,file=PATH.";
  if (!isOn) return levels.includes("OFF") || count !== "0" ? "No request to this model is traced now." : "No request to this model is traced now: the count of traces is used up.";
  const which = rate === "1" ? "Every request to this model is traced" : `One in ${figure(Number(rate), 0)} requests to this model is traced`;
  const left = Number(count) < 0 ? "" : `, ${figure(Number(count), 0)} more`;
  const times = levels.includes("TIMESTAMPS") ? "" : " They have no times, and are not shown here: the level needs TIMESTAMPS.";
  return `${which}${left}.${times}`;
}

/** The settings: what they are, how to trace requests, and buttons for who may. */
function settingsOf(name, fitsPath, readAgain) {
  const said = element("p", {});
  const told = element("p", { class: "told", role: "status" });
  const start = button("Trace the next 20 requests", () => change(WANTED, "The next 20 requests are traced."));
  const follow = button("Follow the server's settings", () => change(NONE, "The model follows the server's settings."));
  const why = element("span", { class: "faint" });
  const command = element("pre", { tabindex: 0, role: "region", "aria-label": "Command" });
  const how = element("div", {}, element("p", { class: "faint" }, "A command that does so:"), command);
  const node = element("div", {}, said, element("div", { class: "tools" }, start, follow, why), told, how);
  const path = `v2/models/${name}/trace/setting`;
  setText(command, `curl -d '${JSON.stringify(WANTED)}' ${new URL(path, location.href).href}`);

  async function change(wanted, done) {
    told.classList.remove("bad");
    setText(told, "");
    try {
      await ask(path, { method: "POST", headers, body: JSON.stringify(wanted) });
      announce(done);
      readAgain();
    } catch (error) {
      told.classList.add("bad");
      setText(told, `The settings are not changed: ${error.message}`);
    }
  }
  function show(shown) {
    setText(said, sentence(shown));
    const may = shown.may_change && fitsPath;
    const canTrace = shown.has_destination && fitsPath;
    start.hidden = shown.is_on || !shown.may_change;
    start.disabled = !canTrace;
    follow.hidden = !shown.has_own_settings || !may;
    how.hidden = shown.is_on || !canTrace;
    setText(why, reasonOf(shown));
  }
  function reasonOf({ may_change: may, has_destination: hasPlace, has_own_settings: isOwn }) {
    if (!may) return "The role control may change the settings of traces. You do not have it.";
    if (!fitsPath) return "The model's name cannot be part of an address.";
    if (!hasPlace) return "The button works once traces have a file.";
    return isOwn ? "The model has settings of its own." : "";
  }
  return { node, show };
}

function factsOf(root, name) {
  const { id, request_id: requestId, protocol, responses, model } = root;
  const parts = [`trace ${id}`];
  if (protocol) parts.push(protocol);
  if (responses > 1) parts.push(counted(responses, "response"));
  if (model !== name) parts.push(`a request to ${nameOf(root)}`);
  const words = element("span", { class: "more" }, parts.join(" · "));
  return requestId ? [element("bdi", { class: "id" }, requestId), " ", words] : [words];
}

function outcomeOf({ outcome }) {
  const isGood = outcome === "answered";
  return element("span", isGood ? { class: "more" } : { class: "bad" }, outcome);
}

function spansTable({ rows }) {
  const spans = spansOf(rows);
  const columns = ["*Model", "Begins", "Total", ...spans, "*Outcome"];
  const cells = (row) => [text(`${"\u2003".repeat(Math.min(row.depth, 8))}${nameOf(row)}`), write(row.from_ns), write(row.total_ns), ...spans.map((span) => writeCell(timeIn(row, span))), text(row.outcome)];
  return region("Times", table("", columns, rows.slice(0, MOST_ROWS).map(cells)));
}

function insideOf(tree, id) {
  const drawn = timelines(id, tree, { most: MOST_ROWS, write, writeTick });
  // A browser shows these to who points there.
  drawn.forEach((one) => one.querySelectorAll("[data-tip]").forEach((mark) => mark.append(svg("title", {}, mark.getAttribute("data-tip")))));
  const hidden = Math.max(0, tree.rows.length - MOST_ROWS) + tree.omitted_count;
  const more = hidden ? [element("p", { class: "faint" }, `${figure(hidden, 0)} more steps and calls are not shown.`)] : [];
  return element("div", { class: "inside" }, legendOf(spansOf(tree.rows)), ...drawn, ...more, spansTable(tree));
}

function traceBox(tree, name, longest) {
  const [root] = tree.rows;
  const began = tree.finished_ms - tree.length_ns / 1e6;
  const when = element("time", { datetime: new Date(began).toISOString(), title: moment(began) }, clock(began));
  const words = element("span", { class: "words" }, when, " ", element("b", {}, write(root.total_ns)), " ", outcomeOf(root), " ", ...factsOf(root, name));
  const box = element("details", { class: "trace" }, element("summary", {}, words, strip(root, longest, write)));
  // Only what is looked at is drawn.
  box.addEventListener("toggle", () => {
    if (box.open && box.childElementCount === 1) box.append(insideOf(tree, `trace-${root.id}`));
  });
  return box;
}

/** The part of a model's page. It asks for traces when it is looked at, and again when there are new ones. */
export function tracesPart(name, fitsPath) {
  const problem = element("div", {});
  const settings = settingsOf(name, fitsPath, () => read());
  const [title, legend, list] = [element("h3", {}), element("div", {}), element("div", { class: "traces" })];
  const newer = element("div", { class: "tools" }, button("Show the newer traces", () => draw(waiting)));
  const about = element("p", { class: "faint" }, "The last 20, kept in the memory of the server only. Contents of tensors are never shown here: at the level TENSORS a file of traces has them.");
  const shown = element("div", {}, settings.node, title, newer, legend, list, about);
  const node = element("div", {}, problem, shown);
  const boxes = new Map();
  let [seen, waiting, isReading, isWanted, isRefused] = [-1, [], false, false, false];
  shown.hidden = newer.hidden = true;

  /** Rows move under nobody's pointer or keyboard. */
  const isInUse = () => Boolean(list.querySelector("details[open]")) || list.matches(":hover") || list.contains(document.activeElement);

  async function read() {
    // One that comes while another is under way is made after it.
    isWanted = true;
    if (isReading) return;
    isReading = true;
    while (isWanted) {
      isWanted = false;
      seen = known.server.traced;
      try {
        const answer = await ask(`console/traces?model=${encodeURIComponent(name)}`, { headers });
        take(JSON.parse(await answer.text(), printable));
      } catch (error) {
        isRefused = true;
        problem.replaceChildren(refusal(error, read));
      }
    }
    isReading = false;
  }
  function take(answer) {
    isRefused = false;
    problem.replaceChildren();
    shown.hidden = false;
    settings.show(answer);
    waiting = answer.traces;
    if (isInUse()) newer.hidden = waiting.every((trace) => boxes.has(keyOf(trace)));
    else draw(waiting);
  }
  function draw(traces) {
    newer.hidden = true;
    setText(title, traces.length ? "Last traced requests" : "No request to this model was traced yet.");
    const longest = traces.reduce((most, { rows: [root] }) => Math.max(most, root.total_ns), 1);
    const keys = new Set(traces.map(keyOf));
    for (const key of boxes.keys()) if (!keys.has(key)) boxes.delete(key);
    for (const trace of traces) {
      const before = boxes.get(keyOf(trace));
      if (before?.longest === longest || before?.box.open) continue;
      boxes.set(keyOf(trace), { longest, box: traceBox(trace, name, longest) });
    }
    legend.replaceChildren(legendOf(spansOf(traces.map(({ rows: [root] }) => root))));
    setChildren(list, traces.map((trace) => boxes.get(keyOf(trace)).box));
  }
  function update() {
    // After a refusal somebody asks again.
    if (seen !== known.server.traced && !isRefused && !isReading) read();
  }
  return { node, update };
}
