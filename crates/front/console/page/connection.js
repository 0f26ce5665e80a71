// Whether the figures are live: a word in the header, and a banner with the reason while they are not.

import { button, element, setText } from "./dom.js";
import { clock } from "./format.js";
import { headerForm } from "./restricted.js";
import { known } from "./store.js";

const [live, word, banner, said] = ["live", "live-text", "banner", "said"].map((id) => document.getElementById(id));
let timer = 0;

function show(kind, text) {
  live.dataset.kind = kind;
  setText(word, text);
}

/** Reads a text out where a screen reader is used. */
export function announce(text) {
  setText(said, text);
}

function fill(...nodes) {
  clearInterval(timer);
  banner.replaceChildren(...nodes);
  banner.hidden = nodes.length === 0;
}

/** An event has come. */
export function isLive() {
  if (live.dataset.kind === "live") return;
  show("live", "Live");
  announce(`Connected to ${known.server.name}.`);
  fill();
  document.body.classList.remove("stale");
}

/** The stream has ended; it is tried again in so many seconds, or at once where `hurry` is called. */
export function isLost(reason, seconds, hurry) {
  if (live.dataset.kind !== "lost") announce(`Connection lost: ${reason}. Trying again.`);
  show("lost", "Not connected");
  document.body.classList.toggle("stale", known.server !== null);
  const since = known.server ? ` The figures shown are from ${clock(known.time)}.` : "";
  const countdown = element("span", {});
  let left = seconds;
  const count = () => setText(countdown, left > 0 ? `Trying again in ${left} s. ` : "Trying again. ");
  count();
  fill(element("p", {}, `No connection: ${reason}.${since}`), element("p", {}, countdown, button("Try now", hurry)));
  timer = setInterval(() => {
    left -= 1;
    count();
  }, 1000);
}

/** The server wants a header: a promise of another value, or `null` where the refusal is about something else. */
export function isRefused(error) {
  if (!headerForm(error, () => {})) return null;
  show("lost", "Restricted");
  announce("The server requires a header.");
  return new Promise((done) => {
    fill(headerForm(error, done));
    banner.querySelector("input").focus();
  });
}
