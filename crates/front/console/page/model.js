// The page of one model: its figures, a form to try it, what it takes and how it is configured, its failed requests.

import { legend } from "./charts.js";
import { announce } from "./connection.js";
import { button, element, region, setChildren, setText, stat, table, text } from "./dom.js";
import { ask } from "./events.js";
import { failureTable, reasonBlock } from "./failures.js";
import { duration, failedText, figure, percent } from "./format.js";
import { partsOfTime } from "./history.js";
import { badge } from "./list.js";
import { bar, chart, stack } from "./live.js";
import { headers, refusal } from "./restricted.js";
import { batchOf, failedOf, kindOf, known, pageOf, versionsOf } from "./store.js";
import { tracesPart } from "./traces.js";

const PARTS = { "": "Live", traces: "Traces", try: "Try", config: "Configuration" };
/** Paths have names as they are: no percent escape is resolved. */
const fitsPath = (name) => encodeURIComponent(name) === name && !/^\.+$/.test(name);

/** The library or code that runs a model, unless it is in the program. */
function programOf({ backend, library }) {
  const path = library ?? known.about.runtimes[backend]?.path;
  return path && path !== "built-in" ? ` (${path})` : "";
}

function charts() {
  const one = (name, key) => ({ name, of: (point) => point[key] });
  return [
    chart("Throughput per second", [one("requests", "requests"), one("inferences", "inferences")], (value) => figure(value)),
    chart("Latency", [one("p50", "p50"), one("p90", "p90"), one("p99", "p99"), one("mean", "mean")], duration),
    chart("Queue", [one("waiting", "pending"), one("in flight", "inFlight")], (value) => figure(value, 0)),
    chart("Failed per second", [{ ...one("failed", "failures"), kind: "failing" }], (value) => figure(value)),
  ];
}

/** Figures of now. */
function figures() {
  const names = ["Requests per second", "p50", "p99", "In the queue", "Batch size", "Instances", "Failed, last 5 minutes", "Failed since the load"];
  const stats = names.map((name) => stat(name));
  function update(model) {
    const { counts, instances, latency_ms: latency, failures } = model;
    const kinds = Object.entries(failures).filter(([, count]) => count).map(([kind, count]) => `${figure(count, 0)} ${kind}`);
    const values = [
      [figure(model.rates.requests), `${figure(counts.success + counts.failure, 0)} since the load`],
      [duration(latency?.p50), latency ? `mean ${duration(latency.mean)}` : ""],
      [duration(latency?.p99), latency ? `of ${figure(latency.count, 0)}` : ""],
      [figure(model.pending, 0), `${figure(model.in_flight, 0)} in flight`],
      [figure(batchOf(model)), model.max_batch_size ? `mean; at most ${model.max_batch_size}` : "the model has no batches"],
      [instances ? `${instances.working} of ${instances.all}` : "–", counts.restarts ? `${counts.restarts} restarts` : "work"],
      failedText(failedOf(model.key)),
      [figure(counts.failure, 0), kinds.join(", ")],
    ];
    values.forEach((value, at) => stats[at].set(...value));
  }
  return { node: element("dl", { class: "stats" }, ...stats.map((one) => one.node)), update };
}

/** Time of a request by phase, of those in the last minutes. */
function timeSpent() {
  const names = ["queue", "input", "compute", "output"];
  const parts = stack(names);
  const values = names.map(() => element("b", {}, "–"));
  const entries = names.map((name, at) => [element("span", { class: `swatch s${at}`, "aria-hidden": "true" }), `${name} `, values[at]]);
  const node = element("section", {}, element("h3", {}, "Time of a request by phase"), parts.node, legend(entries));
  function update(history) {
    const ms = partsOfTime(history);
    node.hidden = !ms;
    if (!ms) return;
    parts.set(ms);
    ms.forEach((value, at) => setText(values[at], duration(value)));
  }
  return { node, update };
}

function batchSizes() {
  const rows = new Map();
  const body = element("tbody", {});
  const head = element("tr", {}, ...["Size", "Executions", "Share"].map((name) => element("th", { scope: "col" }, name)), element("th", { "aria-hidden": "true" }));
  const node = element("section", {}, element("h3", {}, "Batch sizes"), region("Batch sizes", element("table", { class: "batches" }, element("caption", { class: "unseen" }, "Batch sizes"), element("thead", {}, head), body)));
  function row(batch) {
    const [count, share, drawn] = [element("td", {}), element("td", {}), bar()];
    const made = element("tr", {}, element("th", { scope: "row" }, batch), count, share, element("td", { class: "wide-cell" }, drawn.node));
    return { made, set: (number, part) => [setText(count, figure(number, 0)), setText(share, percent(part)), drawn.set(part)] };
  }
  function update(sizes) {
    const all = sizes.reduce((sum, [, count]) => sum + count, 0);
    node.hidden = !all;
    for (const [batch, count] of sizes) {
      if (!rows.has(batch)) rows.set(batch, row(batch));
      rows.get(batch).set(count, count / all);
    }
    setChildren(body, sizes.map(([batch]) => rows.get(batch).made));
  }
  return { node, update };
}

