// The console's form without a browser: types, typed values, JSON, requests, commands, pictures, files.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fitSamples, joined, scaled } from "./page/try-audio.js";
import { curl, infer, needsFile, python } from "./page/try-code.js";
import { axes, fitType, guessLayout, guessRange, toNumbers, toPixels } from "./page/try-image.js";
import { byteText, parse, readable, stringBytes } from "./page/try-json.js";
import { fitShape, madeUp, parseList, plainShape } from "./page/try-parse.js";
import { buildRequest, sentHeaders, wantsBytes } from "./page/try-request.js";
import { classes, jsonOf, parseResponse, summary, toNpy } from "./page/try-response.js";
import { TYPES, asText, decode, digits, encode, fromBrain, fromHalf, joinBytes, toBrain, toHalf } from "./page/try-types.js";
import { curvePoints, viewsOf } from "./page/try-views.js";

const utf8 = (text) => new TextEncoder().encode(text);
const NO_PARAMETERS = { id: "", priority: null, timeout: null, custom: [] };
const BASE = "http://127.0.0.1:8000/";

function tensor(name, datatype, shape, values) {
  return { name, datatype, shape, bytes: datatype === "BYTES" ? joinBytes(values.map(utf8)) : encode(datatype, values) };
}

function output(datatype, shape, values, name = "out") {
  const { bytes } = tensor(name, datatype, shape, values);
  return { name, datatype, shape, bytes, values: decode(datatype, bytes), parameters: [] };
}

function request(inputs, more = {}) {
  return buildRequest({ model: "m", version: "", inputs, outputs: null, parameters: NO_PARAMETERS, form: "json", ...more });
}

test("every half is read and written as it is", () => {
  for (let bits = 0; bits < 65536; bits += 1) {
    const value = fromHalf(bits);
    if (Number.isNaN(value)) assert.ok(Number.isNaN(fromHalf(toHalf(value))));
    else assert.equal(toHalf(value), bits);
  }
});

test("numbers between two halves go to the nearer, of two as near to the even one", () => {
  assert.equal(toHalf(65519.99), 0x7bff);
  assert.equal(toHalf(65520), 0x7c00);
  assert.equal(toHalf(1 + 2 ** -11), 0x3c00);
  assert.equal(toHalf(1 + 3 * 2 ** -11), 0x3c02);
  assert.equal(toHalf(2 - 2 ** -12), 0x4000);
  assert.equal(toHalf(2 ** -25), 0);
  assert.equal(toHalf(2 ** -25 * 1.01), 1);
  assert.equal(toHalf(-Infinity), 0xfc00);
  assert.equal(toHalf(Number.MAX_VALUE), 0x7c00);
});

test("bfloat16 is rounded as well", () => {
  for (const value of [0, -0, 1, -2.5, 3.0517578125e-5, Infinity]) assert.ok(Object.is(fromBrain(toBrain(value)), value));
  assert.equal(fromBrain(toBrain(1.00390625)), 1);
  assert.equal(fromBrain(toBrain(1.01171875)), 1.015625);
  assert.ok(Number.isNaN(fromBrain(toBrain(NaN))));
});

test("integers of 64 bits stay exact, and what does not fit is said", () => {
  const exact = ["9007199254740993", "-9223372036854775808", "9223372036854775807"];
  assert.deepEqual(Array.from(decode("INT64", encode("INT64", exact)), String), exact);
  assert.deepEqual(Array.from(decode("UINT64", encode("UINT64", ["18446744073709551615"]))), [18446744073709551615n]);
  assert.throws(() => encode("INT64", ["9223372036854775808"]), /does not fit INT64: -9223372036854775808 to/);
  assert.throws(() => encode("UINT8", ["1", "256"]), /256 does not fit UINT8: 0 to 255/);
  assert.throws(() => encode("INT32", ["1.5"]), /"1.5" is not a whole number/);
  assert.throws(() => encode("INT8", [200]), /200 does not fit INT8/);
  assert.throws(() => encode("FP32", ["abc"]), /"abc" is not a number/);
  assert.throws(() => encode("FP32", ["0x10"]), /is not a number/);
  assert.throws(() => encode("BOOL", ["yes"]), /neither true nor false/);
  assert.throws(() => encode("STRANGE", ["1"]), /the type STRANGE/);
  assert.deepEqual(decode("BOOL", encode("BOOL", ["true", "0", "False"])), [true, false, false]);
});

