// The routes of this server, from its own OpenAPI document: what each takes, what it answers, and a command that asks it.

import { element, region, table, text } from "./dom.js";
import { ask } from "./events.js";
import { exampleOf, schemaText } from "./schema.js";
import { headers, refusal } from "./restricted.js";

const quoted = (value) => `'${value.replaceAll("'", "'\\''")}'`;
const resolve = (document, value) => (value?.$ref ? value.$ref.slice(2).split("/").reduce((at, part) => at?.[part], document) : value);
const code = (label, content) => element("pre", { tabindex: 0, role: "region", "aria-label": label }, content);

function parameterTable(all) {
  const rows = all.map((one) => [text(one.name), text(one.in), text(one.required ? "yes" : "no"), text(schemaText({}, one.schema ?? {})), text(one.description ?? "", "reason")]);
  return [element("h4", {}, "Parameters"), region("Parameters", table("", ["*Name", "*In", "*Required", "*Type", "*Meaning"], rows))];
}

function bodies(document, title, content) {
  return Object.entries(content ?? {}).flatMap(([type, { schema }]) => [
    element("h4", {}, `${title}: ${type}`),
    ...(Object.keys(schema ?? {}).length ? [code(`${title}: ${type}`, schemaText(document, schema))] : []),
  ]);
}

function curl(document, path, method, call) {
  const base = new URL(".", location.href).href.replace(/\/$/, "");
  const filled = path.replace("{model_name}", "MODEL").replace("{model_version}", "1");
  const schema = call.requestBody?.content?.["application/json"]?.schema;
  const body = schema ? ` \\\n  -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(exampleOf(document, schema)))}` : "";
  const stream = filled.endsWith("events") || filled.endsWith("_stream") ? "-N " : "";
  return `curl -s ${stream}${method === "get" ? "" : `-X ${method.toUpperCase()} `}${quoted(base + filled)}${body}`;
}

function details(document, path, method, call, shared) {
  const parameters = [...shared, ...(call.parameters ?? [])].map((one) => resolve(document, one));
  const answers = Object.entries(call.responses ?? {}).map(([status, answer]) => [status, resolve(document, answer)]);
  const good = answers.find(([status]) => status === "200")?.[1];
  return [
    ...(call.description ? [element("p", {}, call.description)] : []),
    ...(parameters.length ? parameterTable(parameters) : []),
    ...bodies(document, "Request", resolve(document, call.requestBody)?.content),
    element("h4", {}, "Answers"),
    region("Answers", table("", ["*Status", "*Meaning"], answers.map(([status, answer]) => [text(status), text(answer?.description ?? "", "reason")]))),
    ...bodies(document, "Answer", good?.content),
    element("h4", {}, "Example"),
    code("Example", curl(document, path, method, call)),
  ];
}

function routeOf(document, path, method, call, shared) {
  const summary = element("summary", {}, element("span", { class: "method", "data-method": method }, method.toUpperCase()), element("code", {}, path), element("span", { class: "faint" }, call.summary));
  const node = element("details", { class: "route" }, summary);
  node.addEventListener("toggle", () => {
    if (node.childNodes.length === 1) node.append(...details(document, path, method, call, shared));
  });
  return { node, path, text: `${method} ${path} ${call.summary}`.toLowerCase() };
}

function routes(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, call]) => call.summary !== undefined)
      .map(([method, call]) => ({ tag: call.tags?.[0] ?? "", ...routeOf(document, path, method, call, item.parameters ?? []) })),
  );
}

/** General routes by their subjects, then those of each model: of many models nobody would come to the others. */
export function sectionsOf(tags, routes) {
  const modelOf = ({ path }) => /^\/v2\/models\/([^/{]+)\//.exec(path)?.[1];
  const general = tags.map(({ name, description }) => ({ title: description, own: routes.filter((route) => route.tag === name && !modelOf(route)) }));
  const names = [...new Set(routes.map(modelOf).filter(Boolean))];
  const models = names.map((name) => ({ title: `Model ${name}`, own: routes.filter((route) => modelOf(route) === name) }));
  return [...general, ...models].filter(({ own }) => own.length);
}

function drawRoutes(document) {
  const all = routes(document);
  const sections = sectionsOf(document.tags, all).map(({ title, own }) => ({ own, node: element("section", {}, element("h2", {}, title), ...own.map((route) => route.node)) }));
  const search = element("input", { type: "search", "aria-label": "Find routes", placeholder: "Find a path or a word" });
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    all.forEach((route) => (route.node.hidden = !route.text.includes(wanted)));
    sections.forEach(({ own, node }) => (node.hidden = own.every((route) => route.node.hidden)));
  };
  search.addEventListener("input", draw);
  draw();
  const { ready, shown } = document["x-galatea-models"] ?? {};
  const some = ready > shown ? ` ${shown} of ${ready} ready models have entries; openapi.json?model=NAME has those of one model.` : "";
  const intro = element("p", { class: "faint" }, `${document.info.title} ${document.info.version}. The same for programs: `, element("a", { href: "openapi.json" }, "openapi.json"), `.${some}`);
  return [intro, element("div", { class: "tools" }, search), ...sections.map((section) => section.node)];
}

/** The page of the routes; it is read once. */
export function apiPage() {
  const place = element("div", {}, element("p", {}, "Reading the description."));
  async function read() {
    try {
      const answer = await ask(`openapi.json${location.search}`, { headers });
      place.replaceChildren(...drawRoutes(await answer.json()));
    } catch (error) {
      place.replaceChildren(refusal(error, read));
    }
  }
  read();
  return { node: element("div", {}, element("h1", {}, "API"), place), title: "API" };
}
