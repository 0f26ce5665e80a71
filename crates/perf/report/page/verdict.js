// What two measurements show. A difference counts only where their confidence intervals do not overlap; everywhere else the page says
// that none was shown, and gives both intervals.

import { count } from "./numbers.js";

/** What the confidence intervals of two values say: `apart`, `overlapping` (the difference may be chance), or `missing`. */
export function evidenceOf(a, b) {
  if (!a || !b) return "missing";
  return a[0] <= b[1] && b[0] <= a[1] ? "overlapping" : "apart";
}

/** So many loads are named in a sentence; the table has all. */
const MOST_NAMED = 3;

/** The first few in words, the others as a number. */
export function listed(items, write) {
  const named = items.slice(0, MOST_NAMED).map(write).join("; ");
  const more = items.length - MOST_NAMED;
  if (more <= 0) return named;
  return `${named}; and at ${more === 1 ? "one more load" : `${count(more)} more loads`}`;
}

/** The geometric mean, because these are ratios. */
export const averageRatio = (ratios) => Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);

const pointOneWay = (findings) => findings.every(({ ratio }) => ratio > 1) || findings.every(({ ratio }) => ratio < 1);

/**
 * What is known of a measure over all loads that two runs share, or nothing without any. A measure has a name and says how a ratio and
 * an interval are written; a finding has a load, the ratio of the values, and both intervals.
 */
export function verdictOn({ name, ratio, interval }, findings) {
  const of = (wanted) => findings.filter(({ intervals: [a, b] }) => evidenceOf(a, b) === wanted);
  const [apart, overlapping] = [of("apart"), of("overlapping")];
  const pair = ({ intervals }) => intervals.map((ends) => (ends ? interval(ends) : "–")).join(" against ");
  const each = () => listed(apart, (one) => `${ratio(one.ratio)} at ${one.load}`);
  const overlap = () => `The 95 % confidence intervals overlap: ${listed(overlapping, (one) => `${pair(one)} at ${one.load}`)}`;
  if (!findings.length) return undefined;
  if (!apart.length && !overlapping.length) return `${name}: not judged, because a run has no 95 % confidence interval of this measure.`;
  if (!apart.length) return `${name}: no difference was shown. ${overlap()}.`;
  if (apart.length === findings.length && pointOneWay(apart)) {
    if (apart.length === 1) return `${name}: ${ratio(apart[0].ratio)} at ${apart[0].load}. The 95 % confidence intervals do not overlap: ${pair(apart[0])}.`;
    const average = ratio(averageRatio(apart.map((one) => one.ratio)));
    return `${name}: ${average} on average over ${apart.length} equal loads, at each of which the 95 % confidence intervals do not overlap.`;
  }
  if (!overlapping.length) return `${name}: ${each()}.`;
  return `${name}: ${each()}. Elsewhere no difference was shown. ${overlap()}.`;
}