test("elements of BYTES are divided by their lengths, and a wrong length is said", () => {
  const elements = [utf8("one"), new Uint8Array(0), new Uint8Array([255, 0])];
  const bytes = joinBytes(elements);
  assert.deepEqual(decode("BYTES", bytes), elements);
  assert.throws(() => decode("BYTES", bytes.subarray(0, bytes.length - 1)), /longer than its tensor/);
  assert.throws(() => decode("BYTES", new Uint8Array(3)), /longer than its tensor/);
  assert.equal(asText(elements[2]), null);
  assert.throws(() => decode("INT32", new Uint8Array(6)), /6 bytes are not a whole number/);
});

test("numbers are as short as their type allows", () => {
  assert.equal(digits("FP32", Math.fround(0.1)), "0.1");
  assert.equal(digits("FP64", 0.1 + 0.2), "0.30000000000000004");
  assert.equal(digits("FP32", -0), "-0.0");
  assert.equal(digits("FP16", 65504), "65504");
  assert.equal(digits("FP16", fromHalf(toHalf(0.1))), "0.1");
  assert.equal(digits("INT64", 12345678901234567890n), "12345678901234567890");
});

test("typed lists have their shape, and what is no list is said", () => {
  assert.deepEqual(parseList("1, 2 3\n4"), { elements: ["1", "2", "3", "4"], shape: null });
  assert.deepEqual(parseList("[[1,2],[3,4],[5,6]]").shape, [3, 2]);
  assert.deepEqual(parseList("[[[7]]]").shape, [1, 1, 1]);
  assert.deepEqual(parseList("[]").shape, [0]);
  for (const wrong of ["[1,[2]]", "[[1],[2,3]]", "[1", "1]", "[1][2]", "[[1],2]", "[[[1]],[2]]", "[1] 2", "[[],[1]]"]) assert.throws(() => parseList(wrong), wrong);
});

test("free dimensions take what there is", () => {
  assert.deepEqual(fitShape([-1, 16], [null], 32), [2, 16]);
  assert.deepEqual(fitShape([-1, -1], [null, null], 5), [1, 5]);
  assert.deepEqual(fitShape([-1, -1], [2, null], 6), [2, 3]);
  assert.deepEqual(fitShape([-1, 3], [null], 3, [3]), [1, 3]);
  assert.deepEqual(fitShape([-1, -1], [null, null], 6, [3, 2]), [3, 2]);
  assert.deepEqual(fitShape([1], [], 1), [1]);
  assert.deepEqual(fitShape([], [], 1), []);
  assert.deepEqual(fitShape([-1], [null], 0), [0]);
  assert.throws(() => fitShape([1, 16], [], 15), /shape \[1, 16\] needs 16 elements, got 15/);
  assert.throws(() => fitShape([-1, 4], [null], 6), /a multiple of 4 elements/);
  assert.throws(() => fitShape([-1, 4], [3], 8), /needs 12 elements/);
  assert.throws(() => fitShape([2, 3], [], 6, [3, 2]), /the lists have shape \[3, 2\]/);
  assert.deepEqual(plainShape([-1, 3, -1], [null, null, 4]), [1, 3, 4]);
});

test("numbers that are made up fit their type", () => {
  assert.deepEqual(madeUp("range", TYPES.INT32, 4, { from: 5, step: -2 }), [5, 3, 1, -1]);
  const made = madeUp("random", TYPES.INT32, 500, { from: 1, to: 3 });
  assert.deepEqual([...new Set(made)].sort(), [1, 2, 3]);
  assert.ok(madeUp("random", TYPES.FP32, 100, { from: 0, to: 1 }).every((value) => value >= 0 && value < 1));
});

test("JSON of the server is read exactly", () => {
  const bytes = new Uint8Array([...utf8('{"a":[9007199254740993,-9007199254740993,NaN,-Infinity,1e5,1.5],"b":"9007199254740993 NaN","c":"'), 255, 0xc3, 0xa4, ...utf8('\\u0001\\"\\\\"}')]);
  const read = parse(byteText(bytes));
  assert.deepEqual(read.a, [9007199254740993n, -9007199254740993n, NaN, -Infinity, 100000, 1.5]);
  assert.equal(read.b, "9007199254740993 NaN");
  assert.deepEqual([...stringBytes(read.c)], [255, 0xc3, 0xa4, 1, 34, 92]);
  assert.equal(readable(parse(byteText(utf8('"ä€"')))), "ä€");
  assert.equal(byteText(new Uint8Array(100000).fill(65)).length, 100000);
  assert.throws(() => parse('{"a":'));
});

