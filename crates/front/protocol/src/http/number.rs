//! Numbers of the JSON dialect: integers are exact, all others are the nearest double.

use super::{
    json::{JsonCursor, Number, Result},
    json_error::SyntaxFault,
};

/// Powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// The largest integer up to which all are exact as doubles.
const MAX_EXACT: u64 = 1 << 53;
/// The number of decimal digits that always fit a `u64`.
const MAX_DIGITS: usize = 19;

/// The factor by which a number grows when this many digits are appended.
pub(super) const POWERS: [u64; MAX_DIGITS + 1] = powers();

const fn powers() -> [u64; MAX_DIGITS + 1] {
    let mut powers = [1; MAX_DIGITS + 1];
    let mut count = 1;
    while count <= MAX_DIGITS {
        powers[count] = powers[count - 1] * 10;
        count += 1;
    }
    powers
}

/// The digits of a number, read as one integer.
#[derive(Default)]
struct NumberDigits {
    value: u64,
    count: usize,
}

impl NumberDigits {
    /// Appends a number of at most eight digits, `count` in all.
    fn append(&mut self, value: u64, count: usize) {
        let power = POWERS.get(count).copied().unwrap_or_default();
        self.value = self.value.wrapping_mul(power).wrapping_add(value);
    }

    fn is_exact(&self) -> bool {
        self.count <= MAX_DIGITS
    }
}

impl JsonCursor<'_> {
    pub(crate) fn number(&mut self) -> Result<Number> {
        let start = self.position();
        let is_negative = self.eat(b'-');
        let mut digits = NumberDigits::default();
        match self.peek() {
            Some(b'0') => {
                self.eat(b'0');
            }
            Some(b'1'..=b'9') => {
                self.digits(&mut digits);
            }
            Some(b'N' | b'I') => return self.non_finite(is_negative),
            _ => return Err(self.error(SyntaxFault::InvalidValue)),
        }
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E'))
            && let Some(integer) = self.integer(&digits, start, is_negative)
        {
            return Ok(integer);
        }
        let scale = self.fraction(&mut digits)? + self.exponent()?;
        let value = match real(&digits, scale) {
            Some(x) if is_negative => -x,
            Some(x) => x,
            None => self.nearest_double(start)?,
        };
        Ok(Number::Real(value))
    }

    /// Reads digits into `digits` and returns how many there were. Past MAX_DIGITS the value is not used, so it may wrap.
    #[inline]
    fn digits(&mut self, digits: &mut NumberDigits) -> usize {
        let rest = self.rest();
        let mut read = 0;
        while let Some(bytes) = rest.get(read..).and_then(|rest| rest.first_chunk()) {
            let (value, count) = leading_digits(bytes);
            digits.append(value, count);
            read += count;
            if count < bytes.len() {
                return self.have_read(read, digits);
            }
        }
        let last = rest.get(read..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit());
        for &byte in last {
            digits.append(u64::from(byte - b'0'), 1);
            read += 1;
        }
        self.have_read(read, digits)
    }

    fn have_read(&mut self, count: usize, digits: &mut NumberDigits) -> usize {
        digits.count += count;
        self.advance(count);
        count
    }

    /// Returns `None` if the digits do not fit 64 bits.
    fn integer(&self, digits: &NumberDigits, start: usize, is_negative: bool) -> Option<Number> {
        if digits.is_exact() {
            return integer(digits, is_negative);
        }
        let text = std::str::from_utf8(self.since(start)).ok()?;
        text.parse().ok().map(Number::Unsigned)
    }

    /// Returns the power of ten, negative, for the digits after the point.
    fn fraction(&mut self, digits: &mut NumberDigits) -> Result<i64> {
        if !self.eat(b'.') {
            return Ok(0);
        }
        match self.digits(digits) {
            0 => Err(self.error(SyntaxFault::MissingFraction)),
            count => Ok(i64::try_from(count).map_or(i64::MIN / 2, |n| -n)),
        }
    }

    fn exponent(&mut self) -> Result<i64> {
        if !(self.eat(b'e') || self.eat(b'E')) {
            return Ok(0);
        }
        let is_negative = self.eat(b'-');
        if !is_negative {
            self.eat(b'+');
        }
        let mut digits = NumberDigits::default();
        if self.digits(&mut digits) == 0 {
            return Err(self.error(SyntaxFault::MissingExponent));
        }
        // A value far outside the range of the fast path is enough: the slow path reads the text itself.
        let exponent = if digits.is_exact() {
            i64::try_from(digits.value).unwrap_or(i64::MAX)
        } else {
            i64::MAX
        };
        let exponent = exponent.min(i64::MAX / 4);
        Ok(if is_negative { -exponent } else { exponent })
    }

    fn nearest_double(&self, start: usize) -> Result<f64> {
        let value = std::str::from_utf8(self.since(start)).ok().and_then(|t| t.parse::<f64>().ok());
        value.filter(|x| x.is_finite()).ok_or_else(|| SyntaxFault::NumberTooBig.at(start))
    }

    /// Reads `NaN`, `Inf` or `Infinity`: not JSON, but part of Triton's dialect.
    fn non_finite(&mut self, is_negative: bool) -> Result<Number> {
        let value = if self.eat(b'N') {
            self.literal(b"aN")?;
            f64::NAN
        } else {
            self.literal(b"Inf")?;
            if self.peek() == Some(b'i') {
                self.literal(b"inity")?;
            }
            f64::INFINITY
        };
        Ok(Number::Real(if is_negative { -value } else { value }))
    }
}

