// The stream of events, read by fetch: an EventSource cannot send the header that a restricted API asks for.

const PAUSES_S = [1, 2, 4, 8, 15];
const LONGEST_EVENT = 16 * 1024 * 1024;

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
    if (done) return "the stream of events has ended";
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

/** The text of a refusal, without its JSON. */
export function refusalText(text, status) {
  try {
    return String(JSON.parse(text).error).slice(0, 2000);
  } catch {
    return text.slice(0, 2000) || `status ${status}`;
  }
}

/** Asks the server; an answer that is an error is thrown with its reason and `status`. */
export async function ask(path, options) {
  const answer = await fetch(path, { cache: "no-store", ...options });
  if (answer.ok) return answer;
  throw Object.assign(new Error(refusalText(await answer.text(), answer.status)), { status: answer.status });
}

/** Waits so long, or until `hurry` is called. */
function pause(seconds, told) {
  return new Promise((done) => {
    const timer = setTimeout(done, seconds * 1000);
    told(seconds, () => {
      clearTimeout(timer);
      done();
    });
  });
}

/**
 * Follows the events for as long as the page is open. `headers` are sent along, `took` gets each event, `lost` the reason of
 * an end, with the seconds until it is tried again and what tries at once. `refused` is asked first what to do about a
 * refusal: it waits until there is something new to say, or gives nothing.
 */
export async function follow(url, { headers, took, lost, refused }) {
  for (let tries = 0; ; tries += 1) {
    let error = null;
    const reason = await ask(url, { headers })
      .then((answer) => read(answer.body, (...event) => {
        tries = 0;
        took(...event);
      }))
      .catch((failure) => {
        error = failure;
        return failure.status ? failure.message : "the server does not answer";
      });
    const again = error && refused(error);
    if (again) await again;
    else await pause(PAUSES_S[Math.min(tries, PAUSES_S.length - 1)], (...how) => lost(reason, ...how));
  }
}
