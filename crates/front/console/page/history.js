// Figures of the last minutes: those that the server has kept, and each second since the page was opened.

/** How far back the charts go: as far as the server's own history. */
export const MINUTES = 15;
/** Above this share failures are told in red: as in the alert GalateaRequestsFail. */
const FAILED_LIMIT = 0.05;
const FAILED_MS = 5 * 60_000;
/** Older points are joined to slots of this length, so that a page that stays open has few. */
const [FINE_MS, SLOT_MS] = [5 * 60_000, 5000];
const JOIN_EVERY = 60;
/** Rates of shorter intervals are chance. */
const SHORTEST_MS = 1000;
const perSecond = (count, span_ms) => (count * 1000) / Math.max(span_ms, SHORTEST_MS);

const add = (a, b, key) => (a[key] ?? 0) + (b[key] ?? 0);
const sums = (a, b, keys) => Object.fromEntries(keys.map((key) => [key, add(a, b, key)]));

/** How far counters have grown, which begin anew with a load. */
function grown(now, before) {
  const base = (key) => (before[key] <= now[key] ? before[key] : 0);
  return Object.fromEntries(Object.entries(now).map(([key, value]) => [key, value - base(key)]));
}

function countersOf(model) {
  return { ...model.ns, succeeded: model.counts.success, failed: model.counts.failure };
}

/** A point of a model: rates, gauges, quantiles, and what was counted since the point before. */
function pointOf(model, time, before) {
  const { rates, latency_ms: latency } = model;
  const { succeeded, failed, success, queue, compute_input: input, compute_infer: infer, compute_output: output } = grown(countersOf(model), before);
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
    mean: succeeded ? success / succeeded / 1e6 : undefined,
    succeeded,
    failed,
    ms: { total: success / 1e6, queue: queue / 1e6, input: input / 1e6, infer: infer / 1e6, output: output / 1e6 },
  };
}

/** A point of the server's history. One in which nothing happened is sent as 0. */
function pointOfServer(sent, time, span_ms) {
  const [succeeded, failed, inferences, pending, inFlight, total, queue, input, infer, output] = sent || Array(10).fill(0);
  return {
    time,
    requests: perSecond(succeeded + failed, span_ms),
    failures: perSecond(failed, span_ms),
    inferences: perSecond(inferences, span_ms),
    pending,
    inFlight,
    mean: succeeded ? total / succeeded : undefined,
    succeeded,
    failed,
    ms: { total, queue, input, infer, output },
  };
}

/** The last interval of the server is not over: a short one tells no rate, so what it counted goes to the one before. */
function settled(points, span_ms) {
  const [before, last] = points.slice(-2);
  if (!last || span_ms >= SHORTEST_MS) return points;
  const counts = { ...sums(before, last, before.ms ? ["succeeded", "failed"] : []), ...(before.ms && { ms: sums(before.ms, last.ms, Object.keys(before.ms)) }) };
  return [...points.slice(0, -2), { ...before, ...counts }];
}

/** Two points that follow each other as one: counts are summed up, gauges and quantiles are the higher ones. */
function joined(a, b) {
  const highest = (key) => (a[key] === undefined || b[key] === undefined ? (a[key] ?? b[key]) : Math.max(a[key], b[key]));
  const keys = Object.keys({ ...a, ...b }).filter((key) => key !== "ms");
  const point = Object.fromEntries(keys.map((key) => [key, highest(key)]));
  Object.assign(point, sums(a, b, ["succeeded", "failed"]));
  if (a.ms) point.ms = sums(a.ms, b.ms, Object.keys(a.ms));
  return point;
}

/** Points with those that are no longer recent joined, and without those that no chart shows any more. */
export function thinned(points, now) {
  const kept = [];
  for (const point of points) {
    if (now - point.time > MINUTES * 60_000 + SLOT_MS) continue;
    const last = kept.at(-1);
    const isOld = now - point.time > FINE_MS;
    if (isOld && last && Math.floor(last.time / SLOT_MS) === Math.floor(point.time / SLOT_MS)) kept[kept.length - 1] = joined(last, point);
    else kept.push(point);
  }
  return kept;
}

