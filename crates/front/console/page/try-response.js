// What comes back: responses in JSON or with tensors behind them, each output as bytes, whatever a server sends.

import { byteText, parse, readable, stringBytes } from "./try-json.js";
import { TYPES, asText, count, decode, digits, encode, joinBytes } from "./try-types.js";

const MOST_OUTPUTS = 1000;

/** One response: its members, and each output as name, type, shape and bytes. Throws what does not fit. */
export function parseResponse(body, headerLength = body.length) {
  if (!(headerLength >= 0 && headerLength <= body.length)) throw new Error("the answer's header is longer than the answer");
  const members = parse(byteText(body.subarray(0, headerLength)));
  if (members === null || typeof members !== "object") throw new Error("the answer is not a JSON object");
  if (members.error !== undefined) return { error: readable(String(members.error)), outputs: [] };
  const listed = members.outputs ?? [];
  if (!Array.isArray(listed) || listed.length > MOST_OUTPUTS) throw new Error("the answer's outputs are no list, or too many");
  let rest = body.subarray(headerLength);
  const outputs = listed.map((output) => {
    const size = output.parameters?.binary_data_size;
    if (size === undefined) return fromJson(output);
    if (!(size >= 0 && size <= rest.length)) throw new Error(`the bytes of output ${output.name} are incomplete`);
    const bytes = rest.subarray(0, size);
    rest = rest.subarray(size);
    return described(output, bytes);
  });
  return { ...facts(members), outputs };
}

function facts(members) {
  const text = (value) => (value === undefined ? undefined : readable(String(value)));
  const { parameters = {} } = members;
  return { id: text(members.id), model: text(members.model_name), version: text(members.model_version), parameters: texts(parameters) };
}

function texts(parameters) {
  return Object.entries(parameters ?? {}).map(([key, value]) => [readable(key), typeof value === "string" ? readable(value) : String(value)]);
}

function described(output, bytes) {
  const name = readable(String(output.name));
  const { datatype, shape } = output;
  if (!Array.isArray(shape) || !shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) throw new Error(`output ${name} has no valid shape`);
  const size = TYPES[datatype]?.size;
  if (size && bytes.length !== size * count(shape)) throw new Error(`output ${name} has ${bytes.length} bytes, which do not fit its shape`);
  const values = decode(datatype, bytes);
  if (values.length !== count(shape)) throw new Error(`output ${name} has ${values.length} elements, which do not fit its shape`);
  const parameters = texts(output.parameters).filter(([key]) => key !== "binary_data_size");
  return { name, datatype, shape, bytes, values, parameters };
}

function fromJson(output) {
  const data = Array.isArray(output.data) ? output.data : [];
  if (output.datatype === "BYTES") return described(output, joinBytes(data.map((element) => stringBytes(String(element)))));
  const values = data.map((value) => (typeof value === "boolean" || typeof value === "number" ? value : String(value)));
  return described(output, encode(output.datatype, values));
}

/** Least, greatest and mean of the finite elements, and how many are not finite. */
export function summary({ values }) {
  let [low, high, sum, finite] = [Infinity, -Infinity, 0, 0];
  for (const value of values) {
    const number = Number(value);
    if (!Number.isFinite(number)) continue;
    if (number < low) low = number;
    if (number > high) high = number;
    sum += number;
    finite += 1;
  }
  return { low, high, mean: sum / finite, notFinite: values.length - finite, finite };
}

/** Splits the elements that an inference response has for classes: `value:index:label`. */
export function classes(output) {
  if (output.datatype !== "BYTES" || !output.values.length) return null;
  const rows = output.values.map((bytes) => /^(-?[\d.]+(?:e[+-]?\d+)?|-?inf|-?nan):(\d+)(?::([\s\S]*))?$/i.exec(new TextDecoder().decode(bytes)));
  if (rows.includes(null)) return null;
  return rows.map(([, value, index, label]) => ({ value: Number(value), label: label ?? `class ${index}` }));
}

/** An output as JSON; what is no UTF-8 in it, as base64. */
export function jsonOf({ name, datatype, shape, values }) {
  const element = (value) => (datatype === "BYTES" ? JSON.stringify(asText(value) ?? { b64: btoa(byteText(value)) }) : jsonNumber(datatype, value));
  return `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(",")}],"data":[${Array.from(values, element).join(",")}]}\n`;
}

function jsonNumber(datatype, value) {
  return typeof value === "number" && !Number.isFinite(value) ? `"${value}"` : digits(datatype, value);
}

/** A file that `numpy.load` reads. */
export function toNpy({ datatype, shape, bytes }) {
  const tuple = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${TYPES[datatype].npy}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const padded = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n";
  const head = new TextEncoder().encode(`\u0001NUMPY\u0001\u0000..${padded}`);
  const whole = new Uint8Array([0x93, ...head.subarray(1)]);
  new DataView(whole.buffer).setUint16(8, padded.length, true);
  const file = new Uint8Array(whole.length + bytes.length);
  file.set(whole);
  file.set(bytes, whole.length);
  return file;
}
