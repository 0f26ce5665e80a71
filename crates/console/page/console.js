// The page of models: state and figures from the stream of events. Everything a server says is set as text.

import { drawApi } from "./api.js";
import { element, region, table, text } from "./dom.js";
import { follow, headers } from "./events.js";

const SHOWN_FAILURES = 20;
const SHOWN_MODELS = 200;

const connection = document.getElementById("connection");
const content = document.getElementById("content");

/** What is known of the server: the last whole state with all changes since. */
const known = { server: null, models: new Map(), failures: [], leftOut: 0 };
let filter = "";
let busy = "";
let isPressed = false;

function merge(message, whole) {
  if (whole) {
    known.models.clear();
    known.failures = [];
  }
  known.server = message.server ?? known.server;
  known.leftOut = message.models_left_out ?? known.leftOut;
  for (const row of message.models ?? []) {
    const before = row.state === undefined || row.state === "READY" ? known.models.get(row.key) : undefined;
    known.models.set(row.key, Object.assign(before ?? {}, row));
  }
  (message.removed ?? []).forEach((key) => known.models.delete(key));
  known.failures = known.failures.concat(message.failures ?? []).slice(-100);
}

function figure(value, digits = 1) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });
}

function megabytes(bytes) {
  return bytes === null || bytes === undefined ? "–" : `${figure(bytes / 1e6, 0)} MB`;
}

function serverFacts(server) {
  const budget = server.memory;
  const facts = [
    [server.state.replace("_", " "), "state"],
    [`${figure(server.uptime_s / 60, 1)} min`, "up"],
    [megabytes(budget.resident_bytes), "memory of the process"],
    [`${megabytes(budget.budget_used_bytes)} of ${megabytes(budget.budget_limit_bytes)}`, "held for requests"],
  ];
  if (server.load !== null) facts.push([figure(server.load, 2), "load"]);
  for (const gpu of server.gpus) {
    const used = `${megabytes(gpu.memory_used_bytes)} of ${megabytes(gpu.memory_total_bytes)}`;
    facts.push([`${figure(gpu.utilization === null ? null : gpu.utilization * 100, 0)} %, ${used}`, gpu.uuid]);
  }
  const items = facts.map(([value, name]) => element("li", {}, element("b", {}, value), element("span", {}, name)));
  return element("ul", { class: "facts", "aria-label": "Server" }, ...items);
}

function failedModels(models) {
  const failed = models.filter((model) => model.reason && model.reason !== "unloaded");
  if (!failed.length) return [];
  const told = failed.map((model) => [element("h3", {}, model.name), element("pre", { tabindex: 0, "data-key": `reason ${model.key}` }, model.reason)]);
  return [element("section", { class: "failed" }, element("h2", {}, "Models that are not ready"), ...told.flat())];
}

async function control(name, action) {
  busy = `${action} of ${name} …`;
  draw();
  const answer = await fetch(`v2/repository/models/${name}/${action}`, { method: "POST", headers, body: "{}" }).catch((error) => error);
  busy = answer.ok ? "" : `${action} of ${name} failed: ${answer instanceof Error ? answer.message : (await answer.text()).slice(0, 2000)}`;
  draw();
}

function controls(model) {
  if (!known.server.may_load || !/^[\w.~-]+$/.test(model.name)) return "";
  const button = (action, label) => {
    const made = element("button", { type: "button", "data-key": `${action} ${model.key}` }, label);
    made.addEventListener("click", () => control(model.name, action));
    return made;
  };
  const ready = model.state === "READY";
  return ready ? [button("load", "Reload"), button("unload", "Unload")] : [button("load", "Load")];
}

