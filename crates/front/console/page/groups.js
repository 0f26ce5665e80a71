// Failed requests by their reasons: what fails most, since when, and for whom.

/** More clients of a group are counted, not named. */
const MOST_CLIENTS = 3;

/** Reasons that differ in numbers alone are one: sizes, ids and addresses. */
function keyOf({ model, version, protocol, status, reason }) {
  return JSON.stringify([model, version, protocol, status, reason.replace(/\d+/g, "0")]);
}

/**
 * Groups of failures, the one with the last failure first. Each has the last of them, how many there are, when the first came,
 * and their clients, the most frequent first.
 */
export function groupsOf(failures) {
  const groups = new Map();
  for (const failure of failures) {
    const key = keyOf(failure);
    const group = groups.get(key) ?? { key, count: 0, first_ms: failure.time_ms, clients: new Map() };
    group.last = failure;
    group.count += 1;
    group.clients.set(failure.client, (group.clients.get(failure.client) ?? 0) + 1);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.last.sequence - a.last.sequence);
}

/** The clients of a group, in words. */
export function clientsText({ clients }) {
  const all = [...clients].sort(([, a], [, b]) => b - a).map(([client]) => client || "unknown");
  const more = all.length - MOST_CLIENTS;
  return all.slice(0, MOST_CLIENTS).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** A line of a file, with its number or the caret below it: `4 | max_batch_sise: 8`. */
const EXCERPT = /^\s*\d*\s*\|/;
const CARET = /^\s*\^\s*$/;

/** A reason in parts: lines of a file with the caret below them stay as they are, others may be wrapped. */
export function partsOf(reason) {
  const lines = reason.split("\n");
  const parts = [];
  lines.forEach((text, at) => {
    const isExcerpt = EXCERPT.test(text) || CARET.test(text) || CARET.test(lines[at + 1] ?? "");
    if (isExcerpt && parts.at(-1)?.isExcerpt) parts.at(-1).text += `\n${text}`;
    else parts.push({ isExcerpt, text });
  });
  return parts;
}