function live(name) {
  const [now, time, sizes, drawn] = [figures(), timeSpent(), batchSizes(), charts()];
  const failed = failureTable(name, 20);
  const grid = element("div", { class: "charts" }, ...drawn.map((one) => one.node));
  const off = element("p", { class: "faint" }, "This version is not loaded: there are no figures.");
  const shown = element("div", {}, now.node, grid, time.node, sizes.node);
  const node = element("div", {}, off, shown, element("h3", {}, "Last failed requests"), failed.node);
  function update(model) {
    shown.hidden = !model.rates;
    off.hidden = Boolean(model.rates);
    failed.update();
    if (!model.rates) return;
    const history = known.history.models.get(model.key) ?? [];
    now.update(model);
    drawn.forEach((one) => one.update(history, known.time));
    time.update(history);
    sizes.update(model.batch_sizes);
  }
  return { node, update };
}

function tensors(title, list, config) {
  const more = (name) => (config ?? []).find((one) => one.name === name) ?? {};
  const rows = (list ?? []).map(({ name, datatype, shape }) => {
    const { optional, label_filename: labels, format } = more(name);
    const notes = [optional && "optional", labels && `labels in ${labels}`, format && format !== "FORMAT_NONE" && format];
    return [text(name), text(datatype), text(`[${shape.join(", ")}]`), text(notes.filter(Boolean).join(", "))];
  });
  return [element("h3", {}, title), region(title, table("", ["*Name", "*Type", "*Shape", "*Notes"], rows))];
}

/** What the model takes, and its configuration: asked for when it is looked at, and again after each load. */
function interfaceOf(name) {
  const node = element("div", {});
  let [shownFor, attempt] = ["", 0];
  async function read(path) {
    attempt += 1;
    const mine = attempt;
    try {
      const [metadata, config] = await Promise.all(["", "/config"].map(async (end) => (await ask(path + end, { headers })).json()));
      if (mine !== attempt) return;
      const pretty = element("pre", { tabindex: 0, role: "region", "aria-label": "Configuration" }, JSON.stringify(config, null, 2));
      node.replaceChildren(...tensors("Inputs", metadata.inputs, config.input), ...tensors("Outputs", metadata.outputs, config.output), element("h3", {}, "Completed configuration"), pretty);
    } catch (error) {
      if (mine === attempt) node.replaceChildren(refusal(error, () => read(path)));
    }
  }
  function update(model) {
    const path = `v2/models/${name}/versions/${model.version}`;
    const wanted = model.state === "READY" && fitsPath(name) ? `${path} ${model.load_s}` : "no";
    if (wanted === shownFor) return;
    shownFor = wanted;
    if (wanted !== "no") read(path);
    else node.replaceChildren(element("p", { class: "faint" }, fitsPath(name) ? "The inputs of a model are known once it is loaded." : "The model's name cannot be part of an address."));
  }
  return { node, update };
}

/** The form to try it, which is made when it is looked at. */
function tryPart(name, version) {
  const node = element("div", {});
  const end = new AbortController();
  let shownFor = "";
  async function mount(model) {
    const { mountTry } = await import("./try.js");
    await mountTry(node, { model: name, version: version ?? model.version, headers, signal: end.signal });
  }
  function update(model) {
    const wanted = model.state === "READY" ? "form" : "off";
    // A form that is there stays: what was typed is worth more than that the model is away for a moment.
    if (shownFor === "form" || shownFor === wanted) return;
    shownFor = wanted;
    if (wanted === "form") mount(model);
    else node.replaceChildren(element("p", { class: "faint" }, "It can be tried once it is loaded."));
  }
  return { node, update, close: () => end.abort() };
}

