// What is known of the server: the last whole state with all changes since, and the figures of the last minutes.

/** How far back the charts go. */
export const MINUTES = 5;
const LONGEST_HISTORY = MINUTES * 60 + 10;
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

export const known = {
  server: null,
  models: new Map(),
  failures: [],
  leftOut: 0,
  time: 0,
  /** Of the whole server, and by key of a version: points in time. */
  total: [],
  histories: new Map(),
};

function add(points, point) {
  points.push(point);
  if (points.length > LONGEST_HISTORY) points.splice(0, points.length - LONGEST_HISTORY);
}

function point(model, time) {
  const { rates, latency_ms: latency } = model;
  return {
    time,
    requests: rates.requests,
    failures: rates.failures,
    inferences: rates.inferences,
    pending: model.pending,
    inFlight: model.in_flight,
    p50: latency?.p50,
    p90: latency?.p90,
    p99: latency?.p99,
    ns: model.ns,
    success: model.counts.success,
  };
}

/** Models that have done nothing need no history. */
function isWorthKeeping(model) {
  return model.rates.requests > 0 || model.in_flight > 0 || model.counts.success + model.counts.failure > 0;
}

function remember(time) {
  const sum = { time, requests: 0, failures: 0, pending: 0, inFlight: 0, memory: known.server.memory.resident_bytes };
  for (const model of known.models.values()) {
    if (!model.rates) continue;
    sum.requests += model.rates.requests;
    sum.failures += model.rates.failures;
    sum.pending += model.pending;
    sum.inFlight += model.in_flight;
    const history = known.histories.get(model.key);
    if (history) add(history, point(model, time));
    else if (isWorthKeeping(model)) known.histories.set(model.key, [point(model, time)]);
  }
  add(known.total, sum);
}

function forget(key) {
  known.models.delete(key);
  known.histories.delete(key);
}

/** Takes an event: `isWhole` says that it has everything. */
export function take(isWhole, message) {
  if (isWhole) {
    known.models.clear();
    known.failures = [];
  }
  known.server = message.server ?? known.server;
  known.leftOut = message.models_left_out ?? known.leftOut;
  known.time = message.time_ms;
  for (const row of message.models ?? []) {
    // A version that is not ready any more has none of the figures it had.
    const before = row.state === undefined || row.state === "READY" ? known.models.get(row.key) : undefined;
    known.models.set(row.key, Object.assign(before ?? {}, row));
  }
  (message.removed ?? []).forEach(forget);
  known.failures = known.failures.concat(message.failures ?? []).slice(-MOST_FAILURES);
  remember(message.time_ms);
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
