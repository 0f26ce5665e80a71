// A form to try a model with: made from its metadata and configuration, sent as any client sends, the answer shown, and the
// same request for a terminal.

import { button, element } from "./dom.js";
import { ask } from "./events.js";
import { headerForm, headers as given, wantedHeader } from "./restricted.js";
import { curl, FILE, infer, python } from "./try-code.js";
import { inputField } from "./try-field.js";
import { FieldError, download, newId } from "./try-form.js";
import { outputOptions, parameterOptions } from "./try-options.js";
import { buildRequest } from "./try-request.js";
import { send } from "./try-send.js";
import { responseList, showRefusal } from "./try-show.js";

const LONGEST_CODE = 20000;

/** What a model takes and gives: metadata (with the batch dimension) joined with what the configuration adds. */
export function describe(metadata, config) {
  const hasBatch = (config.max_batch_size ?? 0) > 0;
  const of = (list, name) => (list ?? []).find((tensor) => tensor.name === name) ?? {};
  const joined = (tensors, list) =>
    (tensors ?? []).map(({ name, datatype, shape }) => {
      const more = of(list, name);
      const format = { FORMAT_NCHW: "NCHW", FORMAT_NHWC: "NHWC" }[more.format] ?? "";
      return { name, datatype, shape: shape.map(Number), format, isOptional: more.optional === true, labels: more.label_filename ?? "" };
    });
  return {
    hasBatch,
    isDecoupled: config.model_transaction_policy?.decoupled === true,
    inputs: joined(metadata.inputs, config.input),
    outputs: joined(metadata.outputs, config.output),
  };
}

/** Paths have names as they are: no percent escape is resolved. */
function fitsPath(name) {
  return encodeURIComponent(name) === name && !/^\.+$/.test(name);
}

/** The form of one model in `node`. `headers` are values for restricted calls; `signal` ends what is on its way. */
export async function mountTry(node, { model, version = "", headers = given, base = new URL(".", document.baseURI).href, signal }) {
  const root = `${base}v2/models/${model}${version ? `/versions/${version}` : ""}`;
  node.classList.add("try");
  if (!fitsPath(model)) return node.replaceChildren(element("p", {}, "The model's name cannot be part of an address, so HTTP requests cannot reach the model."));
  try {
    const asked = ["", "/config"].map(async (path) => (await ask(root + path, { headers, signal })).json());
    const [metadata, config] = await Promise.all(asked);
    node.replaceChildren(...tryForm({ model, version, headers, base, signal, ...describe(metadata, config) }));
  } catch (error) {
    if (signal?.aborted) return;
    const again = () => mountTry(node, { model, version, headers, base, signal });
    const told = element("div", { role: "alert" }, element("p", {}, "Cannot read the inputs of the model:"), ...showRefusal(error));
    node.replaceChildren(told, headerForm(error, again) ?? "", button("Try again", again));
  }
}

function tryForm(about) {
  const fields = about.inputs.map((input) => inputField(input, about.hasBatch));
  const outputs = outputOptions(about.outputs, about.isDecoupled);
  const parameters = parameterOptions();
  const go = element("button", { type: "submit", class: "try-send" }, "Send");
  const stop = element("button", { type: "button", disabled: "" }, "Cancel");
  const status = element("p", { role: "status", class: "try-status" });
  const result = element("div", { class: "try-result", role: "region", "aria-label": "Answer" });
  const code = element("div", { class: "try-code" });
  const form = element("form", { novalidate: "", "aria-label": `Request to ${about.model}` }, ...fields.map((field) => field.node), outputs.node, parameters.node, element("p", {}, go, stop), status);
  const run = { about, fields, outputs, parameters, go, stop, status, result, code, form, current: null, sent: {} };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!run.current) submit(run);
  });
  stop.addEventListener("click", () => run.current?.abort());
  return [form, result, code];
}

/** The settings of one part of the form, or `undefined` with the reason shown beside it. */
function readPart(part) {
  part.message.clear();
  try {
    return part.read();
  } catch (error) {
    part.node.open = true;
    part.message.show(error.message, error instanceof FieldError ? error.control : undefined);
    return undefined;
  }
}

async function readForm({ about, fields, outputs, parameters }) {
  const inputs = [];
  for (const field of fields) inputs.push(await field.read());
  const parts = [readPart(outputs), readPart(parameters)];
  if ([...inputs, ...parts].includes(undefined)) return null;
  const { model, version } = about;
  const given = inputs.filter(Boolean);
  const [{ outputs: wanted, formFor }, settings] = parts;
  return buildRequest({ model, version, inputs: given, outputs: wanted, parameters: settings, form: formFor(given) });
}

