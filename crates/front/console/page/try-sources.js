// Where the data of an input can come from. Each source has its controls and gives bytes and the shape they have.

import { fitSamples, readAudio, scaled } from "./try-audio.js";
import { element } from "./dom.js";
import { FieldError, choice, labelled, numberField, typedNumber } from "./try-form.js";
import { COLOURS, LAYOUTS, SCALES, axes, fitType, guessLayout, readImage, toNumbers } from "./try-image.js";
import { fitShape, madeUp, parseList, plainShape } from "./try-parse.js";
import { TYPES, count, encode, joinBytes } from "./try-types.js";

/** More elements than these are not typed by hand. */
const MOST_TYPED = 64;
const MOST_ELEMENTS = 1 << 26;
const RATE = 16000;

const numbersOf = (dims, typed) => dims.map((dim, axis) => (dim < 0 ? typed[axis] : dim));

/** The sources that a tensor can have, by name; `input` has name, datatype, shape (of metadata) and format. */
export function sourcesOf({ datatype, shape }) {
  if (datatype === "BYTES") return { text, lines, files };
  const numbers = { values, zeros: filling("Zeros", "zeros"), ones: filling("Ones", "ones"), random };
  if (!TYPES[datatype]?.isBool) Object.assign(numbers, { range }, shape.length > 1 && shape.length < 5 ? { image } : {});
  if (TYPES[datatype]?.isFloat || datatype === "INT16") numbers.audio = audio;
  return { ...numbers, raw };
}

/** The source to begin with. */
export function firstSource({ name, datatype, shape, format }) {
  const layout = guessLayout(shape, format);
  if (datatype === "BYTES") return "text";
  if (!TYPES[datatype].isBool && layout && layout !== "HW") return "image";
  if (TYPES[datatype].isFloat && /audio|wav|pcm|speech/i.test(name)) return "audio";
  return count(plainShape(shape, [])) > MOST_TYPED ? "zeros" : "values";
}

function example({ datatype, shape }) {
  const elements = count(plainShape(shape, []));
  if (elements > MOST_TYPED || elements === 0) return "";
  if (elements === 1) return TYPES[datatype].isBool ? "true" : "1";
  return Array.from({ length: elements }, (_, at) => (TYPES[datatype].isBool ? at % 2 === 0 : at)).join(", ");
}

const values = {
  label: "Numbers",
  build(input) {
    const area = element("textarea", { name: "values", rows: 3, spellcheck: "false", autocomplete: "off" });
    area.value = example(input);
    const kind = TYPES[input.datatype].isBool ? "true, false" : "1, 2, 3";
    const read = (typed) => {
      const { elements, shape } = parseList(area.value);
      return { shape: fitShape(input.shape, typed, elements.length, shape), bytes: encode(input.datatype, elements) };
    };
    return { main: area, nodes: [labelled("Values", area, `${kind}, or lists: [[1, 2], [3, 4]]`)], read };
  },
};

/** The shape of what is made up, within what a browser can hold. */
function madeShape(input, typed) {
  const shape = plainShape(input.shape, typed);
  if (count(shape) > MOST_ELEMENTS) throw new Error(`${count(shape)} elements are too many for a browser`);
  return shape;
}

function filling(label, kind) {
  const build = (input) => ({
    nodes: [],
    read(typed) {
      const shape = madeShape(input, typed);
      return { shape, bytes: encode(input.datatype, madeUp(kind, TYPES[input.datatype], count(shape), {})) };
    },
  });
  return { label, build };
}

function pairOfNumbers(input, kind, [firstName, first], [secondName, second]) {
  const fields = [numberField(firstName, first), numberField(secondName, second)];
  const isWhole = Boolean(TYPES[input.datatype].isInteger);
  const number = (field, name) => typedNumber(field, name, { isWhole }) ?? 0;
  const read = (typed) => {
    const shape = madeShape(input, typed);
    const [a, b] = [number(fields[0], firstName), number(fields[1], secondName)];
    const made = madeUp(kind, TYPES[input.datatype], count(shape), { from: a, to: b, step: b });
    return { shape, bytes: encode(input.datatype, made) };
  };
  return { main: fields[0], nodes: [labelled(firstName, fields[0]), labelled(secondName, fields[1])], read };
}

const random = {
  label: "Random numbers",
  build: (input) => (TYPES[input.datatype].isBool ? filling("", "random").build(input) : pairOfNumbers(input, "random", ["From", 0], ["To", TYPES[input.datatype].isInteger ? 100 : 1])),
};
const range = { label: "A range", build: (input) => pairOfNumbers(input, "range", ["From", 0], ["Step", 1]) };

function textSource(label, hint, split) {
  return {
    label,
    build(input) {
      const area = element("textarea", { name: "values", rows: 3, spellcheck: "false" });
      const read = (typed) => {
        const elements = split(area.value).map((part) => new TextEncoder().encode(part));
        return { shape: fitShape(input.shape, typed, elements.length), bytes: joinBytes(elements) };
      };
      return { main: area, nodes: [labelled("Text", area, hint)], read };
    },
  };
}

const text = textSource("Text", "the whole text is one element", (typed) => [typed]);
const lines = textSource("Lines of text", "each line is an element", (typed) => typed.replace(/\n$/, "").split("\n"));

