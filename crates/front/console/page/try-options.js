// The rest of a request: outputs and how they come, id, priority, time-out, parameters of the model's own.

import { button, element } from "./dom.js";
import { FieldError, checkbox, choice, labelled, messageFor, numberField, typedNumber } from "./try-form.js";
import { wantsBytes } from "./try-request.js";
import { TYPES } from "./try-types.js";

/** Of an output with a file of labels, so many classes are asked for at first. */
const FIRST_CLASSES = 5;
/** What a request says in other places, or the server does not know yet. */
const RESERVED = ["sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "binary_data_output", "headers"];
const MOST_PARAMETERS = 50;

function outputRow(output, hasLabels) {
  const { box, node } = checkbox("output", `${output.name} ${output.datatype} [${output.shape.join(", ")}]`, true);
  const type = TYPES[output.datatype];
  const classes = type && !type.isBool && (hasLabels || output.shape.length <= 2) ? numberField("classes", hasLabels ? FIRST_CLASSES : "", { placeholder: "all", inputmode: "numeric" }) : null;
  const parts = classes ? [labelled("Only the highest classes", classes)] : [];
  const row = element("div", { class: "try-panel", "data-wanted": output.name }, node, ...parts);
  const read = () => ({ ...output, isWanted: box.checked, classes: classes && typedNumber(classes, "Classes", { isWhole: true, low: 1 }) });
  return { row, read };
}

/** `outputs` have name, datatype, shape and label file. */
export function outputOptions(outputs, isDecoupled) {
  const rows = outputs.map((output) => outputRow(output, Boolean(output.labels) && !isDecoupled));
  const forms = [["auto", "JSON, or bytes for large tensors"], ["json", "JSON"], ["binary", "bytes"], ["lines", "responses one by one, as they come"]];
  const form = choice("form", forms, isDecoupled ? "lines" : "auto");
  const message = messageFor(() => form);
  const summary = element("summary", {}, "Outputs");
  const node = element("details", { class: "try-options", "data-options": "outputs" }, summary, ...rows.map((row) => row.row), labelled("Format of the answer", form), message.node);
  const read = () => {
    const all = rows.map((row) => row.read());
    const wanted = all.filter((output) => output.isWanted);
    if (!wanted.length) throw new FieldError(form, "Choose at least one output.");
    const isPlain = wanted.length === all.length && all.every((output) => !output.classes);
    const formFor = (inputs) => (form.value === "auto" ? (wantsBytes(wanted, inputs) ? "binary" : "json") : form.value);
    return { outputs: isPlain ? null : wanted, formFor };
  };
  return { node, message, read };
}

function typedValue(kind, control) {
  const text = control.value;
  if (kind === "text") return text;
  if (kind === "bool" && /^(true|false)$/.test(text.trim())) return text.trim() === "true";
  if (kind === "number" && /^-?\d+$/.test(text.trim())) return BigInt(text.trim());
  if (kind === "number" && text.trim() && Number.isFinite(Number(text))) return Number(text);
  throw new FieldError(control, `"${text}" is not ${kind === "bool" ? "true or false" : "a number"}`);
}

function parameterRow(remove) {
  const key = element("input", { name: "key", autocomplete: "off", "aria-label": "Name of the parameter", placeholder: "name" });
  const value = element("input", { name: "value", autocomplete: "off", "aria-label": "Value of the parameter", placeholder: "value" });
  const kind = choice("kind", [["text", "text"], ["number", "number"], ["bool", "true or false"]], "text");
  kind.setAttribute("aria-label", "Kind of the value");
  const row = element("div", { class: "try-panel", "data-parameter": "" }, key, value, kind, button("Remove", () => remove(made)));
  const read = () => {
    const name = key.value.trim();
    if (!name) throw new FieldError(key, "A parameter needs a name.");
    if (RESERVED.includes(name)) throw new FieldError(key, `"${name}" cannot be set here.`);
    return [name, typedValue(kind.value, value)];
  };
  const made = { row, key, read };
  return made;
}

export function parameterOptions() {
  const id = element("input", { name: "id", autocomplete: "off" });
  const priority = numberField("priority", "", { placeholder: "default", inputmode: "numeric" });
  const timeout = numberField("timeout", "", { placeholder: "none", inputmode: "numeric" });
  const message = messageFor(() => id);
  const list = element("div", {});
  const rows = [];
  const remove = (made) => {
    rows.splice(rows.indexOf(made), 1);
    made.row.remove();
    add.focus();
  };
  const add = button("Add a parameter", () => {
    if (rows.length >= MOST_PARAMETERS) return;
    rows.push(parameterRow(remove));
    list.append(rows.at(-1).row);
    rows.at(-1).key.focus();
  });
  const known = element("div", { class: "try-panel" }, labelled("Id", id), labelled("Priority", priority), labelled("Time-out in microseconds", timeout));
  const node = element("details", { class: "try-options", "data-options": "parameters" }, element("summary", {}, "Id, priority, parameters"), known, list, add, message.node);
  const whole = { isWhole: true, low: 0 };
  const read = () => ({
    id: id.value,
    priority: typedNumber(priority, "Priority", whole),
    timeout: typedNumber(timeout, "Time-out", whole),
    custom: rows.map((row) => row.read()),
  });
  return { node, message, read };
}
