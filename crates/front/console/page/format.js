// How figures, sizes and times are written.

const NOTHING = "–";
const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

/** A figure with as many digits as can be read at a glance. */
export function figure(value, digits) {
  if (isMissing(value)) return NOTHING;
  const size = Math.abs(value);
  const kept = digits ?? (size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
  return value.toLocaleString("en", { maximumFractionDigits: kept });
}

/** Milliseconds, with the unit that fits. */
export function duration(ms) {
  if (isMissing(ms)) return NOTHING;
  if (ms >= 1000) return `${figure(ms / 1000)} s`;
  return ms >= 1 || ms === 0 ? `${figure(ms)} ms` : `${figure(ms * 1000, 0)} µs`;
}

/** Bytes, in thousands. */
export function size(bytes) {
  if (isMissing(bytes)) return NOTHING;
  const units = ["B", "kB", "MB", "GB", "TB"];
  const at = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
  return `${figure(bytes / 1000 ** at)} ${units[at]}`;
}

/** How long something has been so. */
export function span(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"]];
  const at = parts.findIndex(([length]) => seconds >= length);
  if (at < 0) return `${Math.floor(seconds)} s`;
  const [length, unit] = parts[at];
  const [less, lessUnit] = parts[at + 1] ?? [1, "s"];
  const rest = Math.floor((seconds % length) / less);
  return `${Math.floor(seconds / length)} ${unit}${rest ? ` ${rest} ${lessUnit}` : ""}`;
}

/** The time of day of an instant. */
export function clock(ms) {
  return new Date(ms).toLocaleTimeString("en-GB");
}

/** Date and time of an instant, as the clock of who looks has it. */
export function moment(ms) {
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}

/** "1 model", "2 models". */
export function counted(count, name) {
  return `${figure(count, 0)} ${name}${count === 1 ? "" : "s"}`;
}

/** How loaded the server is: a share of what it can do at once, and what that means. */
export function loadText(load) {
  return [percent(load), load > 1 ? "of the capacity of all instances; requests wait" : "of the capacity of all instances"];
}

/** A share of failed requests as a figure, its note and whether it is too large. */
export function failedText({ failed, all, share, isBad }) {
  const told = all ? `${figure(failed, 0)} of ${figure(all, 0)}` : "none ended";
  return [all ? percent(share) : NOTHING, `${told}, ${isBad ? "over" : "red over"} 5 %`, isBad];
}

export function percent(share) {
  return isMissing(share) ? NOTHING : `${figure(share * 100)} %`;
}
