// What people type into the form: numbers, nested lists, and the dimensions that go with them.

import { count } from "./try-types.js";

/** Elements as typed, `1, 2, 3` or nested lists, and the shape where the lists say one. */
export function parseList(text) {
  const words = text.match(/[[\]]|[^\s,[\]]+/g) ?? [];
  if (!words.some((word) => word === "[" || word === "]")) return { elements: words, shape: null };
  const elements = [];
  const shape = [];
  const open = [];
  for (const [place, word] of words.entries()) {
    if (word === "[") openList(open, place);
    else if (word === "]") closeList(open, shape);
    else addElement(open, elements, word);
  }
  if (open.length) throw new Error(`${open.length} "[" without "]"`);
  return { elements, shape };
}

function openList(open, place) {
  if (!open.length && place > 0) throw new Error("there is more than one list");
  if (open.length) addTo(open, "list");
  open.push({ size: 0, kind: null });
}

function addTo(open, kind) {
  const list = open[open.length - 1];
  if (list.kind && list.kind !== kind) throw new Error("a list holds numbers and lists");
  list.kind = kind;
  list.size += 1;
}

function addElement(open, elements, word) {
  if (!open.length) throw new Error(`"${word}" is outside of the list`);
  addTo(open, "number");
  elements.push(word);
}

function closeList(open, shape) {
  const list = open.pop();
  if (!list) throw new Error('a "]" without "["');
  const depth = open.length;
  const known = shape[depth];
  if (known !== undefined && known !== list.size) throw new Error(`lists of ${known} and of ${list.size} elements side by side`);
  if (known === undefined) shape[depth] = list.size;
  const deeper = shape.length - 1 > depth;
  if ((list.kind === "list") !== deeper) throw new Error("lists of different depth side by side");
}

function shown(dims) {
  return `[${dims.map((dim) => dim ?? "?").join(", ")}]`;
}

/**
 * The shape that data has: `dims` as the model says them, -1 where free; `typed` what was typed for free ones, `null` where
 * nothing was; `nested` the shape of typed lists.
 */
export function fitShape(dims, typed, elements, nested = null) {
  const wanted = dims.map((dim, axis) => (dim < 0 ? typed[axis] ?? null : dim));
  if (nested && nested.length === dims.length - 1) nested = [1, ...nested];
  const shape = nested && nested.length === dims.length ? wanted.map((dim, axis) => dim ?? nested[axis]) : filled(wanted, elements);
  if (count(shape) !== elements) throw new Error(`shape ${shown(wanted)} needs ${needed(wanted)}, got ${elements}`);
  if (nested && nested.length === dims.length && nested.some((dim, axis) => dim !== shape[axis]))
    throw new Error(`the lists have shape ${shown(nested)}, but ${shown(wanted)} is needed`);
  return shape;
}

function needed(wanted) {
  const known = count(wanted.filter((dim) => dim !== null));
  const isOpen = wanted.includes(null);
  return isOpen ? `a multiple of ${known} elements` : `${known} element${known === 1 ? "" : "s"}`;
}

/** The last free dimension takes what there is, the others are 1. */
function filled(wanted, elements) {
  const last = wanted.lastIndexOf(null);
  const known = count(wanted.filter((dim) => dim !== null));
  const rest = known > 0 ? Math.floor(elements / known) : 0;
  return wanted.map((dim, axis) => dim ?? (axis === last ? rest : 1));
}

/** The shape where no data says one: free dimensions that were left empty are 1. */
export function plainShape(dims, typed) {
  return dims.map((dim, axis) => (dim < 0 ? typed[axis] ?? 1 : dim));
}

/** A row of numbers made up for a type; `from` and `to` bound random ones, `from` and `step` make a range. */
export function madeUp(kind, type, elements, { from, to, step }) {
  const pick = {
    zeros: () => 0,
    ones: () => 1,
    range: (at) => from + step * at,
    random: () => randomNumber(type, from, to),
  }[kind];
  return Array.from({ length: elements }, (_, at) => pick(at));
}

function randomNumber(type, from, to) {
  if (type.isBool) return Math.random() < 0.5 ? 0 : 1;
  if (type.isInteger) return Math.floor(from + Math.random() * (to - from + 1));
  return from + Math.random() * (to - from);
}
