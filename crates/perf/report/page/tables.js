// Tables: names at the left, numbers at the right of their column.

import { element } from "./dom.js";

const SMALL = 8;

/** A cell is a text, or has a `text`, a `kind`, a `note` for screen readers only, and text in small print `below`. */
function cellOf(content) {
  const { text, kind = "", note, below } = typeof content === "string" ? { text: content } : content;
  const more = [...(below ? [element("small", {}, below)] : []), ...(note ? [element("span", { class: "said" }, ` ${note}`)] : [])];
  return element("td", { class: kind }, text, ...more);
}

function rowOf({ kind, cells: [name, ...cells] }) {
  return element("tr", { class: kind }, element("th", { scope: "row" }, name), ...cells.map(cellOf));
}

/** A table without some columns, which are named. */
export function without({ caption, head, rows }, empty) {
  const isKept = (_, at) => !empty.includes(head[at]);
  return { caption, head: head.filter(isKept), rows: rows.map(({ kind, cells }) => ({ kind, cells: cells.filter(isKept) })) };
}

/** In a box that scrolls by itself. */
export function figureTable({ caption, head, rows }) {
  const heads = head.map((name) => element("th", { scope: "col" }, name));
  const table = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows.map(rowOf)));
  return element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption }, table);
}

/** Tables that are shown when requested. */
export function folded(name, tables, isOpen = false) {
  const filled = tables.filter(({ rows }) => rows.length);
  return filled.length ? [element("details", isOpen ? { open: "" } : {}, element("summary", {}, name), ...filled.map(figureTable))] : [];
}

/** Tables under their chart; shown at once where they are small. */
export function numbersBelow(tables) {
  return folded("Numbers", tables, tables.reduce((sum, { rows }) => sum + rows.length, 0) <= SMALL);
}