async function submit(run) {
  const stopper = new AbortController();
  run.current = stopper;
  const outer = run.about.signal;
  const end = () => stopper.abort();
  outer?.addEventListener("abort", end);
  run.go.setAttribute("aria-disabled", "true");
  run.stop.disabled = false;
  try {
    await prepared(run, stopper.signal);
  } finally {
    outer?.removeEventListener("abort", end);
    const hadFocus = document.activeElement === run.stop;
    run.stop.disabled = true;
    run.go.removeAttribute("aria-disabled");
    if (hadFocus) run.go.focus();
    run.current = null;
  }
}

async function prepared(run, signal) {
  run.status.textContent = "Reading the form …";
  const request = await readForm(run);
  if (!request) {
    run.status.textContent = "Nothing was sent: see the messages above.";
    run.form.querySelector("[aria-invalid]")?.focus();
    return;
  }
  showCode(run, request);
  await answered(run, request, signal);
}

/** With the headers that this call turns out to want, of those whose values are known. */
async function sendAsWanted(run, request, signal, took) {
  const { base, headers } = run.about;
  try {
    await send(request, base + request.path, run.sent, signal, took);
  } catch (error) {
    const name = wantedHeader(error);
    if (!name || !(name in headers) || run.sent[name] === headers[name]) throw error;
    run.sent[name] = headers[name];
    showCode(run, request);
    await sendAsWanted(run, request, signal, took);
  }
}

async function answered(run, request, signal) {
  const { status, result } = run;
  const started = performance.now();
  const spent = () => performance.now() - started;
  const list = responseList(result, request.form === "lines");
  let failed = 0;
  status.textContent = "Sent; waiting for the answer …";
  try {
    await sendAsWanted(run, request, signal, (response) => {
      if (response.error !== undefined) failed += 1;
      list.take(response, spent());
    });
    status.textContent = `${request.form === "lines" ? counted(list.size) : "Answer"} after ${spent().toFixed(1)} ms${failed ? `, ${failed} of them errors` : ""}.`;
  } catch (error) {
    ended(run, error, list, spent(), signal);
  }
}

function counted(responses) {
  return `${responses} response${responses === 1 ? "" : "s"}`;
}

function ended({ status, result, fields, form }, error, list, spent, signal) {
  if (signal.aborted) {
    status.textContent = `Cancelled after ${spent.toFixed(0)} ms${list.size ? `, with ${counted(list.size)}` : ""}.`;
    return;
  }
  const place = element("div", { role: "alert" }, ...showRefusal(error));
  if (list.size) result.append(place);
  else result.replaceChildren(place, headerForm(error, () => form.requestSubmit()) ?? "");
  const named = fields.find((field) => field.isGiven() && names(error.message, field.name));
  named?.message.show(error.message.slice(0, 500));
  status.textContent = error.status ? `Refused after ${spent.toFixed(1)} ms.` : `No answer after ${spent.toFixed(1)} ms.`;
}

/** Whether a server's text is about an input. */
function names(text, name) {
  return [`'${name}'`, `"${name}"`, `input ${name} `].some((part) => text.includes(part));
}

/** The same request for a terminal, below the answer. */
function showCode({ about, code, sent }, request) {
  const secrets = Object.keys(sent);
  const commands = [
    ["curl", curl(request, about.base, secrets)],
    ["Python", python(request, about.base, secrets)],
    ["galatea infer", infer(request, about.base, secrets)],
  ];
  const file = () => new Blob([request.body], { type: "application/octet-stream" });
  const readers = commands.filter(([, text]) => text?.includes(FILE)).map(([name]) => name);
  const needed = readers.length ? [element("p", {}, `${readers.join(" and ")} read${readers.length > 1 ? "" : "s"} a file: `, download(`Download ${FILE}`, FILE, file))] : [];
  const hidden = secrets.length ? [element("p", {}, `They read the value of ${secrets.join(", ")} from the environment.`)] : [];
  const shown = commands.filter(([, text]) => text !== null).map(([name, text]) => codeBlock(name, text));
  code.replaceChildren(element("h3", {}, "The same request elsewhere"), ...needed, ...hidden, ...shown);
}

function codeBlock(name, text) {
  const said = element("span", { role: "status" });
  const id = newId();
  const shown = text.length > LONGEST_CODE ? `${text.slice(0, LONGEST_CODE)}\n… (${text.length} characters: copy it)` : text;
  const block = element("pre", { id, tabindex: 0, "data-code": name }, shown);
  const copy = button("Copy", async () => (said.textContent = (await copied(text, block)) ? "Copied." : "The browser does not allow copying: select the text."));
  copy.setAttribute("aria-label", `Copy ${name}`);
  return element("details", name === "curl" ? { open: "" } : {}, element("summary", {}, name), element("p", {}, copy, " ", said), block);
}

/** By the clipboard; a page without encryption has none but an old way, which needs the text selected. */
async function copied(text, block) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  getSelection().selectAllChildren(block);
  return block.textContent === text && document.execCommand("copy");
}
