// One input of a model in the form: where its data comes from, its shape, what is wrong with it.

import { element } from "./dom.js";
import { FieldError, checkbox, choice, labelled, messageFor, numberField, typedNumber } from "./try-form.js";
import { firstSource, sourcesOf } from "./try-sources.js";

function dimension(input, axis, hasBatch) {
  const what = hasBatch && axis === 0 ? "batch" : `dimension ${axis + 1} of ${input.shape.length}`;
  return numberField("dim", "", { "aria-label": `${input.name}: ${what}`, placeholder: hasBatch && axis === 0 ? "batch" : "any", inputmode: "numeric", "data-axis": axis });
}

/** The shape: fixed dimensions as text, free ones to type. */
function shapeFields(input, hasBatch) {
  const fields = input.shape.map((dim, axis) => (dim < 0 ? dimension(input, axis, hasBatch) : null));
  const parts = input.shape.map((dim, axis) => fields[axis] ?? element("span", {}, dim));
  const separated = parts.flatMap((part, at) => (at ? [" × ", part] : [part]));
  const hint = fields.some(Boolean) ? [element("span", { class: "try-hint" }, "empty: the size of the data, else 1")] : [];
  const node = element("div", { class: "try-shape" }, element("span", {}, "Shape "), ...separated, ...hint);
  const typed = () => fields.map((field, axis) => (field ? typedNumber(field, `dimension ${axis + 1}`, { isWhole: true, low: 0 }) : null));
  return { node, typed };
}

/** `input` has name, datatype, shape (of metadata), format and isOptional. */
export function inputField(input, hasBatch) {
  const sources = sourcesOf(input);
  const pick = choice("source", Object.entries(sources).map(([name, { label }]) => [name, label]), firstSource(input));
  const panel = element("div", { class: "try-panel" });
  const shape = shapeFields(input, hasBatch);
  let source = null;
  const message = messageFor(() => source.main ?? pick);
  const change = () => {
    message.clear();
    source = sources[pick.value].build(input);
    panel.replaceChildren(...source.nodes);
  };
  pick.addEventListener("change", change);
  change();
  const given = input.isOptional ? checkbox("given", "Send this optional input", false) : null;
  const body = element("div", {}, element("div", { class: "try-source" }, labelled("Data", pick), panel), shape.node, message.node);
  if (given) {
    const show = () => body.toggleAttribute("hidden", !given.box.checked);
    given.box.addEventListener("change", show);
    show();
  }
  const legend = element("legend", {}, element("b", {}, input.name), ` ${input.datatype} [${input.shape.join(", ")}]`);
  const node = element("fieldset", { class: "try-input", "data-input": input.name }, legend, ...(given ? [given.node] : []), body);
  const isGiven = () => !given || given.box.checked;
  return { node, name: input.name, message, isGiven, read: () => read(input, source, shape, message, isGiven()) };
}

/** The tensor, `null` where it is left out, or `undefined` with the reason shown. */
async function read(input, source, shape, message, isGiven) {
  message.clear();
  if (!isGiven) return null;
  try {
    const made = await source.read(shape.typed());
    return { name: input.name, datatype: input.datatype, ...made };
  } catch (error) {
    message.show(error.message, error instanceof FieldError ? error.control : undefined);
    return undefined;
  }
}
