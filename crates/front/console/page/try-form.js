// Parts of the form: controls with their labels, messages beside them, numbers as typed.

import { button, element } from "./dom.js";

let made = 0;

/** An id that no other element of the page has. */
export function newId() {
  made += 1;
  return `try-${made}`;
}

/** A control below its label. */
export function labelled(label, control, hint = "") {
  control.id ||= newId();
  const said = hint ? [element("span", { class: "try-hint", id: `${control.id}-hint` }, hint)] : [];
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return element("div", { class: "try-control" }, element("label", { for: control.id }, label), control, ...said);
}

/** A list to choose from; `options` are pairs of value and text. */
export function choice(name, options, chosen) {
  const list = element("select", { name }, ...options.map(([value, text]) => element("option", { value }, text)));
  if (options.some(([value]) => String(value) === String(chosen))) list.value = chosen;
  return list;
}

export function numberField(name, value, more = {}) {
  return element("input", { name, type: "text", inputmode: "decimal", autocomplete: "off", size: 6, value, ...more });
}

export function checkbox(name, label, isChecked) {
  const box = element("input", { type: "checkbox", name, id: newId() });
  box.checked = isChecked;
  return { box, node: element("div", { class: "try-check" }, box, element("label", { for: box.id }, label)) };
}

/** What is wrong with one control, told beside it. */
export class FieldError extends Error {
  constructor(control, message) {
    super(message);
    this.control = control;
  }
}

/** The number in a control; `null` where nothing stands in it. */
export function typedNumber(control, what, { isWhole = false, low = -Infinity, high = Infinity } = {}) {
  const text = control.value.trim();
  if (!text) return null;
  const value = Number(text);
  const fits = Number.isFinite(value) && value >= low && value <= high && (!isWhole || Number.isSafeInteger(value));
  if (!fits) throw new FieldError(control, `${what}: "${text}" is not a ${isWhole ? "whole " : ""}number${low > -Infinity ? ` from ${low} on` : ""}`);
  return value;
}

/** A place for a message, and what shows and takes away one. */
export function messageFor(fallback) {
  const node = element("p", { class: "try-error", role: "alert", id: newId() });
  let marked = null;
  return {
    node,
    clear() {
      node.textContent = "";
      marked?.removeAttribute("aria-invalid");
      if (marked) forget(marked, node.id);
      marked = null;
    },
    show(message, control = fallback()) {
      this.clear();
      node.textContent = message;
      marked = control;
      control.setAttribute("aria-invalid", "true");
      const described = control.getAttribute("aria-describedby");
      control.setAttribute("aria-describedby", described ? `${described} ${node.id}` : node.id);
    },
  };
}

function forget(control, id) {
  const rest = (control.getAttribute("aria-describedby") ?? "").split(" ").filter((other) => other !== id);
  if (rest.join("")) control.setAttribute("aria-describedby", rest.join(" "));
  else control.removeAttribute("aria-describedby");
}

/** A button that gives a file to keep; `content` is asked for when it is pressed. */
export function download(label, name, content) {
  return button(label, async () => {
    const url = URL.createObjectURL(await content());
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  });
}
