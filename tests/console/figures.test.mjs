// Figures of the console's page without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { History, partsOfTime, thinned } from "./page/history.js";
import { batchOf } from "./page/store.js";
import { sectionsOf } from "./page/api.js";
import { clientsText, groupsOf, partsOf } from "./page/groups.js";

test("a batch has one item at least, whatever failed", () => {
  const counts = { success: 69, failure: 31, inferences: 69, executions: 100, items: 100 };
  assert.equal(batchOf({ counts }), 1);
  assert.equal(batchOf({ counts: { ...counts, items: 250 } }), 2.5);
  assert.equal(batchOf({ counts: { ...counts, executions: 0, items: 0 } }), undefined);
  assert.equal(batchOf({}), undefined);
});

/** A model that counted so many requests of two milliseconds each. */
function model(succeeded, failed = 0) {
  const ns = { success: succeeded * 2e6, failure: 0, queue: succeeded * 1e6, compute_input: 0, compute_infer: succeeded * 1e6, compute_output: 0 };
  return { key: "m/1", rates: { requests: 1, failures: 0, inferences: 1 }, counts: { success: succeeded, failure: failed }, ns, pending: 0, in_flight: 0 };
}

test("a load begins the counters anew, and no request is counted twice or lost", () => {
  const history = new History();
  [model(100, 8), model(110, 9), model(3), model(5, 1)].forEach((now, at) => history.remember(1000 * at, [now], 0, at === 0));
  assert.deepEqual(history.models.get("m/1").map((point) => [point.succeeded, point.failed]), [[10, 1], [3, 0], [2, 1]]);
  assert.deepEqual(history.failed("m/1", 3000), { failed: 2, all: 17, share: 2 / 17, isBad: true });
  assert.deepEqual(partsOfTime(history.models.get("m/1")), [1, 0, 1, 0]);
  assert.equal(partsOfTime([]), null);
});

test("failures are bad beyond one in twenty, of the last five minutes", () => {
  const history = new History();
  history.remember(0, [model(0)], 0, true);
  history.remember(1000, [model(95, 5)], 0, false);
  assert.equal(history.failed("m/1", 1000).isBad, false);
  history.remember(2000, [model(95, 6)], 0, false);
  assert.equal(history.failed("m/1", 2000).isBad, true);
  assert.equal(history.failedOfAll(2000).share, 6 / 101);
  history.remember(400_000, [model(95, 6)], 0, false);
  assert.deepEqual(history.failed("m/1", 400_000), { failed: 0, all: 0, share: undefined, isBad: false });
});

/** Twenty requests in the second interval, and `last` in one that has just begun, of so many milliseconds. */
function kept(last, span) {
  const total = [[0, 0, 0, 0, 7], [20, 10, 1, 2, 8], [last, 0, 0, 0, 9]];
  const points = [[10, 10, 10, 1, 2, 50, 5, 0, 40, 5], last ? [last, 0, last, 0, 0, 4 * last, 0, 0, 0, 0] : 0];
  return { times_ms: [5000, 10_000, 10_000 + span], spans_ms: [5000, 5000, span], total, models: { "m/1": points } };
}

test("what the server has kept comes before what the page has seen", () => {
  const history = new History();
  history.fill(kept(0, 2000));
  history.remember(12_000, [model(10, 10)], 9, true);
  history.remember(13_000, [model(11, 10)], 9, false);
  const points = history.models.get("m/1");
  assert.deepEqual(points.map((point) => [point.time, point.succeeded, point.failed, point.mean]), [[10_000, 10, 10, 5], [12_000, 0, 0, undefined], [13_000, 1, 0, 2]]);
  assert.equal(points[0].requests, 4);
  assert.deepEqual(history.total.map((point) => point.memory), [7, 8, 9, 9]);
  history.fill(kept(0, 2000));
  assert.equal(history.models.get("m/1").length, 3, "a connection that is made again brings no point twice");
});

