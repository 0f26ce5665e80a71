//! Writes numbers as JSON text, many at a time.
//!
//! A text is written by copies of fixed lengths, the last of which may reach beyond its end. A copy whose length is
//! known only at run time takes several times as long as computing the digits.

use super::float_digits::shortest;

/// The buffer of a number: room for the longest, and for the bytes that the last copy writes beyond it.
pub(super) type NumberBuffer = [u8; 32];

/// The same digit eight times.
const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
const EIGHT_DIGITS: u64 = 100_000_000;

/// Writes `bytes` at `at`.
#[inline]
fn put<const N: usize>(room: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = room.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = bytes;
    }
}

/// Writes a short existing text.
#[inline]
fn put_text(room: &mut NumberBuffer, text: &[u8]) -> usize {
    let length = text.len();
    if let (Some(head), Some(tail)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        put(room, 0, *head);
        put(room, length - 16, *tail);
    } else if let (Some(head), Some(tail)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        put(room, 0, *head);
        put(room, length - 8, *tail);
    } else if let Some(place) = room.get_mut(..length) {
        place.copy_from_slice(text);
    }
    length
}

/// Writes `true` or `false`. Returns the length of the text, as all of these functions do.
#[inline]
pub(super) fn write_bool(room: &mut NumberBuffer, value: bool) -> usize {
    put(room, 0, if value { *b"true " } else { *b"false" });
    5 - usize::from(value)
}

#[inline]
pub(super) fn write_unsigned(room: &mut NumberBuffer, value: u64) -> usize {
    digits_at(room, 0, value)
}

#[inline]
pub(super) fn write_signed(room: &mut NumberBuffer, value: i64) -> usize {
    put(room, 0, *b"-");
    digits_at(room, usize::from(value < 0), value.unsigned_abs())
}

/// Writes a number at `at`, and returns its end.
#[inline]
fn digits_at(room: &mut NumberBuffer, at: usize, value: u64) -> usize {
    let Some(high) = value.checked_div(EIGHT_DIGITS).filter(|&high| high > 0) else {
        return first_digits_at(room, at, value);
    };
    let at = if high < EIGHT_DIGITS {
        first_digits_at(room, at, high)
    } else {
        let at = first_digits_at(room, at, high / EIGHT_DIGITS);
        put(room, at, (digits_of(high % EIGHT_DIGITS) | ZEROS).to_le_bytes());
        at + 8
    };
    put(room, at, (digits_of(value % EIGHT_DIGITS) | ZEROS).to_le_bytes());
    at + 8
}

/// Writes a number of at most eight digits without leading zeros.
#[inline]
fn first_digits_at(room: &mut NumberBuffer, at: usize, value: u64) -> usize {
    let digits = digits_of(value);
    // For zero the last digit is written.
    let skipped = (digits | 1 << 56).trailing_zeros() / 8;
    put(room, at, ((digits | ZEROS) >> (8 * skipped)).to_le_bytes());
    at + 8 - skipped as usize
}

/// Returns the digits of a number below 100,000,000, the first of eight in the lowest byte: halves of four digits, pairs, digits.
#[inline]
fn digits_of(value: u64) -> u64 {
    let high = value / 10_000;
    let fours = high | ((value - high * 10_000) << 32);
    // 5243 / 2^19 is 1 / 100 for numbers of four digits, and 103 / 2^10 is 1 / 10 for numbers of two.
    let high = ((fours * 5243) >> 19) & 0x0000_007F_0000_007F;
    let pairs = high | ((fours - high * 100) << 16);
    let high = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    high | ((pairs - high * 10) << 8)
}

/// Writes the shortest decimal number that reads as `value`.
#[inline]
pub(super) fn write_f32(room: &mut NumberBuffer, value: f32) -> usize {
    let bits = value.to_bits();
    let magnitude = bits & (u32::MAX >> 1);
    match shortest(magnitude) {
        Some((digits, unit)) => {
            put(room, 0, *b"-");
            fixed_at(room, (bits >> 31) as usize, digits, unit)
        }
        None => write_float(room, value),
    }
}

/// Writes `number` × 10^`unit` at `at`, with a point and at least one digit after it. `number` has seven to nine digits.
#[inline]
fn fixed_at(room: &mut NumberBuffer, at: usize, number: u32, unit: i32) -> usize {
    let (number, exponent) = match number {
        0..10_000_000 => (number * 100, unit + 6),
        10_000_000..100_000_000 => (number * 10, unit + 7),
        _ => (number, unit + 8),
    };
    // The first digit has the place value 10^exponent.
    let first = number / EIGHT_DIGITS as u32;
    let others = digits_of(u64::from(number % EIGHT_DIGITS as u32));
    let used = 9 - others.leading_zeros() as usize / 8;
    let others = others | ZEROS;
    let (above, below) = (exponent.max(0) as usize, (-exponent).max(0) as usize);
    // A number below 1 begins with a zero, a point and perhaps more zeros.
    put(room, at, *b"0.000000");
    let start = if below > 0 { at + below + 1 } else { at };
    put(room, start, [b'0' + first as u8]);
    put(room, start + 1, others.to_le_bytes());
    // Otherwise the digits after the point are written once more. Bytes shifted in must become the digit zero.
    let behind = (others ^ ZEROS).checked_shr(8 * above as u32).unwrap_or_default() | ZEROS;
    put(room, at + above + 1, *b".");
    put(room, at + above + below + 2, behind.to_le_bytes());
    at + (above + 3).max(used + below + 1)
}

/// Like [`write_f32`], for any type and size. Not-a-number and infinities get Triton's words.
#[inline]
pub(super) fn write_float(
    room: &mut NumberBuffer,
    value: impl zmij::Float + Into<f64> + Copy,
) -> usize {
    let wide: f64 = value.into();
    if wide.is_finite() {
        put_text(room, zmij::Buffer::new().format_finite(value).as_bytes())
    } else if wide.is_nan() {
        put_text(room, b"NaN")
    } else {
        put_text(room, if wide > 0.0 { b"Infinity" } else { b"-Infinity" })
    }
}
