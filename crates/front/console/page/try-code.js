// The same request for a terminal: curl, Python and galatea infer, each as it runs.

import { sentHeaders } from "./try-request.js";
import { TYPES, asText, count, decode, digits } from "./try-types.js";

/** Longer bodies are files, not part of a command. */
const LONGEST_INLINE = 6000;
const LONGEST_LIST = 256;
/** As many equal elements are told by one. */
const SHORTEST_FULL = 8;
const NUMPY = { BOOL: "np.bool_", FP16: "np.float16", FP32: "np.float32", FP64: "np.float64", BF16: "ml_dtypes.bfloat16", BYTES: "np.object_" };
/** The file that holds a body. */
export const FILE = "request.bin";

/** Whether the body is too long to stand in a command. */
export function needsFile(request) {
  return request.body.length > LONGEST_INLINE;
}

function list(shape) {
  return `[${shape.join(", ")}]`;
}

function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function variable(header) {
  return header.toUpperCase().replace(/[^A-Z0-9]/g, "_");
}

function base64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function lines(text, width) {
  return text.match(new RegExp(`.{1,${width}}`, "g")) ?? [""];
}

/** `secrets` are names of headers whose values the environment has: they are not shown. */
export function curl(request, base, secrets) {
  const headers = Object.entries(sentHeaders(request)).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  headers.push(...secrets.map((name) => `-H "${name}: $${variable(name)}"`));
  const options = request.form === "lines" ? "-sSN" : "-sS";
  const output = request.form === "binary" ? ["--output answer.bin"] : [];
  const file = needsFile(request) ? `@${FILE}` : "@-";
  const command = [`curl ${options} ${quoted(base + request.path)}`, ...headers, ...output, `--data-binary ${file}`].join(" \\\n  ");
  if (needsFile(request)) return command;
  if (request.isPlain) return `${command} <<'JSON'\n${request.header}\nJSON`;
  return `base64 -d <<'BODY' |\n${lines(base64(request.body), 100).join("\n")}\nBODY\n${command}`;
}

function pythonText(text) {
  return JSON.stringify(text).replace(/[\u007f-\u{10ffff}]/gu, (character) => `\\U${character.codePointAt(0).toString(16).padStart(8, "0")}`);
}

function pythonNumber(datatype, value) {
  if (typeof value === "boolean") return value ? "True" : "False";
  return Number.isFinite(value) || typeof value === "bigint" ? digits(datatype, value) : `float("${value}")`;
}

function pythonBytes(bytes) {
  const text = asText(bytes);
  return text === null ? `base64.b64decode("${base64(bytes)}")` : `${pythonText(text)}.encode()`;
}

/** The numpy array of an input: a list where it is short, else what its bytes are. */
function array(request, at) {
  const { datatype, shape, bytes } = request.inputs[at];
  const dtype = NUMPY[datatype] ?? `np.${datatype.toLowerCase()}`;
  const whole = `.reshape(${list(shape)})`;
  const values = datatype === "BYTES" ? [] : decode(datatype, bytes);
  const isEven = values.length > SHORTEST_FULL && values.every((value) => Object.is(value, values[0]));
  if (isEven) return `np.full(${list(shape)}, ${pythonNumber(datatype, values[0])}, dtype=${dtype})`;
  if (request.offsets[at] !== null && needsFile(request)) return fromFile(request, at, dtype) + whole;
  if (datatype === "BYTES") return `np.array([${decode(datatype, bytes).map(pythonBytes).join(", ")}], dtype=np.object_)${whole}`;
  if (count(shape) > LONGEST_LIST) return `np.frombuffer(base64.b64decode("${base64(bytes)}"), dtype=${dtype})${whole}`;
  return `np.array([${Array.from(values, (value) => pythonNumber(datatype, value)).join(", ")}], dtype=${dtype})${whole}`;
}

function fromFile(request, at, dtype) {
  const { datatype, shape, bytes } = request.inputs[at];
  const from = request.offsets[at];
  if (datatype === "BYTES") return `deserialize_bytes_tensor(open("${FILE}", "rb").read()[${from}:${from + bytes.length}])`;
  return `np.fromfile("${FILE}", dtype=${dtype}, count=${count(shape)}, offset=${from})`;
}

function keywords({ version, outputs, parameters }, secrets) {
  const { id, priority, timeout, custom } = parameters;
  const given = [
    version ? `model_version=${pythonText(String(version))}` : "",
    outputs ? "outputs=outputs" : "",
    id ? `request_id=${pythonText(id)}` : "",
    priority === null ? "" : `priority=${priority}`,
    timeout === null ? "" : `timeout=${timeout}`,
    custom.length ? `parameters={${custom.map(([key, value]) => `${pythonText(key)}: ${pythonValue(value)}`).join(", ")}}` : "",
    secrets.length ? `headers={${secrets.map(secret).join(", ")}}` : "",
  ];
  return given.filter(Boolean).map((part) => `, ${part}`).join("");
}