test("short tensors are JSON, others bytes", () => {
  const plain = request([tensor("a", "INT64", [2], ["9007199254740993", "-1"]), tensor("t", "BYTES", [1], ['"ä"'])]);
  assert.equal(plain.header, '{"inputs":[{"name":"a","shape":[2],"datatype":"INT64","data":[9007199254740993,-1]},{"name":"t","shape":[1],"datatype":"BYTES","data":["\\"ä\\""]}]}');
  assert.deepEqual(sentHeaders(plain), { "content-type": "application/json" });
  assert.deepEqual(plain.body, utf8(plain.header));
  const mixed = request([tensor("h", "FP16", [1], [1]), tensor("a", "INT8", [1], [1]), tensor("f", "FP32", [1], [NaN])]);
  assert.equal(mixed.headers["inference-header-content-length"], String(utf8(mixed.header).length));
  assert.deepEqual(mixed.offsets, [utf8(mixed.header).length, null, utf8(mixed.header).length + 2]);
  assert.deepEqual([...mixed.body.subarray(mixed.offsets[0], mixed.offsets[0] + 2)], [0, 0x3c]);
  assert.match(mixed.header, /"name":"h","shape":\[1\],"datatype":"FP16","parameters":\{"binary_data_size":2\}/);
  assert.equal(request([tensor("f", "FP32", [300], Array(300).fill(0))]).isPlain, false);
  assert.equal(request([{ ...tensor("t", "BYTES", [1], [""]), bytes: joinBytes([new Uint8Array([255])]) }]).isPlain, false);
});

test("outputs, form and parameters stand where the protocol has them", () => {
  const outputs = [{ name: "o", datatype: "FP32", shape: [-1, 3], classes: 2 }, { name: "p", datatype: "FP16", shape: [2], classes: null }];
  const parameters = { id: "me", priority: 1, timeout: 0, custom: [["k", 9007199254740993n], ["b", true], ["s", "x"]] };
  const made = JSON.parse(request([tensor("a", "INT8", [1], [1])], { outputs, parameters, form: "binary" }).header.replace("9007199254740993", '"big"'));
  assert.equal(made.id, "me");
  assert.deepEqual(made.parameters, { priority: 1, timeout: 0, k: "big", b: true, s: "x" });
  assert.deepEqual(made.outputs, [{ name: "o", parameters: { binary_data: true, classification: 2 } }, { name: "p", parameters: { binary_data: true } }]);
  assert.deepEqual(JSON.parse(request([], { form: "binary" }).header), { parameters: { binary_data_output: true }, inputs: [] });
  assert.equal(sentHeaders(request([], { form: "lines" })).accept, "application/x-ndjson");
  assert.equal(request([], { version: "3" }).path, "v2/models/m/versions/3/infer");
  const open = [{ datatype: "FP32", shape: [-1] }];
  assert.ok(wantsBytes(outputs, []) && !wantsBytes(outputs.slice(0, 1), [{ shape: [9999] }]));
  assert.ok(wantsBytes([{ datatype: "UINT8", shape: [-1, 3, -1, -1] }], []));
  assert.ok(wantsBytes(open, [{ shape: [9999] }]) && !wantsBytes(open, [{ shape: [9] }]));
});

test("answers are read whether they are JSON or bytes", () => {
  const header = utf8('{"model_name":"m","model_version":"1","id":"ä","parameters":{"k":"v"},"outputs":[{"name":"x","datatype":"FP16","shape":[2],"parameters":{"binary_data_size":4}},{"name":"y","datatype":"UINT64","shape":[1],"data":[18446744073709551615]}]}');
  const body = new Uint8Array([...header, 0, 0x3c, 0, 0x40]);
  const { outputs, id, parameters } = parseResponse(body, header.length);
  assert.deepEqual([...outputs[0].values], [1, 2]);
  assert.deepEqual([...outputs[1].values], [18446744073709551615n]);
  assert.equal(id, "ä");
  assert.deepEqual(parameters, [["k", "v"]]);
  assert.deepEqual(parseResponse(utf8('{"error":"broken ä"}')).error, "broken ä");
});

test("answers that do not fit themselves are refused", () => {
  const one = (fields) => utf8(JSON.stringify({ outputs: [{ name: "x", datatype: "FP32", shape: [2], ...fields }] }));
  const refused = [
    [one({ data: [1] }), undefined],
    [one({ shape: [-1], data: [] }), undefined],
    [one({ shape: "2", data: [1, 2] }), undefined],
    [one({ shape: [1e300, 0], data: [] }), undefined],
    [one({ datatype: "toString", data: [1, 2] }), undefined],
    [one({ parameters: { binary_data_size: 9 } }), undefined],
    [one({ parameters: { binary_data_size: -1 } }), undefined],
    [one({ data: ["a", {}] }), undefined],
    [utf8('{"outputs":5}'), undefined],
    [utf8("[1"), undefined],
    [utf8("null"), undefined],
    [utf8("{}"), 5],
    [utf8("{}"), NaN],
  ];
  for (const [body, length] of refused) assert.throws(() => parseResponse(body, length), asText(body));
});