/** The points of the server before, and in the gaps of, those that the page has seen itself. */
function merged(server, own) {
  const slot = (point) => Math.floor(point.time / SLOT_MS);
  const seen = new Set(own.flatMap((point) => [slot(point), slot(point) + 1]));
  return [...server.filter((point) => !seen.has(slot(point))), ...own].sort((a, b) => a.time - b.time);
}

/** Models that have done nothing need no history. */
function isWorthKeeping(model) {
  return model.rates.requests > 0 || model.in_flight > 0 || model.counts.success + model.counts.failure > 0;
}

/** The points of the whole server, and by key of a version. */
export class History {
  total = [];
  models = new Map();
  #counted = new Map();
  #failed = new Map();
  #sinceJoined = 0;

  /** Takes what the server has kept. */
  fill({ times_ms: times, spans_ms: spans, total, models }) {
    const points = (sent, make) => {
      const from = times.length - sent.length;
      return settled(sent.map((one, at) => make(one, times[from + at], spans[from + at])), spans.at(-1));
    };
    const ofServer = ([ended, failed, pending, inFlight, memory], time, span) => ({
      time,
      requests: perSecond(ended, span),
      failures: perSecond(failed, span),
      pending,
      inFlight,
      memory: memory ?? undefined,
    });
    this.total = merged(points(total, ofServer), this.total);
    for (const [key, sent] of Object.entries(models)) this.models.set(key, merged(points(sent, pointOfServer), this.models.get(key) ?? []));
  }

  /**
   * Adds a point of now for each model and for the server. Of the first state there is none: what was counted up to then is in
   * the server's points, and rates are not known yet.
   */
  remember(time, models, memory, isFirst) {
    const sum = { time, requests: 0, failures: 0, pending: 0, inFlight: 0, memory };
    for (const model of models) {
      if (!model.rates) continue;
      const point = pointOf(model, time, this.#counted.get(model.key) ?? {});
      for (const key of ["requests", "failures", "pending", "inFlight"]) sum[key] += point[key];
      this.#counted.set(model.key, countersOf(model));
      if (isFirst) continue;
      const points = this.models.get(model.key);
      if (points) points.push(point);
      else if (isWorthKeeping(model)) this.models.set(model.key, [point]);
    }
    this.#failed.clear();
    if (isFirst && this.total.length) return;
    this.total.push(sum);
    this.#sinceJoined += 1;
    if (this.#sinceJoined < JOIN_EVERY) return;
    this.#sinceJoined = 0;
    this.total = thinned(this.total, time);
    for (const [key, points] of this.models) this.models.set(key, thinned(points, time));
  }

  forget(key) {
    this.models.delete(key);
    this.#counted.delete(key);
  }

  /** How many requests ended in the last five minutes, how many of them failed, and whether these are too many. */
  failed(key, now) {
    if (!this.#failed.has(key)) {
      const recent = (this.models.get(key) ?? []).filter((point) => now - point.time < FAILED_MS);
      const sum = (field) => recent.reduce((total, point) => total + point[field], 0);
      this.#failed.set(key, judged(sum("failed"), sum("failed") + sum("succeeded")));
    }
    return this.#failed.get(key);
  }

  /** The same of all models. */
  failedOfAll(now) {
    const all = [...this.models.keys()].map((key) => this.failed(key, now));
    const sum = (field) => all.reduce((total, one) => total + one[field], 0);
    return judged(sum("failed"), sum("all"));
  }
}

function judged(failed, all) {
  return { failed, all, share: all ? failed / all : undefined, isBad: failed > FAILED_LIMIT * all };
}

/** Where the time of a request went on average: of those that these points counted, or `null` where there were none. */
export function partsOfTime(points) {
  const count = points.reduce((sum, point) => sum + point.succeeded, 0);
  if (!count) return null;
  return ["queue", "input", "infer", "output"].map((key) => points.reduce((sum, point) => sum + point.ms[key], 0) / count);
}
