// The table of models: sorted, filtered, and with no more rows than are looked at.

import { button, element, region, setAttribute, setChildren, setText, svg } from "./dom.js";
import { counted, duration, figure, percent } from "./format.js";
import { KINDS, batchOf, countKinds, failedOf, groupOf, kindOf, known, pageOf, versionsOf } from "./store.js";

const STEP = 50;
const names = new Intl.Collator("en", { numeric: true });
const RANKS = { failed: 0, busy: 1, ready: 2, off: 3 };

/** `of`: what is sorted by; `show`: what stands there. The class hides what a narrow screen has no room for. */
const COLUMNS = [
  { id: "name", label: "Model", kind: "text" },
  { id: "version", label: "Version", kind: "text less", of: (model) => model.version, show: (model) => model.version ?? "–" },
  { id: "state", label: "State", kind: "text", of: (model) => -RANKS[kindOf(model)] },
  { id: "requests", label: "Requests/s", of: (model) => model.rates?.requests, show: (model) => figure(model.rates?.requests) },
  { id: "failures", label: "Failed, 5 min", of: (model) => failedOf(model.key).share, show: (model) => percent(failedOf(model.key).share), isBad: (model) => failedOf(model.key).isBad },
  { id: "queue", label: "Queue", kind: "less", of: (model) => model.pending, show: (model) => figure(model.pending, 0) },
  { id: "p50", label: "p50", kind: "less", of: (model) => model.latency_ms?.p50, show: (model) => duration(model.latency_ms?.p50) },
  { id: "p99", label: "p99", kind: "least", of: (model) => model.latency_ms?.p99, show: (model) => duration(model.latency_ms?.p99) },
  { id: "batch", label: "Batch", kind: "less", of: batchOf, show: (model) => figure(batchOf(model)) },
  { id: "instances", label: "Instances", kind: "less", of: (model) => model.instances?.all, show: (model) => instances(model) },
];

function instances({ instances: counts }) {
  if (!counts) return "–";
  return counts.working === counts.all ? String(counts.all) : `${counts.working} of ${counts.all}`;
}

const SHAPES = {
  ready: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9Z",
  failed: "M6 1L11.5 10.5H.5Z",
  busy: "M6 1.5a4.5 4.5 0 0 1 0 9Z M6 1.5a4.5 4.5 0 1 0 0 9",
  off: "M2 2H10V10H2Z",
};