test("figures of a tensor leave out what is not finite", () => {
  const told = summary(output("FP32", [4], [1, NaN, 3, Infinity]));
  assert.deepEqual(told, { low: 1, high: 3, mean: 2, notFinite: 2, finite: 2 });
});

test("classes are told from other texts", () => {
  assert.deepEqual(classes(output("BYTES", [2], ["0.5:3:cat: black", "-1e-05:4"])), [{ value: 0.5, label: "cat: black" }, { value: -1e-5, label: "class 4" }]);
  assert.equal(classes(output("BYTES", [1], ["12:30 o'clock"])), null);
});

test("files of numpy begin at a multiple of 64 bytes", () => {
  const file = toNpy(output("INT64", [3], [1, 2, 3]));
  assert.equal(file[0], 0x93);
  const size = new DataView(file.buffer).getUint16(8, true);
  assert.equal((10 + size) % 64, 0);
  assert.match(byteText(file.subarray(10, 10 + size)), /^\{'descr': '<i8', 'fortran_order': False, 'shape': \(3,\), \} *\n$/);
  assert.equal(file.length, 10 + size + 24);
  assert.equal(jsonOf(output("FP32", [3], [0.1, NaN, -0])), '{"name":"out","datatype":"FP32","shape":[3],"data":[0.1,"NaN",-0.0]}\n');
  assert.deepEqual(JSON.parse(jsonOf({ ...output("BYTES", [1], ["a"]), values: [new Uint8Array([255])] })).data, [{ b64: "/w==" }]);
});

test("layouts are told by shape and format", () => {
  const guesses = [
    [[-1, 3, 224, 224], "", "NCHW"], [[-1, 224, 224, 3], "", "NHWC"], [[3, -1, -1], "", "CHW"], [[32, 32, 1], "", "HWC"],
    [[-1, -1, -1, -1], "NHWC", "NHWC"], [[28, 28], "", "HW"], [[2, -1, 128], "", null], [[-1, 16, 384], "", null], [[5], "", null], [[1, 3, 3, 3], "", null],
  ];
  for (const [shape, format, layout] of guesses) assert.equal(guessLayout(shape, format), layout, `${shape} ${format}`);
});

test("pictures become numbers in each layout, and come back", () => {
  const pixels = new Uint8ClampedArray([255, 0, 51, 255, 102, 204, 0, 255]);
  const rgb = { colours: "RGB", scale: "bytes" };
  assert.deepEqual([...toNumbers(pixels, [1, 3, 1, 2], { ...rgb, layout: "NCHW" })], [255, 102, 0, 204, 51, 0]);
  assert.deepEqual([...toNumbers(pixels, [1, 2, 3], { ...rgb, layout: "HWC" })], [255, 0, 51, 102, 204, 0]);
  assert.deepEqual([...toNumbers(pixels, [1, 2, 3], { ...rgb, colours: "BGR", layout: "HWC" })], [51, 0, 255, 0, 204, 102]);
  assert.deepEqual([...toNumbers(pixels, [1, 2], { ...rgb, colours: "Grey", layout: "HW" })], [82, 150]);
  assert.deepEqual([...toNumbers(pixels, [3, 1, 2], { ...rgb, scale: "signed", layout: "CHW" })].map((x) => x.toFixed(2)), ["1.00", "-0.20", "-1.00", "0.60", "-0.60", "-1.00"]);
  const mean = toNumbers(pixels, [3, 1, 2], { ...rgb, scale: "imagenet", layout: "CHW" });
  assert.ok(Math.abs(mean[0] - (1 - 0.485) / 0.229) < 1e-6 && Math.abs(mean[5] - (0 - 0.406) / 0.225) < 1e-6);
  assert.throws(() => toNumbers(pixels, [1, 1, 2], { ...rgb, layout: "CHW" }), /RGB has 3 channels, the tensor 1/);
  const back = toPixels(output("UINT8", [1, 3, 1, 2], [255, 102, 0, 204, 51, 0]), "NCHW", [0, 255]);
  assert.deepEqual([...back.pixels], [...pixels]);
  assert.deepEqual([...fitType(new Float32Array([-1, 254.6, 300]), "UINT8")], [0, 255, 255]);
  assert.equal(axes("HWC").batch, -1);
});

