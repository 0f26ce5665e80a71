// Asks a server over HTTP by fetch, in Node.js 18 and later or, with another way to print, in a browser.
// Usage: node http.mjs [host:port]

const base = `http://${process.argv[2] ?? "localhost:8000"}`;
const row = Int32Array.from({ length: 16 }, (_, index) => index);
const ones = new Int32Array(16).fill(1);

/** The server says in the field `error` why it refuses. */
async function ask(path, options = {}) {
  const response = await fetch(base + path, { signal: AbortSignal.timeout(30_000), ...options });
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
}

async function inferJson() {
  const inputs = [row, ones].map((data, n) => ({ name: `INPUT${n}`, shape: [1, 16], datatype: "INT32", data: Array.from(data) }));
  const body = JSON.stringify({ inputs, outputs: [{ name: "OUTPUT0" }] });
  const { outputs } = await (await ask("/v2/models/simple/infer", { method: "POST", body })).json();
  return outputs[0].data;
}

/** A JSON header, then the numbers as they lie in memory; the length of the header stands in a header of HTTP. */
async function inferBinary() {
  const inputs = [row, ones].map((data, n) => ({
    name: `INPUT${n}`, shape: [1, 16], datatype: "INT32", parameters: { binary_data_size: data.byteLength },
  }));
  const outputs = [{ name: "OUTPUT1", parameters: { binary_data: true } }];
  const header = new TextEncoder().encode(JSON.stringify({ inputs, outputs }));
  const headers = { "Inference-Header-Content-Length": String(header.byteLength) };
  const response = await ask("/v2/models/simple/infer", { method: "POST", headers, body: new Blob([header, row, ones]) });
  const body = await response.arrayBuffer();
  // Copied, for the numbers may begin anywhere and an Int32Array may not.
  return new Int32Array(body.slice(Number(response.headers.get("Inference-Header-Content-Length"))));
}

/** Server-sent events: a line `data: {...}` for each response, as it comes. */
async function* words(text) {
  const { body } = await ask("/v2/models/words/generate_stream", { method: "POST", body: JSON.stringify({ TEXT: text }) });
  let rest = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)).WORD;
  }
}

console.log("ready:", (await ask("/v2/health/ready")).ok ? "yes" : "no");
const { inputs } = await (await ask("/v2/models/simple")).json();
console.log("inputs:", inputs.map(({ name, datatype, shape }) => `${name} ${datatype} [${shape.join(", ")}]`).join("; "));
console.log("sum:", ...(await inferJson()));
console.log("difference:", ...(await inferBinary()));
let line = "words:";
for await (const word of words("one word after another")) line += ` | ${word}`;
console.log(line);
try {
  await ask("/v2/models/nothing/infer", { method: "POST", body: '{"inputs": []}' });
} catch (error) {
  console.log("refused:", error.message);
}
