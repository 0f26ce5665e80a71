// The routes of this server, from its own OpenAPI document.

import { element, region, table, text } from "./dom.js";

function rows(paths) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, call]) => call.summary !== undefined)
      .map(([method, call]) => [text(method.toUpperCase()), text(path), text(call.summary, "reason")]),
  );
}

/** Draws the table of routes into `content`, and what went wrong into `told`. */
export async function drawApi(told, content) {
  try {
    const answer = await fetch("openapi.json");
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 500));
    const description = await answer.json();
    told.textContent = `${description.info.title} ${description.info.version}`;
    const link = element("a", { href: "openapi.json" }, "openapi.json");
    content.replaceChildren(
      element("h2", {}, "Routes"),
      element("p", {}, "The whole description, with the schemas of each model's tensors: ", link),
      region("Routes", table("", ["*Method", "*Path", "*What it does"], rows(description.paths))),
    );
  } catch (error) {
    told.textContent = `The description cannot be read: ${error.message}`;
  }
}
