// Schemas of the OpenAPI document as short text, and examples of what fits them.

const DEEPEST = 7;

function resolved(document, schema) {
  const target = schema?.$ref ? schema.$ref.slice(2).split("/").reduce((at, part) => at?.[part], document) : schema;
  return target ?? {};
}

function objectText(document, schema, indent, depth) {
  const inner = `${indent}  `;
  const isNeeded = (name) => schema.required?.includes(name);
  const lines = Object.entries(schema.properties ?? {}).map(([name, one]) => `${inner}${name}${isNeeded(name) ? "" : "?"}: ${schemaText(document, one, inner, depth + 1)}`);
  if (typeof schema.additionalProperties === "object") lines.push(`${inner}[name]: ${schemaText(document, schema.additionalProperties, inner, depth + 1)}`);
  return lines.length ? `{\n${lines.join("\n")}\n${indent}}` : "{ }";
}

function shapeText(document, schema, indent, depth) {
  if (schema.prefixItems) return `[${schema.prefixItems.map((one) => schemaText(document, one, indent, depth + 1)).join(", ")}]`;
  // Of elements that may be nested, only the plain form is written.
  const choices = resolved(document, schema.items).anyOf;
  const plain = choices && !resolved(document, choices[0]).properties ? choices[0] : schema.items;
  return plain ? `[ ${schemaText(document, plain, indent, depth + 1)} … ]` : "[ … ]";
}

function rangeText({ type, minimum, maximum }) {
  const name = Array.isArray(type) ? type.join(" | ") : (type ?? "any");
  if (minimum === undefined && maximum === undefined) return name;
  return `${name} (${minimum ?? "…"} to ${maximum ?? "…"})`;
}

/** What fits a schema, as one would write it down; a question mark follows what may be left out. */
export function schemaText(document, schema, indent = "", depth = 0) {
  const known = resolved(document, schema);
  if (depth > DEEPEST) return "…";
  if ("const" in known) return JSON.stringify(known.const);
  if (known.enum) return known.enum.map((one) => JSON.stringify(one)).join(" | ");
  const comment = known.description && depth > 0 ? `  // ${known.description}` : "";
  if (known.properties || known.type === "object") return objectText(document, known, indent, depth);
  if (known.type === "array") return shapeText(document, known, indent, depth);
  const choices = known.anyOf ?? known.oneOf;
  if (choices) return choices.map((one) => schemaText(document, one, indent, depth + 1)).join(" | ");
  return (known.type ? rangeText(known) : (known.description ?? "any")) + (known.type ? comment : "");
}

const elements = (shape) => shape.reduce((count, size) => count * size, 1);

function exampleTensor(document, schema) {
  const { properties } = schema;
  const shape = (resolved(document, properties.shape).prefixItems ?? [{}]).map((size) => size.const ?? 1);
  const datatype = properties.datatype?.const ?? "FP32";
  const value = datatype === "BYTES" ? "text" : datatype === "BOOL" ? true : 0;
  const few = Math.min(elements(shape), 16);
  return { name: properties.name?.const ?? "INPUT", shape, datatype, data: Array(few).fill(value) };
}

function exampleArray(document, { items }) {
  if (!items) return [];
  const choices = (resolved(document, items).anyOf ?? [items]).map((one) => resolved(document, one));
  const tensors = choices.filter((one) => one.properties?.datatype);
  return tensors.length ? tensors.map((one) => exampleTensor(document, one)) : [];
}

/** A value that shows the form: a start for one's own. */
export function exampleOf(document, schema) {
  const known = resolved(document, schema);
  if ("const" in known) return known.const;
  if (known.enum) return known.enum[0];
  if (known.type === "array") return exampleArray(document, known);
  if (known.properties) {
    const needed = Object.entries(known.properties).filter(([name]) => known.required?.includes(name));
    return Object.fromEntries(needed.map(([name, one]) => [name, exampleOf(document, one)]));
  }
  const choice = known.anyOf?.at(-1) ?? known.oneOf?.[0];
  if (choice) return exampleOf(document, choice);
  return { string: "text", integer: 0, number: 0, boolean: true, object: {} }[[known.type].flat()[0]] ?? 0;
}