function fileField(label, more, hint = "") {
  const field = element("input", { type: "file", name: "file", ...more });
  const chosen = () => {
    if (!field.files.length) throw new FieldError(field, `Choose ${label.toLowerCase()}.`);
    return [...field.files];
  };
  return { field, node: labelled(label, field, hint), chosen };
}

async function bytesOf(file) {
  return new Uint8Array(await file.arrayBuffer());
}

const files = {
  label: "Files",
  build(input) {
    const { field, node, chosen } = fileField("A file", { multiple: "" }, "each file's bytes are an element");
    const read = async (typed) => {
      const elements = await Promise.all(chosen().map(bytesOf));
      return { shape: fitShape(input.shape, typed, elements.length), bytes: joinBytes(elements), isRaw: true };
    };
    return { main: field, nodes: [node], read };
  },
};

const raw = {
  label: "A file with the tensor's bytes",
  build(input) {
    const { size } = TYPES[input.datatype];
    const { field, node, chosen } = fileField("A file", {}, `${input.datatype} as in memory: ${size} byte${size > 1 ? "s" : ""} an element, little-endian`);
    const read = async (typed) => {
      const [file] = chosen();
      const wrong = (reason) => new FieldError(field, `${file.name} has ${file.size} bytes: ${reason}`);
      if (file.size % size) throw wrong(`not a whole number of ${size}-byte elements`);
      const shape = fitted(() => fitShape(input.shape, typed, file.size / size), wrong);
      return { shape, bytes: await bytesOf(file), isRaw: true };
    };
    return { main: field, nodes: [node], read };
  },
};

function fitted(fit, wrong) {
  try {
    return fit();
  } catch (error) {
    throw wrong(error.message);
  }
}

function firstColours(channels, layout) {
  if (layout === "HW" || channels === 1) return "Grey";
  return channels === 4 ? "RGBA" : "RGB";
}

const image = {
  label: "Image",
  build(input) {
    const fitting = LAYOUTS.filter((layout) => layout.length === input.shape.length);
    const layout = choice("layout", fitting.map((name) => [name, name]), guessLayout(input.shape, input.format) ?? fitting[0]);
    const colours = choice("colours", COLOURS.map((name) => [name, name]), firstColours(input.shape[axes(layout.value).channel], layout.value));
    const isFloat = TYPES[input.datatype].isFloat;
    const scale = choice("scale", Object.entries(SCALES).map(([value, [label]]) => [value, label]), isFloat ? "unit" : "bytes");
    const fit = choice("fit", [["stretch", "stretched"], ["cut", "cut in the middle"]], "stretch");
    const { field, node, chosen } = fileField("An image", { accept: "image/*", multiple: "" });
    const settings = () => ({ layout: layout.value, colours: colours.value, scale: scale.value, fit: fit.value });
    const nodes = [node, labelled("Layout", layout), labelled("Colours", colours), labelled("Values", scale), labelled("To the size", fit)];
    return { main: field, nodes, read: (typed) => imageTensor(input, typed, chosen(), settings()) };
  },
};

/** One picture, or as many as the batch dimension has. */
async function imageTensor(input, typed, chosen, settings) {
  const { batch, channel, height, width } = axes(settings.layout);
  const shape = numbersOf(input.shape, typed);
  const [pictures, channels] = [chosen.length, settings.colours === "Grey" ? 1 : settings.colours.length];
  if (pictures > 1 && (batch < 0 || (shape[batch] ?? pictures) !== pictures)) throw new Error(`${pictures} images do not fit the shape`);
  const parts = [];
  for (const file of chosen) {
    const read = await readImage(file, { width: shape[width], height: shape[height], fit: settings.fit });
    shape[height] = read.height;
    shape[width] = read.width;
    const single = shape.map((dim, axis) => (axis === batch ? 1 : dim ?? (axis === channel ? channels : 1)));
    parts.push({ single, numbers: toNumbers(read.pixels, single, settings) });
  }
  if (batch >= 0 && (shape[batch] ?? pictures) !== pictures) throw new Error(`the batch has ${shape[batch]} pictures, and one image is chosen`);
  const whole = parts[0].single.map((dim, axis) => (axis === batch ? pictures : dim));
  const numbers = parts.flatMap((part) => Array.from(fitType(part.numbers, input.datatype)));
  return { shape: whole, bytes: encode(input.datatype, numbers), isRaw: true };
}

const audio = {
  label: "Sound",
  build(input) {
    const { field, node, chosen } = fileField("A sound file", { accept: "audio/*,.wav" }, "joined to one channel; cut, or filled up with silence, to the shape");
    const rate = numberField("rate", RATE);
    const read = async (typed) => {
      const samples = await readAudio(chosen()[0], typedNumber(rate, "Rate", { isWhole: true }) ?? RATE);
      const fitting = scaled(fitSamples(samples, numbersOf(input.shape, typed).map((dim) => dim ?? null)), TYPES[input.datatype].isInteger);
      return { shape: fitShape(input.shape, typed, fitting.length), bytes: encode(input.datatype, fitting), isRaw: true };
    };
    return { main: field, nodes: [node, labelled("Samples a second", rate)], read };
  },
};
