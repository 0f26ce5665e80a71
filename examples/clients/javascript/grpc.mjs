// Asks a server over gRPC in Node.js, a stream included: npm install @grpc/grpc-js @grpc/proto-loader
// Usage: node grpc.mjs [host:port] [folder of kserve.proto]

import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const address = process.argv[2] ?? "localhost:8001";
const protos = process.argv[3] ?? fileURLToPath(new URL("../../../crates/shared/proto/proto", import.meta.url));
const definition = protoLoader.loadSync("kserve.proto", { includeDirs: [protos], keepCase: true, longs: Number });
const { inference } = grpc.loadPackageDefinition(definition);
const client = new inference.GRPCInferenceService(address, grpc.credentials.createInsecure());

/** A call with an answer, as a promise. */
function call(method, request) {
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 30_000;
    client[method](request, { deadline }, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

/** Tensors travel as bytes, the least significant byte of each number first. */
function pair() {
  const row = Int32Array.from({ length: 16 }, (_, index) => index);
  const ones = new Int32Array(16).fill(1);
  const inputs = ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16] }));
  return { model_name: "simple", inputs, raw_input_contents: [row, ones].map((numbers) => Buffer.from(numbers.buffer)) };
}

function numbers(answer, name) {
  const bytes = answer.raw_output_contents[answer.outputs.findIndex((output) => output.name === name)];
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readInt32LE(index * 4));
}

/** An element of BYTES is its length, four bytes, and then itself. */
function bytesElement(text) {
  const element = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(element.length);
  return Buffer.concat([length, element]);
}

/** A model that responds several times to one request is asked on a stream. */
async function words(text) {
  const stream = client.ModelStreamInfer({ deadline: Date.now() + 30_000 });
  stream.write({
    model_name: "words", inputs: [{ name: "TEXT", datatype: "BYTES", shape: [1] }], raw_input_contents: [bytesElement(text)],
  });
  stream.end();
  const found = [];
  for await (const { error_message, infer_response } of stream) {
    if (error_message) throw new Error(error_message);
    found.push(infer_response.raw_output_contents[0].subarray(4).toString());
  }
  return found;
}

console.log("ready:", (await call("ServerReady", {})).ready ? "yes" : "no");
const { inputs } = await call("ModelMetadata", { name: "simple" });
console.log("inputs:", inputs.map(({ name, datatype, shape }) => `${name} ${datatype} [${shape.join(", ")}]`).join("; "));
const answer = await call("ModelInfer", pair());
console.log("sum:", ...numbers(answer, "OUTPUT0"));
console.log("difference:", ...numbers(answer, "OUTPUT1"));
console.log("words:", ...(await words("one word after another")).map((word) => `| ${word}`));
try {
  await call("ModelInfer", { ...pair(), model_name: "nothing" });
} catch (error) {
  console.log("refused:", error.details);
}
client.close();
