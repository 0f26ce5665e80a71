// Pictures as tensors and tensors as pictures: layouts, colours and scales.

import { element } from "./dom.js";
import { TYPES, count } from "./try-types.js";

export const SCALES = {
  unit: ["0 to 1", (value) => value / 255],
  bytes: ["0 to 255", (value) => value],
  signed: ["-1 to 1", (value) => value / 127.5 - 1],
  imagenet: ["mean and deviation of ImageNet", (value, channel) => (value / 255 - MEAN[channel]) / DEVIATION[channel]],
};
const MEAN = [0.485, 0.456, 0.406, 0];
const DEVIATION = [0.229, 0.224, 0.225, 1];
export const LAYOUTS = ["NCHW", "NHWC", "CHW", "HWC", "HW"];
/** Where each colour of a pixel lies in a tensor, by how many channels there are. */
const ORDERS = { RGB: [0, 1, 2], BGR: [2, 1, 0], RGBA: [0, 1, 2, 3] };
export const COLOURS = ["RGB", "BGR", "Grey", "RGBA"];
const MOST_PIXELS = 1 << 24;

function isChannels(dim) {
  return dim === 1 || dim === 3 || dim === 4;
}

/** The layout that a shape (with its batch dimension) and the configuration's format speak for; `null`: no picture. */
export function guessLayout(shape, format = "") {
  if (shape.length < 2 || shape.length > 4) return null;
  if (shape.length === 2) return shape.every((dim) => dim < 0 || dim > 8) ? "HW" : null;
  const [front, back] = shape.length === 4 ? ["NCHW", "NHWC"] : ["CHW", "HWC"];
  if (format.endsWith("NCHW")) return front;
  if (format.endsWith("NHWC")) return back;
  const first = shape.length - 3;
  const isLarge = (dim) => dim < 0 || dim > 4;
  if (isChannels(shape[first]) && isLarge(shape[first + 1]) && isLarge(shape[first + 2])) return front;
  return isChannels(shape[shape.length - 1]) && isLarge(shape[first]) && isLarge(shape[first + 1]) ? back : null;
}

/** Which axis of a shape is what. */
export function axes(layout) {
  const at = (letter) => layout.indexOf(letter);
  return { batch: at("N"), channel: at("C"), height: at("H"), width: at("W") };
}

/** How far apart neighbours lie along each axis. */
function steps(shape, layout) {
  const step = (axis) => (axis < 0 ? 0 : count(shape.slice(axis + 1)));
  const { channel, height, width } = axes(layout);
  return { channel: step(channel), height: step(height), width: step(width) };
}

/** The numbers of a picture: `pixels` has red, green, blue, alpha of each point, `shape` the tensor's. */
export function toNumbers(pixels, shape, { layout, colours, scale }) {
  const size = axes(layout);
  const step = steps(shape, layout);
  const channels = size.channel < 0 ? 1 : shape[size.channel];
  const order = colours === "Grey" ? null : ORDERS[colours];
  if (channels !== (order ? order.length : 1)) throw new Error(`${colours} has ${order ? order.length : 1} channels, the tensor ${channels}`);
  const [, scaled] = SCALES[scale];
  const numbers = new Float32Array(count(shape));
  const [height, width] = [shape[size.height], shape[size.width]];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = (y * width + x) * 4;
      for (let channel = 0; channel < channels; channel += 1) {
        const colour = order ? order[channel] : 0;
        const value = order ? pixels[from + colour] : grey(pixels, from);
        numbers[y * step.height + x * step.width + channel * step.channel] = scaled(value, colour);
      }
    }
  }
  return numbers;
}

function grey(pixels, from) {
  return Math.round(0.299 * pixels[from] + 0.587 * pixels[from + 1] + 0.114 * pixels[from + 2]);
}

/** Numbers as elements of a type: whole ones are rounded and kept within it. */
export function fitType(numbers, datatype) {
  const type = TYPES[datatype];
  if (!type.isInteger) return numbers;
  const [low, high] = [Number(type.low), Number(type.high)];
  return numbers.map((value) => Math.min(high, Math.max(low, Math.round(value))));
}

/** How values become 0 to 255: 0 to 1, -1 to 1 or 0 to 255, whichever they fit; `null` where none does. */
export function guessRange(datatype, { low, high, notFinite }) {
  if (datatype === "UINT8") return [0, 255];
  if (notFinite || !TYPES[datatype]?.isFloat) return null;
  if (low >= 0 && high <= 1) return [0, 1];
  if (low >= -1.001 && high <= 1.001) return [-1, 1];
  return low >= 0 && high <= 255 ? [0, 255] : null;
}

/** Red, green, blue, alpha of picture `index` of a tensor. */
export function toPixels({ shape, values }, layout, [low, high], index = 0) {
  const size = axes(layout);
  const step = steps(shape, layout);
  const [height, width, channels] = [shape[size.height], shape[size.width], size.channel < 0 ? 1 : shape[size.channel]];
  const start = index * height * width * channels;
  const pixels = new Uint8ClampedArray(width * height * 4).fill(255);
  const value = (y, x, channel) => ((Number(values[start + y * step.height + x * step.width + channel * step.channel]) - low) / (high - low)) * 255;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const to = (y * width + x) * 4;
      for (let colour = 0; colour < Math.max(3, channels); colour += 1) pixels[to + colour] = value(y, x, channels === 1 ? 0 : colour);
    }
  }
  return { pixels, width, height };
}

/** The picture of pixels. */
export function drawn({ pixels, width, height }, label) {
  const canvas = element("canvas", { width, height, role: "img", "aria-label": label });
  canvas.getContext("2d").putImageData(new ImageData(pixels, width, height), 0, 0);
  return canvas;
}

/** The pixels of an image file, stretched to a size or cut in its middle to the size's proportions; without a size, its own. */
export async function readImage(file, { width, height, fit }) {
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name} is not an image that this browser can read`);
  });
  const size = { width: width ?? bitmap.width, height: height ?? bitmap.height };
  if (size.width * size.height > MOST_PIXELS) throw new Error(`${size.width} x ${size.height} pixels are too many: choose a size`);
  const canvas = element("canvas", size);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const part = fit === "cut" ? middle(bitmap, size) : [0, 0, bitmap.width, bitmap.height];
  context.drawImage(bitmap, ...part, 0, 0, size.width, size.height);
  bitmap.close();
  return { pixels: context.getImageData(0, 0, size.width, size.height).data, ...size };
}

function middle(bitmap, { width, height }) {
  const scale = Math.min(bitmap.width / width, bitmap.height / height);
  const [w, h] = [width * scale, height * scale];
  return [(bitmap.width - w) / 2, (bitmap.height - h) / 2, w, h];
}
