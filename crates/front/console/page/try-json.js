// JSON as the server writes it: 64-bit integers exactly, NaN and Infinity, and texts that need not be UTF-8.

const TOKEN = /"(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const CHUNK = 8192;

/** Bytes as a text of as many characters. */
export function byteText(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += CHUNK) parts.push(String.fromCharCode(...bytes.subarray(at, at + CHUNK)));
  return parts.join("");
}

/** The bytes of a string that was read from a byte text; what was an escape of more than a byte becomes UTF-8. */
export function stringBytes(text) {
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) > 255) return new TextEncoder().encode(text);
  }
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** What a string that was read from a byte text says. */
export function readable(text) {
  return new TextDecoder().decode(stringBytes(text));
}

/** Reads a byte text. Integers that a double cannot hold become BigInts; strings stay as bytes: see `stringBytes`. */
export function parse(text) {
  const mark = `#${Math.random()}:`;
  const marked = text.replace(TOKEN, (token) => (needsMark(token) ? `"${mark}${token}"` : token));
  return JSON.parse(marked, (_, value) => {
    if (typeof value !== "string" || !value.startsWith(mark)) return value;
    const token = value.slice(mark.length);
    return /^-?\d+$/.test(token) ? BigInt(token) : Number(token);
  });
}

function needsMark(token) {
  if (token[0] === '"') return false;
  return token.endsWith("NaN") || token.endsWith("y") || (/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)));
}
