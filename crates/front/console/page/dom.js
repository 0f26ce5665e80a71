// Elements made of text: nothing that a server says is read as markup. What is there is changed, not made anew.

const SVG = "http://www.w3.org/2000/svg";

function filled(made, attributes, children) {
  Object.entries(attributes).forEach(([attribute, value]) => made.setAttribute(attribute, value));
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** An element with attributes and children, which are elements or text. */
export function element(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same of a picture. */
export function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** A button that does something. */
export function button(label, action, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", action);
  return made;
}

/** Sets a text where it is another one: a selection in it stays, and so does what is read out. */
export function setText(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** Sets an attribute where it has another value; `null` removes it. */
export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Makes `nodes` the children of `parent`, and touches none that is in its place. */
export function setChildren(parent, nodes) {
  nodes.forEach((node, at) => {
    const there = parent.childNodes[at];
    if (there !== node) parent.insertBefore(node, there ?? null);
  });
  while (parent.childNodes.length > nodes.length) parent.lastChild.remove();
}

/** A cell of text, which is aligned to the left. */
export function text(value, kind = "") {
  return { value, kind: `text ${kind}`.trim() };
}

function cell(content) {
  const { value, kind } = content?.kind ? content : { value: content, kind: "" };
  const parts = Array.isArray(value) ? value : [value];
  return element("td", kind ? { class: kind } : {}, ...parts);
}

/** A table; columns whose name begins with a star hold text. A column in which no row has anything is left out. */
export function table(caption, allColumns, allRows) {
  const isFilled = (_, at) => allRows.some((row) => (row[at]?.kind ? row[at].value : row[at]) !== "");
  const columns = allColumns.filter(isFilled);
  const rows = allRows.map((row) => row.filter(isFilled));
  const head = columns.map((name) => {
    const isText = name.startsWith("*");
    return element("th", isText ? { class: "text", scope: "col" } : { scope: "col" }, isText ? name.slice(1) : name);
  });
  const body = rows.map((row) => element("tr", {}, ...row.map(cell)));
  return element(
    "table",
    {},
    ...(caption ? [element("caption", {}, caption)] : []),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...body),
  );
}

/** What scrolls sideways by itself on a narrow screen, by keyboard too. */
export function region(label, content) {
  return element("div", { class: "wide", role: "region", "aria-label": label, tabindex: 0 }, content);
}

/** A figure with its name: `set(value, note, isBad)`; one that is bad is red, and its note says why. */
export function stat(name, ...more) {
  const value = element("b", {}, "–");
  const note = element("small", {});
  const node = element("div", { class: "stat" }, element("dt", {}, name), element("dd", {}, value, " ", note), ...more);
  const set = (shown, said = "", isBad = false) => {
    setText(value, shown);
    setText(note, said);
    node.classList.toggle("over", isBad);
  };
  return { node, set };
}

/** Control characters, and overrides of the direction, which would reorder the page around a name. */
const UNPRINTABLE = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu;

/** Of JSON that is parsed: a value that can be shown. */
export const printable = (_, value) => (typeof value === "string" ? value.replace(UNPRINTABLE, "\ufffd") : value);
