// Numbers, times and names as people read them.

const NOTHING = "–";
/** Above this nothing was measured, it was computed wrongly; below it all arithmetic here stays finite. */
const LARGEST = 1e18;

/** A value that can be drawn and written, or `undefined`. */
export function usable(value) {
  return typeof value === "number" && value >= 0 && value <= LARGEST ? value : undefined;
}

const grouped = (text) => text.replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
export const count = (value) => grouped(String(value));

/** Three significant digits or all before the point, thousands grouped: `0.0123`, `1.23`, `12,345`. */
export function number(value) {
  if (usable(value) === undefined) return NOTHING;
  if (value === 0) return "0";
  if (value < 1e-4 || value >= 1e12) return value.toExponential(2).replace("+", "");
  return grouped(value.toFixed(Math.min(7, Math.max(0, 2 - Math.floor(Math.log10(value))))));
}

/** A number without zeros at its end, for axes and loads: `0.5`, `12,000`. */
export function short(value) {
  const text = number(value);
  return text.includes("e") ? text : text.replace(/\.?0+$/, (zeros) => (text.includes(".") ? "" : zeros));
}

/** Tick labels of counts and rates: `500`, `2,500`, `1.5 M`. */
export function tick(value) {
  const [unit, name] = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1, ""]].find(([unit]) => value >= unit) ?? [1, ""];
  return `${short(value / unit)}${name}`;
}

/** A share that is given in percent. */
export const percent = (value) => (usable(value) === undefined ? NOTHING : `${short(Math.round(value * 10) / 10)} %`);
/** A ratio, in percent with one decimal. */
export const ratioPercent = (ratio) => `${(ratio * 100).toFixed(1)} %`;

/** A value with its sign, in percent: `+3.1 %`, `−18.0 %`. */
export function change(ratio) {
  const [sign, size] = [ratio < 1 ? "−" : "+", Math.abs((ratio - 1) * 100)];
  return `${sign}${size < 10 ? size.toFixed(1) : number(size)} %`;
}

/** `×1.24` */
export const times = (ratio) => `×${ratio < 0.1 ? number(ratio) : ratio.toFixed(2)}`;

const UNITS = [["s", 1e6], ["ms", 1e3], ["µs", 1], ["ns", 1e-3]].map(([name, us]) => ({ name, write: (value) => (usable(value) === undefined ? NOTHING : number(value / us)), us }));

/** The unit for a time given in microseconds: `{ name, write(us) }`. */
export const unitOf = (us) => (us === 0 ? UNITS[2] : (UNITS.find((unit) => us >= unit.us) ?? UNITS[3]));

/** One for a whole table, so that its columns can be compared: that of the median. */
export function unitOfTable(values) {
  const sorted = values.filter((value) => usable(value) > 0).sort((a, b) => a - b);
  return unitOf(sorted[Math.floor(sorted.length / 2)] ?? 0);
}

function withUnit(us, write) {
  if (!usable(us)) return us === 0 ? "0" : NOTHING;
  const unit = unitOf(us);
  return `${write(us / unit.us)}\u00a0${unit.name}`;
}

/** A time given in microseconds: `812 µs`, `1.20 ms`. */
export const duration = (us) => withUnit(us, number);
/** The same for axes: `1.2 ms`. */
export const tickDuration = (us) => withUnit(us, short);

/** `9.50 – 10.5` */
export const interval = ([low, high], write = number) => `${write(low)} – ${write(high)}`;

/** An interval of times, both ends in the same unit: `0.820 – 1.04 ms`. */
export function durations(ends) {
  const unit = unitOf(ends[1]);
  return `${interval(ends, unit.write)}\u00a0${unit.name}`;
}

export const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A time of day from Unix seconds: `2026-07-27 14:03 UTC`. */
export function date(unix) {
  if (!(usable(unix) > 0 && unix < 2e11)) return NOTHING;
  return `${new Date(Math.floor(unix) * 1000).toISOString().replace("T", " ").slice(0, -8)} UTC`;
}
