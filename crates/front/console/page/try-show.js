// A response as people read it: each output with its views and its files, responses of a stream one after the other.

import { element, region, table, text } from "./dom.js";
import { choice, download, labelled } from "./try-form.js";
import { jsonOf, toNpy } from "./try-response.js";
import { TYPES } from "./try-types.js";
import { view, viewLabel, viewsOf } from "./try-views.js";

/** Of a stream, as many are shown. */
const MOST_RESPONSES = 50;
const LONGEST_TEXT = 100000;
const MOST_PARAMETERS = 100;
/** More elements than these are too long as JSON. */
const MOST_AS_JSON = 1 << 22;
/** Shorter single elements need no file. */
const SHORTEST_FILE = 1000;

function files(output) {
  const blob = (part, type = "application/octet-stream") => new Blob([part], { type });
  const made = output.values.length > MOST_AS_JSON ? [] : [download("JSON", `${output.name}.json`, () => blob(jsonOf(output), "application/json"))];
  if (TYPES[output.datatype]) made.unshift(download("Bytes", `${output.name}.bin`, () => blob(output.bytes)));
  if (TYPES[output.datatype]?.npy) made.unshift(download("NumPy", `${output.name}.npy`, () => blob(toNpy(output))));
  return element("p", { class: "try-files" }, "Download: ", ...made);
}

function showOutput(output) {
  const views = viewsOf(output);
  const isShort = output.values.length === 1 && output.bytes.length < SHORTEST_FILE;
  const place = element("div", { class: "try-view" });
  const pick = choice("view", views.map((name) => [name, viewLabel(name)]), views[0]);
  const draw = () => place.replaceChildren(view(pick.value, output));
  pick.addEventListener("change", draw);
  draw();
  const title = element("h4", {}, output.name, element("span", { class: "try-hint" }, ` ${output.datatype} [${output.shape.join(", ")}]`));
  const picker = views.length > 1 ? [labelled("Show as", pick)] : [];
  const about = output.parameters.length ? [parameterTable(output.name, output.parameters)] : [];
  return element("section", { class: "try-output", "data-output": output.name }, title, ...picker, place, ...about, ...(isShort ? [] : [files(output)]));
}

function parameterTable(name, parameters) {
  return region(`Parameters of ${name}`, table(`parameters of ${name}`, ["*Name", "*Value"], parameters.slice(0, MOST_PARAMETERS).map(([key, value]) => [text(key), text(value, "reason")])));
}

/** What one response has: outputs, parameters, or an error. */
function showResponse(response, isStream) {
  if (response.error !== undefined) return [element("pre", { class: "bad" }, response.error.slice(0, LONGEST_TEXT))];
  const shown = response.parameters.filter(([key]) => key !== "triton_final_response");
  const facts = [`${response.model}, version ${response.version}`, ...(response.id ? [`id ${response.id}`] : [])];
  const about = shown.length ? [parameterTable("the response", shown)] : [];
  const from = isStream ? [] : [element("p", { class: "try-hint" }, facts.join(", "))];
  return [...response.outputs.map(showOutput), ...from, ...about];
}

/** Takes responses as they come and shows them in `node`. */
export function responseList(node, isStream) {
  let taken = 0;
  const rest = element("p", {});
  const list = element("ol", { class: "try-responses" });
  const said = new Map();
  node.replaceChildren(...(isStream ? [element("div", {}), list, rest] : []));
  return {
    get size() {
      return taken;
    },
    take(response, after) {
      taken += 1;
      if (!isStream) return node.replaceChildren(...showResponse(response, false));
      joinTexts(node.firstChild, said, response);
      if (taken > MOST_RESPONSES) return (rest.textContent = `${taken - MOST_RESPONSES} more responses, which are not shown`);
      return list.append(element("li", {}, element("h3", {}, `After ${after.toFixed(0)} ms`), ...showResponse(response, true)));
    },
  };
}

/** Texts that come piece by piece, as those of language models do, are also shown as one. */
function joinTexts(place, said, response) {
  for (const { name, datatype, values } of response.outputs) {
    if (datatype !== "BYTES" || values.length !== 1) continue;
    if (!said.has(name)) {
      const shown = element("pre", { class: "try-text", "data-joined": name });
      said.set(name, { shown, decoder: new TextDecoder(), size: 0 });
      place.append(element("h3", {}, `${name}, joined`), shown);
    }
    const joined = said.get(name);
    joined.size += values[0].length;
    // A character may be divided between two responses.
    if (joined.size <= LONGEST_TEXT) joined.shown.append(joined.decoder.decode(values[0], { stream: true }));
  }
}

/** What a server refused, whole. */
export function showRefusal(error) {
  const headers = error.headers?.length ? [element("details", {}, element("summary", {}, "Headers of the answer"), element("pre", { tabindex: 0 }, error.headers.map((pair) => pair.join(": ")).join("\n")))] : [];
  const status = error.status ? [element("p", {}, `Status ${error.status}`)] : [];
  return [...status, element("pre", { class: "bad", tabindex: 0, "data-error": "" }, error.message.slice(0, LONGEST_TEXT)), ...headers];
}
