// Requests that failed, with their reasons.

import { element, region, setChildren } from "./dom.js";
import { clock, counted } from "./format.js";
import { known, pageOf } from "./store.js";

function makeRow(failure) {
  const name = failure.version === null ? failure.model : `${failure.model} ${failure.version}`;
  const isKnown = [...known.models.values()].some((model) => model.name === failure.model);
  const model = isKnown ? element("a", { href: pageOf(failure.model) }, name) : name;
  const id = failure.id ? [element("small", {}, ` request ${failure.id}`)] : [];
  const cells = [
    [clock(failure.time_ms), "text"],
    [model, "text"],
    [`${failure.status}`, ""],
    [failure.reason, "reason"],
    [failure.call, "text faint"],
  ];
  const made = cells.map(([content, kind]) => element("td", kind ? { class: kind } : {}, content));
  made[3].append(...id);
  return element("tr", {}, ...made);
}

/** The last `most` of one model, or of all where none is named. */
export function failureTable(model, most) {
  const rows = new Map();
  const body = element("tbody", {});
  const heads = [["Time", "text"], ["Model", "text"], ["Status", ""], ["Reason", "text"], ["Call", "text"]];
  const head = element("tr", {}, ...heads.map(([name, kind]) => element("th", { scope: "col", class: kind }, name)));
  const scroll = region("Failed requests", element("table", {}, element("caption", { class: "unseen" }, "Failed requests"), element("thead", {}, head), body));
  const none = element("p", { class: "faint" }, "No request has failed.");
  const node = element("div", {}, scroll, none);
  let wanted = model;
  function update() {
    const last = known.failures.filter((failure) => !wanted || failure.model === wanted).slice(-most).reverse();
    const kept = new Set(last.map((failure) => failure.sequence));
    for (const key of rows.keys()) if (!kept.has(key)) rows.delete(key);
    for (const failure of last) if (!rows.has(failure.sequence)) rows.set(failure.sequence, makeRow(failure));
    setChildren(body, last.map((failure) => rows.get(failure.sequence)));
    scroll.hidden = !last.length;
    none.hidden = last.length > 0;
    return last.length;
  }
  const show = (name) => {
    wanted = name;
    return update();
  };
  return { node, update, show };
}

/** All that are kept, of one model if somebody asks for it. */
export function failuresPage(model) {
  const shown = failureTable(model, 100);
  const choice = element("select", { id: "of-model" });
  const count = element("span", { class: "faint" });
  choice.addEventListener("change", () => {
    shown.show(choice.value);
    update();
  });
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
    count.textContent = counted(shown.update(), "request");
  }
  const tools = element("div", { class: "tools" }, element("label", { for: "of-model" }, "Model"), choice, count);
  const told = element("p", { class: "faint" }, "The last 100 requests that failed since the server has started. Only the server's memory keeps them.");
  return { node: element("div", {}, element("h1", {}, "Failed requests"), told, tools, shown.node), update, title: "Failed requests" };
}