test("ranges of colours are told by values", () => {
  const told = (low, high, datatype = "FP32") => guessRange(datatype, { low, high, notFinite: 0 });
  assert.deepEqual([told(0, 0.9), told(-1, 1), told(0, 200), told(-5, 5), told(0, 9, "UINT8"), told(0, 9, "INT32")], [[0, 1], [-1, 1], [0, 255], null, [0, 255], null]);
});

test("sound is joined to one channel and fitted to the shape", () => {
  assert.deepEqual([...joined([new Float32Array([1, 0]), new Float32Array([0, 1])])], [0.5, 0.5]);
  assert.deepEqual([...fitSamples(new Float32Array([1, 2, 3]), [1, 2])], [1, 2]);
  assert.deepEqual([...fitSamples(new Float32Array([1, 2, 3]), [null, 2])], [1, 2, 3, 0]);
  assert.deepEqual([...scaled(new Float32Array([1, -1, 2, 0.5]), true)], [32767, -32767, 32767, 16384]);
});

test("what looks like a picture, scores, a curve or a table is shown so first", () => {
  const first = (...given) => viewsOf(output(...given))[0];
  assert.equal(first("FP32", [1, 3], [0.2, 0.3, 0.5]), "scores");
  assert.equal(first("FP32", [1, 3], [2, -3, 5], "logits"), "scores");
  assert.equal(first("INT32", [1, 4], [1, 2, 3, 4]), "table");
  assert.equal(first("FP32", [1, 100], Array(100).fill(0.5)), "chart");
  assert.equal(first("UINT8", [1, 3, 8, 8], Array(192).fill(9)), "picture");
  assert.equal(first("FP32", [1, 3, 8, 8], Array(192).fill(-9)), "numbers");
  assert.equal(first("BYTES", [1], ["hello"]), "text");
  assert.equal(first("BYTES", [1], ["0.5:1:cat"]), "labels");
  assert.equal(first("BOOL", [2], [true, false]), "table");
  assert.equal(first("BOOL", [1], [true]), "value");
  assert.ok(viewsOf(output("FP32", [0], [])).length > 0);
  const peak = Array(10000).fill(0);
  peak[7777] = 5;
  assert.ok(curvePoints(peak, 100).some(([, value]) => value === 5));
  assert.ok(curvePoints(peak, 100).length <= 200);
});

test("commands hold what a shell and Python would read otherwise", () => {
  const awkward = request([tensor("it's", "BYTES", [2], ["it's $HOME `x` \\ \"q\"", "line\nJSON\nend \u{1f600}"])]);
  const shell = curl(awkward, BASE, []);
  assert.ok(shell.includes("<<'JSON'\n") && !shell.split("\n").slice(0, -1).includes("JSON"));
  assert.match(python(awkward, BASE, []), /"it's \$HOME `x` \\\\ \\"q\\"".encode\(\)/);
  assert.match(python(awkward, BASE, []), /\\U0001f600/);
  assert.ok(infer(awkward, BASE, []).includes("--input 'it'\\''s=["));
});

test("long bodies are files, and values of restricted headers stay out", () => {
  const long = request([tensor("a", "FP32", [5000], Array.from({ length: 5000 }, (_, at) => at))]);
  assert.ok(needsFile(long));
  assert.match(curl(long, BASE, ["x-key"]), /-H "x-key: \$X_KEY".* --data-binary @request.bin/s);
  assert.match(python(long, BASE, ["x-key"]), new RegExp(`np.fromfile\\("request.bin", dtype=np.float32, count=5000, offset=${long.offsets[0]}\\)`));
  assert.match(python(long, BASE, ["x-key"]), /headers=\{"x-key": os.environ\["X_KEY"\]\}/);
  assert.equal(infer(long, BASE, []), null);
  const even = request([tensor("a", "FP32", [5000], Array(5000).fill(0.5))]);
  assert.match(python(even, BASE, []), /np.full\(\[5000\], 0.5, dtype=np.float32\)/);
});

test("galatea infer is offered where it says the same", () => {
  const small = [tensor("a", "INT8", [1, 2], [1, 2])];
  assert.match(infer(request(small), BASE, []), /--input 'a=\[\[1,2\]\]'/);
  assert.match(infer(request(small, { outputs: [{ name: "o", classes: 3 }] }), BASE, []), /--output 'o' \\\n {2}--classes 3/);
  assert.equal(infer(request(small, { form: "lines" }), BASE, []), null);
  assert.equal(infer(request(small, { parameters: { ...NO_PARAMETERS, id: "x" } }), BASE, []), null);
  assert.equal(infer(request([tensor("h", "FP16", [1], [1])]), BASE, []), null);
});
