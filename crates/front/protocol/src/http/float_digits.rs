//! The shortest decimal form of an FP32 number of a usual size, for tensors with many numbers.
//!
//! It returns the digits that zmij writes, by the same method, without branches that a processor must predict. The
//! numbers in a tensor all differ, so mispredictions are most of the cost of a text.

use std::hint::select_unpredictable;

/// The distance between two neighbouring numbers of an exponent, in decimal.
#[derive(Clone, Copy)]
struct Scale {
    /// The largest power of ten that is not above it.
    unit: i32,
    /// 10 to the power of −`unit` − 1, as its first 64 bits.
    factor: u64,
    /// The shift of a significand, in bits. The upper half of its product with `factor` is then the number in units of
    /// 10^(`unit` + 1), with [`FRACTION`] bits after the point.
    shift: u32,
}

const FRACTION: u32 = 34;

/// The bits of an FP32 number after the first one.
const SIGNIFICAND: u32 = 23;

/// The biased exponents of the numbers from 2^-16 to 2^26. Those numbers are written without an exponent, with all
/// their digits in nine characters and a few zeros before.
const FIRST: u32 = 127 - 16;
const COUNT: usize = 16 + 26;

static SCALES: [Scale; COUNT] = scales();

const fn scales() -> [Scale; COUNT] {
    let mut scales = [Scale { unit: 0, factor: 0, shift: 0 }; COUNT];
    let mut index = 0;
    while index < COUNT {
        scales[index] = scale(FIRST as i32 + index as i32 - 127 - SIGNIFICAND as i32);
        index += 1;
    }
    scales
}

/// Returns the scale of numbers that are multiples of 2^`exponent`.
const fn scale(exponent: i32) -> Scale {
    // The logarithms of 2 to the base of 10 and of 10 to the base of 2 in 20 and 16 bits.
    let unit = (exponent * 315_653) >> 20;
    let power = -unit - 1;
    let shift = exponent + ((power * 217_707) >> 16) + 1 + FRACTION as i32;
    Scale { unit, factor: first_bits(power), shift: shift as u32 }
}

/// Returns the first 64 bits of 10^`power`.
const fn first_bits(power: i32) -> u64 {
    let size = 10u64.pow(power.unsigned_abs());
    if power >= 0 {
        return size << size.leading_zeros();
    }
    ((1 << (127 - size.leading_zeros())) / size as u128) as u64
}

/// Returns the shortest decimal number that reads as the positive number of these bits, and of several the nearest. It
/// is an integer of up to nine digits and the power of ten that scales it. Returns `None` for other sizes, and for
/// powers of two, whose lower neighbour is nearer than the upper one.
#[inline]
pub(super) fn shortest(bits: u32) -> Option<(u32, i32)> {
    let fraction = bits & ((1 << SIGNIFICAND) - 1);
    let exponent = (bits >> SIGNIFICAND).wrapping_sub(FIRST);
    let scale = SCALES.get(exponent as usize).filter(|_| fraction != 0)?;
    let significand = u64::from(fraction | 1 << SIGNIFICAND);
    let product = u128::from(scale.factor + 1) * u128::from(significand << scale.shift);
    let number = (product >> 64) as u64;
    let (whole, rest) = (number >> FRACTION, number & ((1 << FRACTION) - 1));
    // Anything within half of the distance reads as this number; at the very end only if it is even.
    let half = (scale.factor >> (65 - scale.shift)) + (1 - (significand & 1));
    let (is_below, is_above) = (half > rest, (rest + half) >> FRACTION != 0);
    // The distance is less than 1, so at most one integer is within. Otherwise it needs one more digit, the nearest
    // one. Of two that are equally near, which happens at a quarter, it is the even one.
    let nearest = (rest * 10 + (1 << (FRACTION - 1))) >> FRACTION;
    let nearest = if rest == 1 << (FRACTION - 2) { 2 } else { nearest };
    let digit = select_unpredictable(is_below | is_above, 0, nearest);
    Some((((whole + u64::from(is_above)) * 10 + digit) as u32, scale.unit))
}