/** Load, reload and unload, where that is allowed. */
function controls(name) {
  const told = element("p", { class: "told", role: "status" });
  const [load, reload, unload] = ["Load", "Reload", "Unload"].map((label) => button(label, () => {}));
  const sure = button("Unload it now", () => act("unload", "Unloading"), { class: "danger" });
  const keep = button("Keep it", () => ask2(false));
  const question = element("span", { class: "question" }, "Requests to it will be refused. ", sure, " ", keep);
  const node = element("div", { class: "controls" }, load, reload, unload, question);
  question.hidden = true;
  let isBusy = false;
  function ask2(isAsked) {
    question.hidden = !isAsked;
    (isAsked ? sure : unload).focus();
  }
  async function act(action, doing) {
    if (isBusy) return;
    isBusy = true;
    question.hidden = true;
    setText(told, `${doing} ${name} …`);
    told.classList.remove("bad");
    try {
      await ask(`v2/repository/models/${name}/${action}`, { method: "POST", headers, body: "{}" });
      setText(told, "");
      announce(`${name}: ${action} done.`);
    } catch (error) {
      told.classList.add("bad");
      setText(told, `The ${action} failed: ${error.message}`);
    }
    isBusy = false;
  }
  load.addEventListener("click", () => act("load", "Loading"));
  reload.addEventListener("click", () => act("load", "Reloading"));
  unload.addEventListener("click", () => ask2(true));
  function update(model) {
    const may = known.server.may_load && fitsPath(name);
    const isReady = model.state === "READY";
    node.hidden = !may;
    load.hidden = isReady;
    reload.hidden = unload.hidden = !isReady;
    if (!may && !isBusy) setText(told, known.server.may_load ? "" : known.server.may_load_reason);
  }
  return { node, told, update };
}

function subpages(group, version, part) {
  const link = ([id, label]) => element("a", { href: pageOf(group, id, version), ...(id === part ? { "aria-current": "page" } : {}) }, label);
  return element("nav", { class: "tabs", "aria-label": "Parts of the page" }, ...Object.entries(PARTS).map(link));
}

/** The part of the page that an address names. */
function partOf(part, name, version) {
  if (part === "try") return tryPart(name, version);
  if (part === "config") return interfaceOf(name);
  return part === "traces" ? tracesPart(name, fitsPath(name)) : live(name);
}

/** `parts` of the address: the model, `versions` and a number where one is meant, and one of the parts. */
export function modelPage([group, ...rest]) {
  const version = rest[0] === "versions" ? Number(rest[1]) : null;
  const part = rest.at(-1) in PARTS ? rest.at(-1) : "";
  const name = group.split("//").at(-1);
  const [state, reason, facts] = [badge(), element("div", {}), element("p", { class: "faint" })];
  const actions = controls(name);
  const shown = partOf(part, name, version);
  const others = element("nav", { class: "versions", "aria-label": "Versions" });
  const head = element("div", { class: "head" }, element("h1", {}, name), state.node, actions.node);
  const node = element("div", {}, head, facts, others, actions.told, reason, subpages(group, version, part), shown.node);
  const gone = element("p", { class: "told bad" }, "There is no such model or version on this server.");
  let [versionsShown, reasonShown] = ["", ""];

  function drawReason(text) {
    if (text === reasonShown) return;
    reasonShown = text;
    reason.replaceChildren(reasonBlock(text, { class: "why", tabindex: 0, role: "region", "aria-label": "Reason" }));
  }
  function drawVersions(versions, model) {
    const wanted = versions.map((one) => `${one.version} ${one.state}`).join();
    others.hidden = versions.length < 2;
    if (wanted === versionsShown) return;
    versionsShown = wanted;
    const links = versions.map((one) => element("a", { href: pageOf(group, part, one.version), ...(one === model ? { "aria-current": "true" } : {}) }, `${one.version ?? "?"} ${kindOf(one)}`));
    others.replaceChildren("Versions ", ...links);
  }
  function update() {
    const versions = versionsOf(group);
    const model = versions.find((one) => version === null || one.version === version);
    if (!model) return setChildren(node, [head, gone]);
    if (gone.parentNode) setChildren(node, [head, facts, others, actions.told, reason, node.querySelector(".tabs") ?? subpages(group, version, part), shown.node]);
    state.set(model);
    setText(facts, [model.version && `version ${model.version}`, model.backend && `backend ${model.backend}${programOf(model)}`, model.platform, model.ensemble && "ensemble", model.decoupled && "decoupled", model.load_s && `loaded in ${duration(model.load_s * 1000)}`].filter(Boolean).join(" · "));
    reason.hidden = kindOf(model) !== "failed";
    drawReason(model.reason ?? "");
    actions.update(model);
    drawVersions(versions, model);
    shown.update(model);
  }
  return { node, update, title: name, close: shown.close };
}