fn integer(digits: &NumberDigits, is_negative: bool) -> Option<Number> {
    match (is_negative, digits.value) {
        (true, n) if n > 0 => 0i64.checked_sub_unsigned(n).map(Number::Negative),
        (_, n) => Some(Number::Unsigned(n)),
    }
}

/// Returns the double nearest to `digits` × 10^`scale`, if it can be found without the text.
fn real(digits: &NumberDigits, scale: i64) -> Option<f64> {
    if !digits.is_exact() {
        return None;
    }
    let power = usize::try_from(scale.unsigned_abs()).ok()?;
    match scale {
        ..=0 => quotient(digits.value, power),
        _ if digits.value <= MAX_EXACT => Some(digits.value as f64 * EXACT_POWERS.get(power)?),
        _ => None,
    }
}

/// Returns the double nearest to `value` / 10^`power`, for all usual values and powers.
#[inline]
pub(super) fn quotient(value: u64, power: usize) -> Option<f64> {
    if value <= MAX_EXACT
        && let Some(divisor) = EXACT_POWERS.get(power)
    {
        // Both are exact doubles, so their division rounds only once (Clinger's fast path).
        return Some(value as i64 as f64 / divisor);
    }
    long_quotient(value, power)
}

/// [`quotient`] of integers that are not exact doubles. It divides as integers to more bits than a double has. For the
/// remainder one set bit is enough, if it is not zero.
fn long_quotient(value: u64, power: usize) -> Option<f64> {
    let divisor = *POWERS.get(power)?;
    let (up, divisor_up) = (value.leading_zeros(), divisor.leading_zeros());
    let dividend = u128::from(value.checked_shl(up)?) << 63;
    let divisor = u128::from(divisor << divisor_up);
    let bits = dividend / divisor;
    let is_inexact = bits * divisor != dividend;
    let down = u64::from(63 + up - divisor_up);
    let bits = bits as u64 | u64::from(is_inexact);
    Some(bits as f64 * f64::from_bits((1023 - down) << 52))
}

/// Returns a double that rounds to the same FP32 number as [`quotient`].
#[inline]
pub(super) fn rough_quotient(value: u64, power: usize) -> Option<f64> {
    if let (Some(divisor), Ok(dividend)) = (EXACT_POWERS.get(power), i64::try_from(value)) {
        let rough = dividend as f64 / divisor;
        // After two roundings it is at most three steps from the nearest double. That matters only near the middle
        // between two FP32 numbers, which are 2^29 steps apart. No quotient is so small that they are nearer.
        let middle = 1u64 << 28;
        let from_middle = || (rough.to_bits() & ((1 << 29) - 1)).abs_diff(middle);
        if value <= MAX_EXACT || from_middle() > 4 {
            return Some(rough);
        }
    }
    quotient(value, power)
}

/// Returns the number formed by the leading ASCII digits, and their count. It handles all bytes at once: the digits
/// move to the end, after zeros.
#[inline]
pub(super) fn leading_digits(bytes: &[u8; 8]) -> (u64, usize) {
    let digits = as_digits(bytes);
    let count = bytes_before(no_digits(digits));
    let last = digits.checked_shl(64 - 8 * count as u32).unwrap_or_default();
    (eight_digits(last), count)
}

/// Returns the value of each digit, the first in the lowest byte. A character that is not a digit has a value above 9.
#[inline]
pub(super) fn as_digits(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes) ^ u64::from_ne_bytes([b'0'; 8])
}

/// Returns the high bit of the first byte that is not a digit, and perhaps of some after it. The addition sets that bit
/// for any byte above 9, unless it has it. An overflow only reaches bytes after the first non-digit.
#[inline]
pub(super) fn no_digits(digits: u64) -> u64 {
    const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    (digits.wrapping_add(u64::from_ne_bytes([0x80 - 10; 8])) | digits) & HIGH_BITS
}

/// Returns the number of bytes before the first one with a set bit.
#[inline]
pub(super) fn bytes_before(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}

/// Returns the number formed by eight digits, the first in the lowest byte. It joins neighbours to pairs, pairs to
/// fours, and fours to one number.
#[inline]
pub(super) fn eight_digits(digits: u64) -> u64 {
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF
}

#[cfg(test)]
mod tests {
    use super::leading_digits;

    #[test]
    fn digits_end_at_the_first_other_byte() {
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for count in 0..8 {
                for fill in [b'0', b'9', byte, 0xff] {
                    let mut text = *b"90817263";
                    text[count] = byte;
                    text[count + 1..].fill(fill);
                    let expected = "90817263"[..count].parse().unwrap_or(0);
                    assert_eq!(leading_digits(&text), (expected, count), "{text:?}");
                }
            }
        }
        assert_eq!(leading_digits(b"00000000"), (0, 8));
        assert_eq!(leading_digits(b"99999999"), (99_999_999, 8));
    }
}
