// The first page: figures of the whole server, models that failed, all models, the last failed requests.

import { button, element, setChildren, stat } from "./dom.js";
import { failureTable, reasonBlock } from "./failures.js";
import { counted, failedText, figure, percent, size } from "./format.js";
import { modelList } from "./list.js";
import { sparkline } from "./live.js";
import { failedOfAll, groupOf, kindOf, known, pageOf } from "./store.js";

const MOST_REASONS = 3;
const LAST_FAILURES = 8;

/** Figures with their last minutes. */
function figures() {
  const sparks = [{ of: (point) => point.requests }, { of: (point) => point.failures, kind: "failing" }, { of: (point) => point.pending }, { of: (point) => point.memory }].map(sparkline);
  const [requests, failed, queue, memory] = ["Requests per second", "Failed, last 5 minutes", "In the queue", "Memory of the process"].map((name, at) => stat(name, sparks[at].node));
  const more = stat("Load of the instances");
  const gpus = new Map();
  const node = element("dl", { class: "stats" });
  function gpuStat(gpu, at) {
    if (!gpus.has(gpu.uuid)) gpus.set(gpu.uuid, stat(`GPU ${at}`));
    const one = gpus.get(gpu.uuid);
    one.set(percent(gpu.utilization), `${size(gpu.memory_used_bytes)} of ${size(gpu.memory_total_bytes)}`);
    return one.node;
  }
  function update() {
    const { server, history: { total } } = known;
    const now = total.at(-1);
    requests.set(figure(now.requests));
    failed.set(...failedText(failedOfAll()));
    queue.set(figure(now.pending, 0), `${figure(now.inFlight, 0)} in flight`);
    memory.set(size(server.memory.resident_bytes), `${size(server.memory.budget_used_bytes)} of it for requests`);
    sparks.forEach((spark) => spark.update(total, known.time));
    if (server.load !== null) more.set(percent(server.load), server.load > 1 ? "requests wait" : "100 %: all are busy");
    const shown = [requests, failed, queue, memory, ...(server.load === null ? [] : [more])];
    setChildren(node, [...shown.map((one) => one.node), ...server.gpus.map(gpuStat)]);
  }
  return { node, update };
}

/** Models that failed, with their reasons as they are: of a configuration the line and its caret. */
function troubles(showFailed) {
  const node = element("section", { class: "failed", "aria-label": "Models that failed" });
  let drawn = "";
  function update() {
    const failed = [...known.models.values()].filter((model) => kindOf(model) === "failed");
    const text = JSON.stringify([failed.length, failed.slice(0, MOST_REASONS).map((model) => [model.key, model.reason])]);
    node.hidden = !failed.length;
    if (text === drawn) return;
    drawn = text;
    const told = failed.slice(0, MOST_REASONS).flatMap((model) => [
      element("h3", {}, element("a", { href: pageOf(groupOf(model)) }, model.name)),
      reasonBlock(model.reason, { tabindex: 0, role: "region", "aria-label": `Why ${model.name} failed` }),
    ]);
    const left = failed.length - MOST_REASONS;
    const more = left > 0 ? [button(`Show all ${failed.length}`, showFailed)] : [];
    node.replaceChildren(element("h2", {}, `${counted(failed.length, "model")} failed`), ...told, ...more);
  }
  return { node, update };
}

function emptyPage() {
  const load = `curl -X POST ${new URL(".", document.baseURI)}v2/repository/models/my_model/load`;
  const last = known.server.may_load ? ["Then load it:", element("pre", {}, load)] : ["Then start the server again."];
  return element(
    "section",
    { class: "empty" },
    element("h2", {}, "There is no model yet"),
    element("p", {}, "Put a model into the folder that the server was started with (--model-repository), for example"),
    element("pre", {}, "my_model/\n  1/model.onnx"),
    element("p", {}, "The server makes the configuration from the file if the file says enough. ", last[0]),
    ...last.slice(1),
  );
}

export function overviewPage() {
  const top = figures();
  const list = modelList();
  const failed = troubles(() => {
    list.showKind("failed");
    list.node.scrollIntoView();
  });
  const requests = failureTable("", LAST_FAILURES);
  const models = element("div", {}, list.node);
  const more = element("a", { href: "./#/failures", class: "after" }, "Show all recorded failures");
  const last = element("section", {}, element("h2", {}, "Last failed requests"), requests.node, more);
  const empty = emptyPage();
  const node = element("div", {}, element("h1", {}, "Models"), top.node, failed.node, models, empty, last);
  function update() {
    const isEmpty = known.models.size === 0;
    top.update();
    failed.update();
    models.hidden = isEmpty;
    empty.hidden = !isEmpty;
    list.update();
    requests.update();
    more.hidden = known.failures.length === 0;
  }
  return { node, update, title: "Models" };
}