/** A state by its shape, its colour and its name. */
export function badge() {
  const shape = svg("path", {});
  const word = element("span", {});
  const node = element("span", { class: "state" }, svg("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, shape), word);
  const set = (model) => {
    const kind = kindOf(model);
    setAttribute(node, "data-kind", kind);
    setAttribute(shape, "d", SHAPES[kind]);
    setText(word, model.state === "UNLOADING" ? "Unloading" : KINDS[kind]);
  };
  return { node, set };
}

/** One version's row, which is kept as long as the version is there. */
function makeRow(model) {
  const group = groupOf(model);
  const state = badge();
  const others = COLUMNS.filter((column) => column.show).map((column) => [column, element("td", column.kind ? { class: column.kind } : {})]);
  const several = versionsOf(group).length > 1 ? model.version : null;
  const link = element("a", { href: pageOf(group, "", several) }, model.name);
  const name = element("th", { scope: "row", class: "text name" }, link);
  if (model.namespace) name.append(element("small", {}, ` ${model.namespace}`));
  const cells = new Map(others.map(([column, node]) => [column.id, node]));
  cells.set("state", element("td", { class: "text" }, state.node));
  const node = element("tr", {}, name, ...COLUMNS.slice(1).map((column) => cells.get(column.id)));
  const update = (now) => {
    state.set(now);
    for (const [column, cell] of others) {
      setText(cell, column.show(now));
      cell.classList.toggle("over", Boolean(column.isBad?.(now)));
    }
  };
  return { node, update };
}

function compare(by, direction) {
  const { of } = COLUMNS.find((column) => column.id === by);
  const byName = (a, b) => names.compare(a.name, b.name) || (a.version ?? 0) - (b.version ?? 0);
  if (!of) return (a, b) => direction * byName(a, b);
  return (a, b) => direction * ((of(a) ?? -1) - (of(b) ?? -1)) || byName(a, b);
}

/** The heads of the columns, which sort. */
function makeHead(sort, changed) {
  const heads = COLUMNS.map((column) => {
    const choose = () => {
      const first = column.kind?.includes("text") && column.id !== "state" ? 1 : -1;
      sort.direction = sort.by === column.id ? -sort.direction : first;
      sort.by = column.id;
      changed();
    };
    return element("th", { scope: "col", class: column.kind ?? "" }, button(column.label, choose, { class: "sort" }));
  });
  const update = () =>
    heads.forEach((head, at) => {
      const order = sort.direction > 0 ? "ascending" : "descending";
      setAttribute(head, "aria-sort", COLUMNS[at].id === sort.by ? order : null);
    });
  return { node: element("thead", {}, element("tr", {}, ...heads)), update };
}

/** Buttons for the states, each with how many there are. */
function makeKinds(view, changed) {
  const all = { all: "All", ...KINDS };
  const buttons = Object.keys(all).map((kind) => {
    const count = element("span", { class: "count" });
    const node = button("", () => view.choose(kind), { "data-filter": kind });
    node.append(`${all[kind]} `, count);
    return { kind, node, count };
  });
  view.choose = (kind) => {
    view.kind = kind;
    changed();
  };
  const update = () => {
    const counts = countKinds();
    for (const { kind, node, count } of buttons) {
      const number = kind === "all" ? known.models.size : counts[kind];
      setText(count, figure(number, 0));
      setAttribute(node, "aria-pressed", view.kind === kind);
      node.hidden = number === 0 && kind !== "all" && view.kind !== kind;
    }
  };
  return { node: element("div", { class: "kinds", role: "group", "aria-label": "State" }, ...buttons.map((one) => one.node)), update };
}

/** The whole part of the page; `showKind` chooses a state from elsewhere. */
export function modelList() {
  const view = { kind: "all", text: "", most: STEP, order: [] };
  const sort = { by: "name", direction: 1 };
  const rows = new Map();
  const search = element("input", { type: "search", "aria-label": "Find models by name", placeholder: "Find by name", autocomplete: "off", spellcheck: "false" });
  const head = makeHead(sort, () => draw(true));
  const kinds = makeKinds(view, () => {
    view.most = STEP;
    draw(true);
  });
  const body = element("tbody", {});
  const shown = element("p", { class: "faint", role: "status" });
  const more = button("", () => {
    view.most += STEP * 4;
    draw(true);
  });
  const scroll = region("Models", element("table", { class: "models" }, element("caption", { class: "unseen" }, "Models"), head.node, body));
  const node = element("div", {}, element("div", { class: "tools" }, search, kinds.node), scroll, element("div", { class: "tools" }, shown, more));
  search.addEventListener("input", () => {
    [view.text, view.most] = [search.value.trim().toLowerCase(), STEP];
    draw(true);
  });

  /** Rows move under nobody's pointer or keyboard. */
  const isInUse = () => scroll.matches(":hover") || body.contains(document.activeElement);
  function wanted() {
    const fits = (model) => (view.kind === "all" || kindOf(model) === view.kind) && model.name.toLowerCase().includes(view.text);
    return [...known.models.values()].filter(fits).sort(compare(sort.by, sort.direction));
  }
  function reorder(isAsked) {
    const keys = wanted().map((model) => model.key);
    const isSame = keys.length === view.order.length && view.order.every((key) => known.models.has(key));
    if (!isAsked && isSame && isInUse()) return;
    view.order = keys;
  }
  function draw(isAsked) {
    reorder(isAsked);
    const keys = view.order.slice(0, view.most).filter((key) => known.models.has(key));
    for (const key of rows.keys()) if (!keys.includes(key)) rows.delete(key);
    for (const key of keys) {
      if (!rows.has(key)) rows.set(key, makeRow(known.models.get(key)));
      rows.get(key).update(known.models.get(key));
    }
    setChildren(body, keys.map((key) => rows.get(key).node));
    const left = view.order.length - keys.length;
    const missing = known.leftOut ? `; ${counted(known.leftOut, "version")} more than the console shows` : "";
    setText(shown, view.order.length ? `${figure(keys.length, 0)} of ${counted(view.order.length, "version")}${missing}` : `No model matches${missing}.`);
    setText(more, `Show ${Math.min(left, STEP * 4)} more`);
    more.hidden = left <= 0;
    head.update();
    kinds.update();
  }
  return { node, update: () => draw(false), showKind: (kind) => view.choose(kind) };
}