function secret(name) {
  return `"${name}": os.environ["${variable(name)}"]`;
}

function pythonValue(value) {
  if (typeof value === "string") return pythonText(value);
  return typeof value === "boolean" ? pythonNumber("BOOL", value) : String(value);
}

function imports(body, more) {
  const known = [["base64.", "import base64"], ["os.environ", "import os"], ["ml_dtypes.", "import ml_dtypes"], ["np.", "import numpy as np"]];
  const needed = known.filter(([use]) => body.includes(use)).map(([, line]) => line);
  if (body.includes("deserialize_bytes_tensor")) more.push("from tritonclient.utils import deserialize_bytes_tensor");
  return [...needed, ...more].join("\n");
}

function server(base) {
  const url = new URL(base);
  const place = url.host + url.pathname.replace(/\/$/, "");
  return url.protocol === "https:" ? `"${place}", ssl=True` : `"${place}"`;
}

/** With tritonclient; responses that come one by one are read without it, for it reads one. */
export function python(request, base, secrets) {
  const body = request.form === "lines" ? pythonLines(request, base, secrets) : pythonClient(request, base, secrets);
  const more = request.form === "lines" ? ["import json", "import urllib.request"] : ["import tritonclient.http as http"];
  return `${imports(body, more)}\n\n${body}\n`;
}

function pythonClient(request, base, secrets) {
  const inputs = request.inputs.flatMap(({ name, shape, datatype }, at) => [
    `tensor = http.InferInput(${pythonText(name)}, ${list(shape)}, "${datatype}")`,
    `tensor.set_data_from_numpy(${array(request, at)})`,
    "inputs.append(tensor)",
  ]);
  const wanted = ({ name, classes }) => `http.InferRequestedOutput(${pythonText(name)}${classes ? `, class_count=${classes}` : ""})`;
  return [
    `client = http.InferenceServerClient(${server(base)})`,
    "inputs = []",
    ...inputs,
    ...(request.outputs ? [`outputs = [${request.outputs.map(wanted).join(", ")}]`] : []),
    `result = client.infer(${pythonText(request.model)}, inputs${keywords(request, secrets)})`,
    'for output in result.get_response()["outputs"]:',
    '    print(output["name"], result.as_numpy(output["name"]))',
  ].join("\n");
}

function pythonLines(request, base, secrets) {
  const plain = request.header.includes("'''") ? pythonText(request.header) : `r'''${request.header}'''`;
  const text = request.isPlain ? `${plain}.encode()` : `base64.b64decode("${base64(request.body)}")`;
  const body = needsFile(request) ? `open("${FILE}", "rb").read()` : text;
  const headers = Object.entries(sentHeaders(request)).map(([name, value]) => `"${name}": "${value}"`);
  return [
    `body = ${body}`,
    `headers = {${[...headers, ...secrets.map(secret)].join(", ")}}`,
    `request = urllib.request.Request(${pythonText(base + request.path)}, data=body, headers=headers)`,
    "with urllib.request.urlopen(request) as responses:",
    "    for line in responses:",
    "        print(json.loads(line))",
  ].join("\n");
}

/** As lists in lists, as the shape says. */
function nested(texts, shape) {
  if (!shape.length) return texts[0];
  let row = texts;
  for (const size of shape.slice(1).reverse()) {
    row = Array.from({ length: Math.floor(row.length / Math.max(size, 1)) }, (_, at) => `[${row.slice(at * size, (at + 1) * size).join(",")}]`);
  }
  return `[${row.join(",")}]`;
}

/** `null` where the command cannot say the same. */
export function infer(request, base, secrets) {
  const { id, priority, timeout, custom } = request.parameters;
  const counts = new Set((request.outputs ?? []).map((output) => output.classes ?? 0));
  const isPlain = request.isPlain && request.form !== "lines" && !secrets.length && counts.size <= 1;
  const isEmpty = request.inputs.some((input) => count(input.shape) === 0);
  if (!isPlain || isEmpty || needsFile(request) || id || priority !== null || timeout !== null || custom.length) return null;
  const inputs = request.inputs.map(({ name, datatype, shape, bytes }) => {
    const texts = Array.from(decode(datatype, bytes), (value) => (datatype === "BYTES" ? JSON.stringify(asText(value)) : digits(datatype, value)));
    return `--input ${quoted(`${name}=${nested(texts, shape)}`)}`;
  });
  const outputs = (request.outputs ?? []).map(({ name }) => `--output ${quoted(name)}`);
  const classes = [...counts].filter(Boolean).map((k) => `--classes ${k}`);
  const version = request.version ? [`--model-version ${quoted(String(request.version))}`] : [];
  return [`galatea infer ${quoted(request.model)} -u ${quoted(base.replace(/\/$/, ""))}`, ...version, ...inputs, ...outputs, ...classes].join(" \\\n  ");
}
