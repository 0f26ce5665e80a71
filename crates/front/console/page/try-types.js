// The element types of tensors: their bytes, as typed by people and as they lie in memory (little-endian).

const LARGEST_HALF = 65504;

/** `sign` is whether numbers may be negative: `i` or `u`. */
function integer(array, sign) {
  const size = array.BYTES_PER_ELEMENT;
  const half = 1n << BigInt(8 * size - 1);
  const [low, high] = sign === "i" ? [-half, half - 1n] : [0n, 2n * half - 1n];
  return { array, size, low, high, isInteger: true, isWide: size === 8, npy: `${size > 1 ? "<" : "|"}${sign}${size}` };
}

/** What is known of each type; `npy` is how numpy's files name it. */
export const TYPES = {
  __proto__: null,
  BOOL: { array: Uint8Array, size: 1, isBool: true, npy: "|b1" },
  UINT8: integer(Uint8Array, "u"),
  UINT16: integer(Uint16Array, "u"),
  UINT32: integer(Uint32Array, "u"),
  UINT64: integer(BigUint64Array, "u"),
  INT8: integer(Int8Array, "i"),
  INT16: integer(Int16Array, "i"),
  INT32: integer(Int32Array, "i"),
  INT64: integer(BigInt64Array, "i"),
  FP16: { array: Uint16Array, size: 2, isFloat: true, isHalf: true, npy: "<f2" },
  BF16: { array: Uint16Array, size: 2, isFloat: true, isHalf: true },
  FP32: { array: Float32Array, size: 4, isFloat: true, npy: "<f4" },
  FP64: { array: Float64Array, size: 8, isFloat: true, npy: "<f8" },
};

/** How many elements a shape has. */
export function count(shape) {
  return shape.reduce((product, dim) => product * dim, 1);
}

const wide = new Float32Array(1);
const wideBits = new Uint32Array(wide.buffer);

/** The bits of the half that is nearest; of two the even one. */
export function toHalf(value) {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === 0) return sign;
  const exponent = Math.max(size === Infinity ? 16 : Math.floor(Math.log2(size)), -14);
  const near = [exponent - 1, exponent, exponent + 1].find((e) => size < 2 ** (e + 1)) ?? 16;
  const scale = Math.max(near, -14);
  const steps = roundEven(size / 2 ** (scale - 10));
  if (steps * 2 ** (scale - 10) > LARGEST_HALF) return sign | 0x7c00;
  // A significand that was rounded up to the next power of two carries into the exponent by itself.
  return sign | (steps < 1024 ? steps : ((scale + 15) << 10) + (steps - 1024));
}

function roundEven(value) {
  const low = Math.floor(value);
  const rest = value - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
}

/** The value of the bits of a half. */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const steps = bits & 1023;
  if (exponent === 31) return steps ? NaN : sign * Infinity;
  return exponent === 0 ? sign * steps * 2 ** -24 : sign * (1024 + steps) * 2 ** (exponent - 25);
}

/** The bits of the bfloat16 that is nearest; of two the even one. */
export function toBrain(value) {
  wide[0] = value;
  if (Number.isNaN(value)) return 0x7fc0;
  const bits = wideBits[0];
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

/** The value of the bits of a bfloat16. */
export function fromBrain(bits) {
  wideBits[0] = bits << 16;
  return wide[0];
}

function parsedBool(text) {
  const value = { true: 1, 1: 1, false: 0, 0: 0 }[String(text).toLowerCase()];
  if (value === undefined) throw new Error(`"${text}" is neither true nor false`);
  return value;
}

function parsedInteger(name, text) {
  const type = TYPES[name];
  if (!/^[+-]?\d+$/.test(text)) throw new Error(`"${text}" is not a whole number, as ${name} needs`);
  const value = BigInt(text.replace("+", ""));
  if (value < type.low || value > type.high) throw new Error(`${text} does not fit ${name}: ${type.low} to ${type.high}`);
  return type.isWide ? value : Number(value);
}

function parsedFloat(text) {
  const words = { nan: NaN, inf: Infinity, infinity: Infinity, "-inf": -Infinity, "-infinity": -Infinity };
  const word = words[text.toLowerCase()];
  const value = word ?? (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined);
  if (value === undefined) throw new Error(`"${text}" is not a number`);
  return value;
}

/** Texts, numbers or booleans as the bytes of a tensor; throws what is wrong with the first that does not fit. */
export function encode(name, values) {
  const type = TYPES[name];
  if (!type) throw new Error(`the type ${name} has no numbers`);
  const made = new type.array(values.length);
  for (let at = 0; at < values.length; at += 1) made[at] = encoded(name, type, values[at]);
  return new Uint8Array(made.buffer);
}

/** Most numbers are, and need no BigInt to tell. */
function isWithin(type, value) {
  return typeof value === "number" && !type.isWide && Number.isInteger(value) && value >= Number(type.low) && value <= Number(type.high);
}

function encoded(name, type, value) {
  if (type.isBool) return parsedBool(value);
  if (type.isInteger) return isWithin(type, value) ? value : parsedInteger(name, String(value));
  const number = typeof value === "string" ? parsedFloat(value) : Number(value);
  if (!type.isHalf) return number;
  return name === "FP16" ? toHalf(number) : toBrain(number);
}

/** The elements of a tensor: numbers, BigInts of 64 bits, booleans, or the bytes of each BYTES element. */
export function decode(name, bytes) {
  if (name === "BYTES") return bytesElements(bytes);
  const type = TYPES[name];
  if (!type) throw new Error(`the type ${name} is not known here`);
  if (bytes.length % type.size) throw new Error(`${bytes.length} bytes are not a whole number of ${name} elements`);
  const values = new type.array(bytes.slice().buffer);
  if (type.isBool) return Array.from(values, Boolean);
  if (type.isHalf) return Float32Array.from(values, name === "FP16" ? fromHalf : fromBrain);
  return values;
}

/** Elements of BYTES, each behind its length. */
export function joinBytes(elements) {
  const all = new Uint8Array(elements.reduce((size, element) => size + 4 + element.length, 0));
  const view = new DataView(all.buffer);
  let at = 0;
  for (const element of elements) {
    view.setUint32(at, element.length, true);
    all.set(element, at + 4);
    at += 4 + element.length;
  }
  return all;
}

function bytesElements(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 <= bytes.length ? at + 4 + view.getUint32(at, true) : Infinity;
    if (end > bytes.length) throw new Error("a BYTES element is longer than its tensor");
    found.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return found;
}

/** The text of bytes, or `null` where they are no UTF-8. */
export function asText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** A number with as few digits as its type can be told from: 0.1 of FP32 is not 0.10000000149011612. */
export function digits(name, value) {
  if (typeof value !== "number" || !TYPES[name].isFloat) return String(value);
  if (Object.is(value, -0)) return "-0.0";
  if (name === "FP64" || !Number.isFinite(value) || Number.isSafeInteger(value)) return String(value);
  const bits = { FP16: toHalf, BF16: toBrain, FP32: Math.fround }[name];
  const wanted = bits(value);
  for (let precision = 1; precision <= 9; precision += 1) {
    const short = Number(value.toPrecision(precision));
    if (bits(short) === wanted) return String(short);
  }
  return String(value);
}
