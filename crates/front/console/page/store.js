// What is known of the server: the last whole state with all changes since, and the figures of the last minutes.

import { History } from "./history.js";

const MOST_FAILURES = 100;

/** Where a version stands: ready, failed, busy (it comes or goes) or off. */
export function kindOf(model) {
  if (model.state === "READY") return "ready";
  if (model.state === "LOADING" || model.state === "UNLOADING") return "busy";
  return model.reason && model.reason !== "unloaded" ? "failed" : "off";
}

/** The names of these states. */
export const KINDS = { ready: "Ready", failed: "Failed", busy: "Loading", off: "Not loaded" };

/** Versions of one model have one name, which is unique within a repository. */
export function groupOf(model) {
  return model.namespace ? `${model.namespace}//${model.name}` : model.name;
}

/**
 * How many items an execution had, on average. Both counts are of all executions: the inferences are those of requests that
 * succeeded, so with failures a mean of them would fall below one item.
 */
export function batchOf({ counts }) {
  return counts?.executions ? Math.max(1, counts.items / counts.executions) : undefined;
}

export const known = {
  server: null,
  models: new Map(),
  failures: [],
  leftOut: 0,
  /** What the server was started with, and what it has opened. */
  about: { ports: [], options: [], runtimes: {} },
  time: 0,
  history: new History(),
};

/** Requests that failed in the last five minutes: of a model, and of all. */
export const failedOf = (key) => known.history.failed(key, known.time);
export const failedOfAll = () => known.history.failedOfAll(known.time);

function forget(key) {
  known.models.delete(key);
  known.history.forget(key);
}

/** Takes an event: `isWhole` says that it has everything. */
export function take(isWhole, message) {
  if (isWhole) {
    known.models.clear();
    known.failures = [];
  }
  known.server = message.server ?? known.server;
  known.about = message.about ?? known.about;
  known.leftOut = message.models_left_out ?? known.leftOut;
  known.time = message.time_ms;
  for (const row of message.models ?? []) {
    // A version that is not ready any more has none of the figures it had.
    const before = row.state === undefined || row.state === "READY" ? known.models.get(row.key) : undefined;
    known.models.set(row.key, Object.assign(before ?? {}, row));
  }
  (message.removed ?? []).forEach(forget);
  if (message.history) known.history.fill(message.history);
  known.failures = known.failures.concat(message.failures ?? []).slice(-MOST_FAILURES);
  known.history.remember(message.time_ms, known.models.values(), known.server.memory.resident_bytes, isWhole);
}

/** Versions of one model, the newest first. */
export function versionsOf(group) {
  return [...known.models.values()].filter((model) => groupOf(model) === group).sort((a, b) => (b.version ?? 0) - (a.version ?? 0));
}

/** How many versions are in which state. */
export function countKinds() {
  const counts = { ready: 0, failed: 0, busy: 0, off: 0 };
  for (const model of known.models.values()) counts[kindOf(model)] += 1;
  return counts;
}

/** The address of a model's page. */
export function pageOf(group, part = "", version = null) {
  const of = version === null ? "" : `/versions/${version}`;
  return `./#/models/${encodeURIComponent(group)}${of}${part ? `/${part}` : ""}`;
}
