// The stream of events, read by fetch: an EventSource cannot send the header that a restricted API asks for.

const PAUSES_MS = [1000, 2000, 5000];
const LONGEST_EVENT = 16 * 1024 * 1024;
/** What was given for restricted calls; kept as long as the page is open. */
export const headers = {};

/** Asks for the value of the header that the server names; whether there is one now. */
function askForHeader(refusal) {
  const name = /expecting header '([^']+)'/.exec(refusal)?.[1];
  const value = name && window.prompt(`This server's API is restricted. Value of the header ${name}:`);
  if (value) headers[name] = value;
  return Boolean(value);
}

function parsed(block) {
  const lines = block.split("\n").filter((line) => !line.startsWith(":"));
  const value = (field) => lines.find((line) => line.startsWith(`${field}:`))?.slice(field.length + 1).trim();
  return { name: value("event"), data: value("data") };
}

async function read(stream, took) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return "the stream ended";
    waiting += value;
    if (waiting.length > LONGEST_EVENT) throw new Error("an event is too long");
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const { name, data } of blocks.map(parsed)) {
      if (name === "end") return JSON.parse(data).reason;
      if (data) took(name, JSON.parse(data));
    }
  }
}

async function once(url, took) {
  const answer = await fetch(url, { headers, cache: "no-store" });
  if (answer.ok) return read(answer.body, took);
  const refusal = await answer.text();
  if (answer.status === 403 && askForHeader(refusal)) return once(url, took);
  return refusal.slice(0, 500) || `status ${answer.status}`;
}

/** Follows the events for as long as the page is open, with longer and longer pauses where there is no server. */
export async function follow(url, took, lost) {
  for (let tries = 0; ; tries += 1) {
    const reason = await once(url, (...event) => {
      tries = 0;
      took(...event);
    }).catch((error) => error.message);
    lost(reason);
    const pause = PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)];
    await new Promise((done) => setTimeout(done, pause));
  }
}
