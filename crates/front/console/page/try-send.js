// One request on its way: sent, and what comes back read as it comes, within bounds.

import { sentHeaders } from "./try-request.js";
import { parseResponse } from "./try-response.js";

const LONGEST_ANSWER = 256 * 1024 * 1024;
const LONGEST_LINE = 32 * 1024 * 1024;

/** What a server refused: its status, its text, the answer's headers. */
export class Refusal extends Error {
  constructor(status, message, headers) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

async function* pieces(answer) {
  const reader = answer.body.getReader();
  let size = 0;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      size += value.length;
      if (size > LONGEST_ANSWER) throw new Error(`the answer is longer than ${LONGEST_ANSWER >> 20} MiB`);
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function joined(parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

async function whole(answer) {
  const parts = [];
  for await (const piece of pieces(answer)) parts.push(piece);
  return joined(parts);
}

async function* lines(answer) {
  let waiting = [];
  for await (let piece of pieces(answer)) {
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10)) {
      yield joined([...waiting, piece.subarray(0, end)]);
      waiting = [];
      piece = piece.subarray(end + 1);
    }
    if (piece.length) waiting.push(piece);
    if (waiting.reduce((size, part) => size + part.length, 0) > LONGEST_LINE) throw new Error("a response is too long");
  }
  if (waiting.length) yield joined(waiting);
}

async function refused(answer) {
  const body = await whole(answer);
  let text = new TextDecoder().decode(body);
  try {
    text = JSON.parse(text).error ?? text;
  } catch {
    // What is no JSON is shown as it came.
  }
  throw new Refusal(answer.status, String(text) || answer.statusText, [...answer.headers]);
}

/** Sends a request; `took` gets each response when it is there. */
export async function send(request, url, restricted, signal, took) {
  const headers = { ...restricted, ...sentHeaders(request) };
  const answer = await fetch(url, { method: "POST", headers, body: request.body, signal, cache: "no-store" });
  if (!answer.ok) await refused(answer);
  if (request.form !== "lines" || !(answer.headers.get("content-type") ?? "").includes("ndjson")) {
    const length = answer.headers.get("inference-header-content-length");
    const body = await whole(answer);
    took(parseResponse(body, length === null ? body.length : Number(length)));
    return;
  }
  for await (const line of lines(answer)) {
    if (line.length) took(parseResponse(line));
  }
}