function modelRow(model) {
  const instances = model.instances ? `${model.instances.working} of ${model.instances.all}` : "–";
  const batch = model.counts?.executions ? model.counts.inferences / model.counts.executions : null;
  return [
    text(model.name),
    text(model.version ?? "–"),
    text(model.state ?? "not loaded", model.state === "READY" ? "good" : "bad"),
    figure(model.rates?.requests),
    figure(model.rates?.failures),
    figure(model.pending, 0),
    figure(model.latency_ms?.p50, 2),
    figure(model.latency_ms?.p90, 2),
    figure(model.latency_ms?.p99, 2),
    figure(batch, 2),
    instances,
    controls(model),
  ];
}

const COLUMNS = ["*Model", "*Version", "*State", "Requests/s", "Failed/s", "Queue", "p50 ms", "p90 ms", "p99 ms", "Batch", "Instances", ""];

function modelTable(models) {
  const wanted = models.filter((model) => model.name.toLowerCase().includes(filter.toLowerCase()));
  wanted.sort((a, b) => a.name.localeCompare(b.name) || a.version - b.version);
  const more = known.leftOut + Math.max(0, wanted.length - SHOWN_MODELS);
  const caption = more ? `${more} more: use the filter` : `${wanted.length} of ${models.length}`;
  return region("Models", table(caption, COLUMNS, wanted.slice(0, SHOWN_MODELS).map(modelRow)));
}

function failureRow(failure) {
  const when = new Date(failure.time_ms).toLocaleTimeString();
  const model = failure.version === null ? failure.model : `${failure.model}/${failure.version}`;
  return [text(when), text(model), text(failure.call), failure.status, text(failure.id), text(failure.reason, "reason")];
}

function failures() {
  const last = known.failures.slice(-SHOWN_FAILURES).reverse();
  if (!last.length) return element("p", {}, "No request has failed.");
  const columns = ["*Time", "*Model", "*Call", "Status", "*Id", "*Reason"];
  return region("Failed requests", table(`the last ${last.length}`, columns, last.map(failureRow)));
}

const search = element("input", { type: "search", "aria-label": "Filter models by name", placeholder: "Filter by name" });
search.addEventListener("input", () => {
  filter = search.value;
  draw();
});

// Kept from one drawing to the next, or nothing would be read out when it changes.
const said = element("p", { "aria-live": "polite" });

/** Whether somebody presses a button or selects a text, which drawing anew would undo. */
function isInUse() {
  const selection = getSelection();
  return isPressed || (!selection.isCollapsed && content.contains(selection.anchorNode));
}

content.addEventListener("pointerdown", () => (isPressed = true));
["pointerup", "pointercancel"].forEach((name) => addEventListener(name, () => (isPressed = false)));

function draw() {
  if (!known.server) return;
  const scrolled = [...content.querySelectorAll("[data-key]")].filter((node) => node.scrollLeft);
  const focused = document.activeElement?.dataset?.key;
  const inSearch = document.activeElement === search;
  const models = [...known.models.values()];
  const rule = known.server.may_load ? busy : known.server.may_load_reason;
  if (said.textContent !== (rule ?? "")) said.textContent = rule ?? "";
  const places = scrolled.map((node) => [node.dataset.key, node.scrollLeft]);
  content.replaceChildren(
    serverFacts(known.server),
    ...failedModels(models),
    element("h2", {}, "Models"),
    search,
    said,
    models.length ? modelTable(models) : element("p", {}, "There is no model in the repository."),
    element("h2", {}, "Failed requests"),
    failures(),
  );
  const find = (key) => content.querySelector(`[data-key="${CSS.escape(key)}"]`);
  for (const [key, left] of places) {
    if (find(key)) find(key).scrollLeft = left;
  }
  if (inSearch) search.focus({ preventScroll: true });
  if (focused) find(focused)?.focus({ preventScroll: true });
}

function took(name, message) {
  merge(message, name === "state");
  const title = `${known.server.product}, ${known.server.name}`;
  if (connection.textContent !== title) connection.textContent = title;
  if (!isInUse()) draw();
}

function lost(reason) {
  connection.textContent = `No connection: ${reason}. Trying again.`;
}

if (location.pathname.endsWith("/docs")) {
  drawApi(connection, content);
} else {
  follow("console/events", took, lost);
}
