// From values to pixels, with ticks at round values.

/** Exact powers, which a negative exponent would not give. */
const power = (exponent) => (exponent < 0 ? 1 / 10 ** -exponent : 10 ** exponent);
const exponentOf = (value) => Math.floor(Math.log10(value));

/** 1, 2 and 5 in each of some decades, and in the one behind them. */
function rounds(first, decades) {
  return Array.from({ length: decades + 1 }, (_, at) => [1, 2, 5].map((times) => times * power(first + at))).flat();
}

/** The first of 1, 2, 5, 10, 20 ... that is not below. */
export function roundUp(value) {
  return rounds(exponentOf(value), 1).find((round) => round >= value * 0.9999);
}

/** The round step of which about `count` make up the range. */
function roundStep(range, count) {
  const wanted = Math.max(range / count, 1e-300);
  return rounds(exponentOf(wanted), 1).find((round) => round >= wanted * 0.75) ?? wanted;
}

const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0);
const smallestPositive = (values) => {
  const least = values.reduce((least, value) => (value > 0 ? Math.min(least, value) : least), Infinity);
  return Number.isFinite(least) ? least : 0;
};

/** A range of values laid over a range of pixels. Every position it gives is finite and inside. */
export class Scale {
  constructor(low, high, isLog = false) {
    Object.assign(this, { low, high, isLog, from: 0, to: 1 });
  }

  /** Zero to something round above the largest value. */
  static fromZero(values) {
    const high = largest(values);
    return Scale.#widened(0, high > 0 ? high * 1.05 : 1);
  }

  /** Linear, or logarithmic where the largest value is more than `ratio` times the smallest. Zero is left out where all values are far from it. */
  static fitting(values, ratio) {
    const [low, high] = [smallestPositive(values), largest(values)];
    if (low > 0 && high / low > ratio) {
      const [under, over] = [low * 0.93, high * 1.07];
      const from = rounds(exponentOf(under), 1).findLast((round) => round <= under) ?? under;
      return new Scale(from, rounds(exponentOf(over), 2).find((round) => round >= over) ?? over, true);
    }
    if (values.some((value) => value <= 0) || low < 0.6 * high || low === high) return Scale.fromZero(values);
    const space = (high - low) * 0.1;
    return Scale.#widened(low - space, high + space);
  }

  /**
   * Of loads, which are points and not round: just around them, logarithmic where each is a multiple of the one before rather than a
   * step from it. Ascending.
   */
  static ofLoads(loads) {
    const high = largest(loads);
    if (loads.every((load) => load === high)) return new Scale(0, Math.max(high * 2, 1));
    const grows = loads.at(-1) - loads.at(-2) > (loads[1] - loads[0]) * 2.5;
    if (grows && loads.every((load) => load > 0)) {
      const low = smallestPositive(loads);
      const space = (high / low) ** 0.06;
      return new Scale(low / space, high * space, true);
    }
    const low = Math.min(...loads);
    const space = (high - low) * 0.06;
    return new Scale(low - space, high + space);
  }

  static #widened(low, high) {
    const step = roundStep(high - low, 6);
    return new Scale(Math.floor(low / step) * step, Math.ceil(high / step) * step);
  }

  over(from, to) {
    return Object.assign(new Scale(this.low, this.high, this.isLog), { from, to });
  }

  position(value) {
    const inside = Number.isFinite(value) ? Math.min(Math.max(value, this.low), this.high) : this.low;
    const share = this.isLog ? Math.log(inside / this.low) / Math.log(this.high / this.low) : (inside - this.low) / (this.high - this.low);
    return this.from + share * (this.to - this.from);
  }

  /** Round values inside, about as many as requested. */
  ticks(about) {
    return this.isLog ? this.#logTicks(about) : this.#linearTicks(about);
  }

  #linearTicks(about) {
    const step = roundStep(this.high - this.low, Math.max(about, 1));
    const first = Math.ceil(this.low / step - 1e-6);
    const count = Math.floor(this.high / step + 1e-6) - first;
    // Multiples of the step, not sums: sums would drift away from round values.
    return Array.from({ length: count + 1 }, (_, at) => (first + at) * step);
  }

  #logTicks(about) {
    const first = exponentOf(this.low);
    const decades = Math.max(1, Math.ceil(Math.log10(this.high)) - first);
    const isInside = (value) => value >= this.low * 0.999 && value <= this.high * 1.001;
    const all = rounds(first, decades).filter(isInside);
    if (all.length <= about + Math.floor(about / 2)) return all;
    const every = Math.floor(decades / Math.max(about, 1)) + 1;
    return Array.from({ length: decades + 1 }, (_, at) => at).filter((at) => at % every === 0).map((at) => power(first + at)).filter(isInside);
  }
}
