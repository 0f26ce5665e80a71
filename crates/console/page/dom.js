// Elements made of text: nothing that a server says is read as markup.

/** An element with attributes and children, which are elements or text. */
export function element(name, attributes, ...children) {
  const made = document.createElement(name);
  Object.entries(attributes).forEach(([attribute, value]) => made.setAttribute(attribute, value));
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
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

/** A table; columns whose name begins with a star hold text. */
export function table(caption, columns, rows) {
  const head = columns.map((name) => {
    const isText = name.startsWith("*");
    return element("th", isText ? { class: "text", scope: "col" } : { scope: "col" }, isText ? name.slice(1) : name);
  });
  const body = rows.map((row) => element("tr", {}, ...row.map(cell)));
  return element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...body),
  );
}

/** What scrolls sideways by itself on a narrow screen, by keyboard too. */
export function region(label, content) {
  return element("div", { class: "wide", role: "region", "aria-label": label, "data-key": label, tabindex: 0 }, content);
}
