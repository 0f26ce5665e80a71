//! Numbers in the usual form, `-12.345`, read eight characters at a time.
//!
//! Other forms, and a number at the very end of the text, are left to [`JsonCursor::number`], which also reports every
//! mistake.
//!
//! [`JsonCursor::number`]: super::json::JsonCursor::number

use super::number::{
    POWERS, as_digits, bytes_before, eight_digits, leading_digits, no_digits, quotient,
    rough_quotient,
};

/// The number of characters that are read: a sign, a number, and the character after it.
pub(super) const WINDOW: usize = 32;

/// A number without an exponent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainNumber {
    is_negative: bool,
    /// All digits, as one integer.
    digits: u64,
    /// The number of digits after the point; 0 without a point.
    decimals: usize,
    /// The length in characters.
    pub length: usize,
}

impl PlainNumber {
    /// Reads the number at the beginning of `text`, if it has no point.
    #[inline(always)]
    pub fn integer(text: &[u8; WINDOW]) -> Option<Self> {
        let is_negative = text.starts_with(b"-");
        let unsigned = text.get(usize::from(is_negative)..)?;
        Self { is_negative, ..Self::whole_part(unsigned)? }.ended(unsigned)
    }

    /// Reads the number at the beginning of `text`, with or without a point, if fewer than eight digits precede it.
    #[inline(always)]
    pub fn real(text: &[u8; WINDOW]) -> Option<Self> {
        let is_negative = text.starts_with(b"-");
        let unsigned = text.get(usize::from(is_negative)..)?;
        Self { is_negative, ..Self::short(unsigned)? }.ended(unsigned)
    }

    /// Reads the same without a sign.
    #[inline(always)]
    fn short(unsigned: &[u8]) -> Option<Self> {
        let word = as_digits(unsigned.first_chunk()?);
        let others = no_digits(word);
        let whole = bytes_before(others);
        if !is_whole_part(unsigned, whole) {
            return None;
        }
        if unsigned.get(whole) != Some(&b'.') {
            let digits = eight_digits(word.checked_shl(64 - 8 * whole as u32)?);
            return (whole < 8).then_some(Self { digits, length: whole, ..Self::default() });
        }
        // Moves the digits after the point over it.
        let end = bytes_before(others & others.wrapping_sub(1));
        let before = (1u64.checked_shl(8 * whole as u32)?) - 1;
        let digits = (word & before) | ((word >> 8) & !before);
        let digits = eight_digits(digits.checked_shl(64 - 8 * (end as u32 - 1))?);
        let mut number = Self { digits, length: end, ..Self::default() };
        if end == 8 && unsigned.get(8).is_some_and(u8::is_ascii_digit) {
            number = number.with_digits(unsigned)?;
        }
        number.decimals = number.length - whole - 1;
        (number.decimals > 0).then_some(number)
    }

    /// Reads the digits before a point.
    #[inline(always)]
    fn whole_part(unsigned: &[u8]) -> Option<Self> {
        let number = Self::default().with_digits(unsigned)?;
        is_whole_part(unsigned, number.length).then_some(number)
    }

    /// Adds the following digits, if they fit.
    #[inline(always)]
    fn with_digits(mut self, unsigned: &[u8]) -> Option<Self> {
        loop {
            let (more, count) = leading_digits(unsigned.get(self.length..)?.first_chunk()?);
            self.digits = self.digits.checked_mul(*POWERS.get(count)?)?.checked_add(more)?;
            self.length += count;
            if count < 8 {
                return Some(self);
            }
        }
    }

    /// Adds the sign, unless a further part of the number follows.
    #[inline(always)]
    fn ended(mut self, unsigned: &[u8]) -> Option<Self> {
        let goes_on = matches!(unsigned.get(self.length)?, b'.' | b'e' | b'E');
        self.length += usize::from(self.is_negative);
        (!goes_on).then_some(self)
    }

    /// Returns the value, if it has no point.
    #[inline]
    pub fn as_u64(self) -> Option<u64> {
        (self.decimals == 0 && (!self.is_negative || self.digits == 0)).then_some(self.digits)
    }

    /// Like [`Self::as_u64`], for a signed value.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        match self.is_negative {
            _ if self.decimals > 0 => None,
            false => i64::try_from(self.digits).ok(),
            true => 0i64.checked_sub_unsigned(self.digits),
        }
    }

    /// Returns the nearest double. An integer has no negative zero.
    #[inline(always)]
    pub fn as_f64(self) -> Option<f64> {
        Some(self.signed(quotient(self.digits, self.decimals)?))
    }

    /// Returns [`as_f64`](Self::as_f64) with less precision.
    ///
    /// As in Triton, the value is first rounded to a double, not directly to the nearest FP32.
    #[inline(always)]
    pub fn as_f32(self) -> Option<f32> {
        Some(self.signed(rough_quotient(self.digits, self.decimals)?) as f32)
    }

    /// Applies the sign without a branch: a tensor has as many signs of one kind as of the other.
    #[inline(always)]
    fn signed(self, size: f64) -> f64 {
        let is_negative = self.is_negative & ((self.decimals > 0) | (self.digits > 0));
        f64::from_bits(size.to_bits() | u64::from(is_negative) << 63)
    }
}

/// Returns `true` if `digits` digits may precede a point: at least one, and a leading zero only alone.
#[inline(always)]
fn is_whole_part(unsigned: &[u8], digits: usize) -> bool {
    digits == 1 || (digits > 1 && !unsigned.starts_with(b"0"))
}
