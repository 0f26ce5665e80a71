// Restricted calls: which header one asks for, and a field to give its value in.

import { button, element } from "./dom.js";

/** What was given for restricted calls; kept as long as the page is open. */
export const headers = {};

/** The header that a refusal asks for. */
export function wantedHeader(error) {
  return error.status === 403 ? /expecting header '([\w-]+)'/.exec(error.message)?.[1] : undefined;
}

/** A field for the header that a refusal asks for, or `null` where it asks for none; `again` is called with a new value. */
export function headerForm(error, again) {
  const name = wantedHeader(error);
  if (!name) return null;
  const wrong = name in headers ? `The server does not accept this value of ${name}.` : `This part of the server is restricted: it requires the header ${name}.`;
  const value = element("input", { type: "password", id: "header-value", autocomplete: "off", required: "" });
  const label = element("label", { for: "header-value" }, `Value of ${name}`);
  const form = element("form", { class: "ask" }, element("p", {}, wrong), label, value, element("button", { type: "submit" }, "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    headers[name] = value.value;
    again();
  });
  return form;
}

/** An error with what can be done about it: the value of a header, or another try. */
export function refusal(error, again) {
  const form = headerForm(error, again);
  const what = form ?? element("p", {}, error.message, " ", button("Try again", again));
  return element("div", { role: "alert", class: "told bad" }, what);
}