test("an interval that has just begun makes no peak and no dip", () => {
  for (const last of [0, 3]) {
    const history = new History();
    history.fill(kept(last, 2));
    history.remember(10_002, [model(10 + last, 10)], 9, true);
    const points = history.models.get("m/1");
    assert.deepEqual(points.map((point) => [point.requests, point.succeeded, point.ms.total]), [[4, 10 + last, 50 + 4 * last]]);
    assert.deepEqual(history.total.map((point) => point.requests), [0, 4]);
  }
});

test("old points are joined and very old ones dropped", () => {
  const now = 2_000_000;
  const points = Array.from({ length: 2000 }, (_, at) => ({ time: at * 1000, requests: at % 7, p50: at % 2 ? undefined : at, succeeded: 1, failed: 0, ms: { total: 2 } }));
  const kept = thinned(points, now);
  assert.ok(kept.length < 430 && kept[0].time >= now - 910_000, `${kept.length}`);
  assert.equal(kept.filter((point) => now - point.time <= 900_000).reduce((sum, point) => sum + point.succeeded, 0) >= 895, true);
  assert.deepEqual([kept[5].succeeded, kept[5].ms.total, kept[5].requests], [5, 10, Math.max(...points.filter((point) => Math.floor(point.time / 5000) === Math.floor(kept[5].time / 5000)).map((point) => point.requests))]);
});

function failure(sequence, reason, more = {}) {
  return { sequence, reason, model: "m", version: 1, protocol: "http", status: 400, client: "10.0.0.7", time_ms: 1000 * sequence, ...more };
}

test("failures with one reason are one group, whatever numbers are in it", () => {
  const groups = groupsOf([
    failure(1, "shape [1,3] is wrong"),
    failure(2, "no such model", { model: "n" }),
    failure(3, "shape [1,4] is wrong", { client: "trainer" }),
    failure(4, "shape [1,5] is wrong", { client: "trainer" }),
    failure(5, "shape [1,5] is wrong", { status: 503 }),
  ]);
  assert.deepEqual(groups.map(({ count, last, first_ms: first }) => [count, last.sequence, first]), [[1, 5, 5000], [3, 4, 1000], [1, 2, 2000]]);
  assert.equal(clientsText(groups[1]), "trainer, 10.0.0.7");
  const many = groupsOf([1, 2, 3, 4, 5].map((at) => failure(at, "r", { client: `c${at}` })));
  assert.equal(clientsText(many[0]), "c1, c2, c3 and 2 more");
  assert.equal(clientsText(groupsOf([failure(1, "r", { client: "" })])[0]), "unknown");
});

test("only lines of a file with their caret are not wrapped", () => {
  const reason = "m/config.pbtxt:4:1: error: no field\n  |\n4 | max_batch_sise: 8\n  | ^\n  = help: did you mean `max_batch_size`?";
  assert.deepEqual(partsOf(reason).map(({ isExcerpt, text }) => [isExcerpt, text.split("\n").length]), [[false, 1], [true, 3], [false, 1]]);
  assert.deepEqual(partsOf("bad\n  text\n  ^").map(({ isExcerpt, text }) => [isExcerpt, text.split("\n").length]), [[false, 1], [true, 2]]);
  assert.equal(partsOf(reason).map(({ text }) => text).join("\n"), reason);
  assert.deepEqual(partsOf("plain"), [{ isExcerpt: false, text: "plain" }]);
});

test("general routes come before those of models", () => {
  const route = (tag, path) => ({ tag, path });
  const tags = [{ name: "inference", description: "Requests" }, { name: "statistics", description: "Counters" }, { name: "console", description: "None here" }];
  const routes = [route("inference", "/v2/models/a/infer"), route("inference", "/v2/models/{model_name}/infer"), route("statistics", "/v2/models/stats"), route("inference", "/v2/models/b/infer"), route("inference", "/v2/models/a/generate")];
  const shown = sectionsOf(tags, routes).map(({ title, own }) => [title, ...own.map(({ path }) => path)]);
  assert.deepEqual(shown, [
    ["Requests", "/v2/models/{model_name}/infer"],
    ["Counters", "/v2/models/stats"],
    ["Model a", "/v2/models/a/infer", "/v2/models/a/generate"],
    ["Model b", "/v2/models/b/infer"],
  ]);
});
