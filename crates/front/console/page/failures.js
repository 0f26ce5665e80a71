// Requests that failed: by reason, and each of them.

import { element, region, setChildren, setText } from "./dom.js";
import { clock, counted, figure, moment } from "./format.js";
import { clientsText, groupsOf, partsOf } from "./groups.js";
import { known, pageOf } from "./store.js";

/** A reason as it is: what is to be read is wrapped, so that the advice at its end is seen; a line with its caret is not. */
export function reasonBlock(reason, attributes) {
  const part = ({ isExcerpt, text }) => element("span", { class: isExcerpt ? "excerpt" : "wrapped" }, text);
  return element("pre", attributes, ...partsOf(reason).map(part));
}

function modelLink({ model, version }) {
  const name = version === null ? model : `${model} ${version}`;
  const isKnown = [...known.models.values()].some((one) => one.name === model);
  return isKnown ? element("a", { href: pageOf(model) }, name) : name;
}

function timeOf(ms) {
  return element("time", { datetime: new Date(ms).toISOString() }, moment(ms));
}

function reasonOf({ reason, id }) {
  return [reason, ...(id ? [element("small", {}, ` request ${id}`)] : [])];
}

const COLUMNS = {
  groups: [["Count", ""], ["Last", "text"], ["Model", "text"], ["Status", ""], ["Reason", "text"], ["Clients", "text"], ["Call", "text"]],
  requests: [["Date", "text"], ["Model", "text"], ["Status", ""], ["Reason", "text"], ["Client", "text"], ["Call", "text"]],
};

const status = (failure) => [String(failure.status ?? failure.code), "bad"];

function requestRow(failure) {
  const { client, call } = failure;
  return [[timeOf(failure.time_ms), "text"], [modelLink(failure), "text"], status(failure), [reasonOf(failure), "reason"], [client || "unknown", "text"], [call, "text faint"]];
}

function groupRow(group) {
  const { last, count, first_ms: first } = group;
  const since = count > 1 ? [element("small", {}, ` first ${clock(first)}`)] : [];
  const reason = [reasonOf(last), "reason"];
  return [[figure(count, 0), ""], [[timeOf(last.time_ms), ...since], "text when"], [modelLink(last), "text"], status(last), reason, [clientsText(group), "text clients"], [last.call, "text faint"]];
}

/** The names of the columns stand beside the values on a narrow screen, where a row is a card. */
function rowOf(columns, cells) {
  return element("tr", {}, ...cells.map(([content, kind], at) => element("td", { ...(kind ? { class: kind } : {}), "data-label": columns[at][0] }, ...[content].flat())));
}

function tableOf(title, columns) {
  const rows = new Map();
  const body = element("tbody", {});
  const head = element("tr", {}, ...columns.map(([name, kind]) => element("th", { scope: "col", ...(kind ? { class: kind } : {}) }, name)));
  const node = region(title, element("table", { class: "cards" }, element("caption", { class: "unseen" }, title), element("thead", {}, head), body));
  /** Rows of `key` and `version`: one whose version is the same stays as it is. */
  function show(wanted) {
    const keys = new Set(wanted.map((one) => one.key));
    for (const key of rows.keys()) if (!keys.has(key)) rows.delete(key);
    for (const { key, version, cells } of wanted) {
      if (rows.get(key)?.version !== version) rows.set(key, { version, node: rowOf(columns, cells()) });
    }
    setChildren(body, wanted.map(({ key }) => rows.get(key).node));
    node.hidden = !wanted.length;
  }
  return { node, show };
}

/** The failed requests of one model, or of all where none is named: `most` groups by reason, the last one first. */
export function failureTable(model, most) {
  const shown = tableOf("Failed requests by reason", COLUMNS.groups);
  const none = element("p", { class: "faint" }, "No request has failed.");
  const node = element("div", {}, shown.node, none);
  let wanted = model;
  function update() {
    const own = known.failures.filter((failure) => !wanted || failure.model === wanted);
    const groups = groupsOf(own).slice(0, most);
    shown.show(groups.map((group) => ({ key: group.key, version: group.last.sequence, cells: () => groupRow(group) })));
    none.hidden = groups.length > 0;
    return own;
  }
  const show = (name) => {
    wanted = name;
    return update();
  };
  return { node, update, show };
}

/** All that are kept, of one model if somebody asks for it. */
export function failuresPage(model) {
  const groups = failureTable(model, 100);
  const each = tableOf("Failed requests, the last one first", COLUMNS.requests);
  const choice = element("select", { id: "of-model" });
  const count = element("span", { class: "faint" });
  const told = element("p", { class: "faint" });
  const title = element("h2", {}, "Each request");
  choice.addEventListener("change", () => update());
  let drawn = "";
  function drawChoice() {
    const names = [...new Set([...known.failures.map((failure) => failure.model), ...(model ? [model] : [])])].filter(Boolean).sort();
    if (names.join("\n") === drawn) return;
    const chosen = choice.value || model;
    drawn = names.join("\n");
    const option = (value, label) => element("option", value === chosen ? { value, selected: "" } : { value }, label);
    choice.replaceChildren(option("", "All models"), ...names.map((name) => option(name, name)));
  }
  function update() {
    drawChoice();
    const own = groups.show(choice.value).slice().reverse();
    each.show(own.map((failure) => ({ key: failure.sequence, version: 0, cells: () => requestRow(failure) })));
    title.hidden = !own.length;
    setText(count, counted(own.length, "request"));
    const all = known.failures.at(-1)?.sequence ?? 0;
    const kept = known.failures.length;
    setText(told, all > kept ? `The last ${kept} of ${counted(all, "request")} that failed since the server started. Only the server's memory keeps them.` : "Requests that failed since the server started. The server keeps the last 100 in its memory only.");
  }
  const tools = element("div", { class: "tools" }, element("label", { for: "of-model" }, "Model"), choice, count);
  return { node: element("div", {}, element("h1", {}, "Failed requests"), told, tools, groups.node, title, each.node), update, title: "Failed requests" };
}
