// A request of the KServe v2 protocol, made of tensors: JSON where it is short, else with tensors behind it as they lie in memory.

import { TYPES, asText, count, decode, digits } from "./try-types.js";

/** More elements than these travel as bytes. */
const MOST_IN_JSON = 256;
/** Answers of more elements than these are asked for as bytes. */
const MOST_ANSWERED_IN_JSON = 4096;

/** The texts of a tensor's elements in JSON, or `null` where JSON cannot hold it exactly. */
export function jsonElements({ datatype, shape, bytes }) {
  if (TYPES[datatype]?.isHalf || count(shape) > MOST_IN_JSON) return null;
  const values = decode(datatype, bytes);
  if (datatype === "BYTES") {
    const texts = values.map(asText);
    return texts.includes(null) ? null : texts.map((text) => JSON.stringify(text));
  }
  if (TYPES[datatype].isFloat && values.some((value) => !Number.isFinite(value))) return null;
  return Array.from(values, (value) => digits(datatype, value));
}

function inputText(tensor) {
  const { name, datatype, shape } = tensor;
  const head = `{"name":${JSON.stringify(name)},"shape":[${shape.join(",")}],"datatype":"${datatype}",`;
  const elements = tensor.isRaw ? null : jsonElements(tensor);
  if (elements) return { text: `${head}"data":[${elements.join(",")}]}`, bytes: null };
  return { text: `${head}"parameters":{"binary_data_size":${tensor.bytes.length}}}`, bytes: tensor.bytes };
}

/** Whether the outputs that are wanted are better asked for as bytes: what goes in tells how much comes out. */
export function wantsBytes(outputs, inputs) {
  const isLarge = ({ shape }) => count(shape.map((dim) => Math.max(dim, 1))) > MOST_ANSWERED_IN_JSON;
  const numbers = outputs.filter((output) => !output.classes);
  const isOpen = ({ shape }) => shape.filter((dim) => dim < 0).length > 2;
  return numbers.length > 0 && (inputs.some(isLarge) || numbers.some((output) => TYPES[output.datatype]?.isHalf || isLarge(output) || isOpen(output)));
}

function outputText({ name, classes }, isBinary) {
  const parameters = { ...(isBinary ? { binary_data: true } : {}), ...(classes ? { classification: classes } : {}) };
  return JSON.stringify(Object.keys(parameters).length ? { name, parameters } : { name });
}

function parametersText({ priority, timeout, custom }, asksForAllAsBytes) {
  const known = { priority, timeout };
  const members = Object.entries(known).filter(([, value]) => value !== null && value !== undefined);
  if (asksForAllAsBytes) members.push(["binary_data_output", true]);
  const texts = [...members, ...custom].map(([key, value]) => `${JSON.stringify(key)}:${jsonValue(value)}`);
  return texts.length ? [`"parameters":{${texts.join(",")}}`] : [];
}

function jsonValue(value) {
  return typeof value === "bigint" ? String(value) : JSON.stringify(value);
}

/**
 * Joins a request. `outputs` are those that are asked for by name, `null` all; `form` is how they come: `json`, `binary`, or
 * `lines`, one line of JSON for each response.
 */
export function buildRequest({ model, version, inputs, outputs, parameters, form }) {
  const texts = inputs.map(inputText);
  const isBinary = form === "binary";
  const members = [
    ...(parameters.id ? [`"id":${JSON.stringify(parameters.id)}`] : []),
    ...parametersText(parameters, isBinary && !outputs),
    `"inputs":[${texts.map((part) => part.text).join(",")}]`,
    ...(outputs ? [`"outputs":[${outputs.map((output) => outputText(output, isBinary)).join(",")}]`] : []),
  ];
  const header = `{${members.join(",")}}`;
  const blocks = texts.map((part) => part.bytes);
  const path = `v2/models/${model}${version ? `/versions/${version}` : ""}/infer`;
  return { model, version, inputs, outputs, parameters, form, path, header, ...joined(header, blocks) };
}

/** The body, and where in it the bytes of each input begin; JSON alone stays a text. */
function joined(header, blocks) {
  const head = new TextEncoder().encode(header);
  const accept = { accept: "application/x-ndjson" };
  const size = blocks.reduce((sum, block) => sum + (block ? block.length : 0), head.length);
  const body = new Uint8Array(size);
  body.set(head);
  let at = head.length;
  const offsets = blocks.map((block) => {
    const from = at;
    if (block) body.set(block, from);
    at += block ? block.length : 0;
    return block ? from : null;
  });
  const isPlain = blocks.every((block) => block === null);
  const headers = isPlain
    ? { "content-type": "application/json" }
    : { "content-type": "application/octet-stream", "inference-header-content-length": String(head.length) };
  return { body, offsets, isPlain, headers, accept };
}

/** What is sent beside the restricted API's headers. */
export function sentHeaders(request) {
  return request.form === "lines" ? { ...request.headers, ...request.accept } : request.headers;
}
