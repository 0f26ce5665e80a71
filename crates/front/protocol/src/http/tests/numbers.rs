//! Numbers in bulk: what is read eight characters at a time is what is read one by one, and what is written without zmij is
//! what zmij writes.

use galatea_types::DataType;
use proptest::prelude::*;

use super::super::{
    decode_error::{DecodeError, Result},
    element::{Element, ElementError},
    float_digits::shortest,
    json::{JsonCursor, Kind, check_depth},
    json_error::JsonError,
    number::{quotient, rough_quotient},
    number_text::{NumberBuffer, write_f32, write_float, write_signed, write_unsigned},
    plain_number::WINDOW,
    tensor_data::{self, Elements, ExpectedData},
};

/// All elements in the array the cursor stands on, each by itself.
fn one_by_one<T: Element<N>, const N: usize>(
    cursor: &mut JsonCursor<'_>,
    depth: usize,
    missing: &mut usize,
    data: &mut Vec<u8>,
    data_type: DataType,
) -> Result<()> {
    check_depth(depth)?;
    cursor.open();
    let mut is_first = true;
    while cursor.next_element(&mut is_first)? {
        if cursor.kind() == Kind::Array {
            one_by_one::<T, N>(cursor, depth + 1, missing, data, data_type)?;
            continue;
        }
        *missing = missing.checked_sub(1).ok_or(DecodeError::CountMismatch)?;
        let element = T::read(cursor).map_err(|error| match error {
            ElementError::Json(error) => error.into(),
            ElementError::OutOfRange => DecodeError::ValueOutOfRange { data_type },
        })?;
        data.extend(element.bytes());
    }
    Ok(())
}

/// The data, or the error, and where the cursor is left.
type Outcome = (Result<Vec<u8>, String>, usize);

fn slow<T: Element<N>, const N: usize>(text: &[u8], count: usize, data_type: DataType) -> Outcome {
    let mut cursor = JsonCursor::new(text);
    let (mut data, mut missing) = (Vec::new(), count);
    let array = cursor.expect_array().map_err(DecodeError::from);
    let read =
        array.and_then(|()| one_by_one::<T, N>(&mut cursor, 1, &mut missing, &mut data, data_type));
    let read = read.and_then(|()| match missing {
        0 => Ok(data),
        _ => Err(DecodeError::CountMismatch),
    });
    (read.map_err(|error| error.in_field("data").to_string()), cursor.position())
}

fn fast(text: &[u8], count: usize, data_type: DataType, elements: Elements) -> Outcome {
    let mut cursor = JsonCursor::new(text);
    let expected = ExpectedData { data_type, count, input_name: "I", elements };
    let read = tensor_data::decode(&mut cursor, expected);
    let read = read.map(|data| data.host().expect("host memory").to_vec());
    (read.map_err(|error| error.to_string()), cursor.position())
}

/// An array as elements of every type. Returns how many types take it.
#[track_caller]
fn check_array(text: &[u8], count: usize) -> usize {
    let check = |data_type, expected: Outcome| {
        let shown = String::from_utf8_lossy(text);
        let found = fast(text, count, data_type, Elements::Kept);
        assert_eq!(found, expected, "{data_type:?}: {shown}");
        let checked = fast(text, count, data_type, Elements::Checked);
        let expected = (expected.0.map(|_| Vec::new()), expected.1);
        assert_eq!(checked, expected, "{data_type:?} that are not kept: {shown}");
        usize::from(found.0.is_ok())
    };
    macro_rules! all {
        ($($data_type:ident: $type:ty,)*) => {
            [$(check(DataType::$data_type, slow::<$type, _>(text, count, DataType::$data_type))),*]
        };
    }
    let taken = all![
        Bool: bool, Int8: i8, Int16: i16, Int32: i32, Int64: i64, Uint8: u8, Uint16: u16, Uint32: u32,
        Uint64: u64, Fp32: f32, Fp64: f64,
    ];
    taken.iter().sum()
}

/// Behind it there is room for all that is looked at.
fn padded(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[b' '; WINDOW]].concat()
}

const NUMBERS: [&str; 62] = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1",
    "-1",
    "9",
    "10",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "32767",
    "-32769",
    "65535",
    "65536",
    "1234567",
    "12345678",
    "-12345678",
    "123456789",
    "2147483647",
    "-2147483648",
    "4294967296",
    "999999999999999",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234",
    "0.5",
    "0.25",
    "0.123456",
    "-0.1234567",
    "1.23456789",
    "12.3456",
    "1234567.5",
    "12345678.5",
    "0.1234567890123456",
    "0.10000000149011612",
    "0.037454012036323547",
    "0.00037454012036323547",
    "1234.56789012345678",
    "9007199254740993.0",
    "1844674407370955161.5",
    "1844674407370955161.6",
    "0.00000000000000000001",
    "3.4028235677973366e38",
    "1e5",
    "1E5",
    "-1.5e-7",
    "1e400",
    "1e-400",
    "00",
    "01.5",
    "1.",
    ".5",
    "-",
];

#[test]
fn bulk_and_single_parsing_of_numbers_agree() {
    let mut taken = 0;
    for number in NUMBERS {
        for separator in [",", ", ", " ,\n\t", "],["] {
            for count in [1, 2, 65] {
                let elements = vec![number; count].join(separator);
                let (open, close) = if separator == "],[" { ("[[", "]]") } else { ("[", "]") };
                let text = padded(&format!("{open}{elements}{close}"));
                taken += check_array(&text, count);
                check_array(&text, count - 1);
                check_array(&text, count + 1);
            }
        }
    }
    assert!(taken > 2_500, "{taken} were taken");
}

#[test]
fn a_wrong_byte_is_reported_at_its_offset() {
    let texts = [
        "[0, -12.5,0.125 ,\n1234567.25, 0.1234567890123456, 3]",
        "[12, -3,0 ,\t77, 100, 3]",
        "[true, false,true , false]",
        "[[1,2],[3.5,4],[-5,6]]",
    ];
    for text in texts {
        for end in 0..=text.len() {
            check_array(&padded(&text[..end]), 6);
            check_array(&text.as_bytes()[..end], 6);
        }
        for at in 0..text.len() {
            for &byte in b"0189/:.-+eE,[]{}\"\\tfnNIa \n\0\x7f\x80\xaf\xf9\xfa\xff" {
                let mut bytes = padded(text);
                bytes[at] = byte;
                check_array(&bytes, 6);
            }
        }
    }
}

#[test]
fn common_elements_are_parsed_in_bulk() {
    fn is_plain<T: Element<N>, const N: usize>(texts: &[&str]) {
        for text in texts {
            let padded = padded(&format!("{text},"));
            let plain = padded.first_chunk().and_then(T::plain);
            assert_eq!(plain.expect(text).1, text.len(), "{text}");
        }
    }
    is_plain::<bool, _>(&["true", "false"]);
    is_plain::<i8, _>(&["0", "-0", "-128", "127"]);
    is_plain::<u64, _>(&["0", "12345678", "9876543210", "18446744073709551615"]);
    is_plain::<i64, _>(&["-9223372036854775808"]);
    let reals = ["0", "-1", "0.0", "-0.5", "1.25", "-1234567.0", "0.123456", "0.10000000149011612"];
    is_plain::<f32, _>(&reals);
    is_plain::<f64, _>(&reals);
    is_plain::<f64, _>(&["0.1234567890123456789"]);
}

/// Numbers as they may be written, and what looks like one.
fn number() -> impl Strategy<Value = String> {
    let plain = "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,22})?";
    let with_exponent = "-?(0|[1-9][0-9]{0,4})(\\.[0-9]{1,8})?[eE][-+]?[0-9]{1,3}";
    let alike = "[-+.eE0-9NIaf,\\[\\] ]{1,12}";
    prop_oneof![8 => plain, 2 => with_exponent, 1 => alike]
}

/// Integers whose quotients by powers of ten are at the middle between two doubles, or beside it.
fn middles() -> impl Strategy<Value = (u64, usize)> {
    ((1u64 << 53)..(1 << 54), 0usize..4, 0u64..3).prop_map(|(double, power, beside)| {
        ((double | 1) * 5u64.pow(power as u32) + beside - 1, power)
    })
}

/// The same for FP32 numbers.
fn rough_middles() -> impl Strategy<Value = (u64, usize)> {
    ((1u64 << 24)..(1 << 25), 0usize..17, 0u64..3).prop_map(|(float, power, beside)| {
        ((float | 1) * 5u64.pow(power as u32) + beside - 1, power)
    })
}

fn parsed(value: u64, power: usize) -> f64 {
    format!("{value}e-{power}").parse().expect("a number")
}

#[track_caller]
fn check_quotient(value: u64, power: usize) {
    let expected = parsed(value, power);
    if let Some(found) = quotient(value, power) {
        assert_eq!(found.to_bits(), expected.to_bits(), "{value}e-{power}");
    }
    if let Some(found) = rough_quotient(value, power) {
        assert_eq!((found as f32).to_bits(), (expected as f32).to_bits(), "{value}e-{power}");
    }
    assert!(power > 19 || value == 0 || quotient(value, power).is_some(), "{value}e-{power}");
}

#[test]
fn quotients_at_the_limits_are_exact() {
    for power in 0..30 {
        for value in [0, 1, 9, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, i64::MAX as u64, u64::MAX] {
            check_quotient(value, power);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn bulk_and_single_parsing_agree_on_any_numbers(numbers in prop::collection::vec(number(), 1..6)) {
        check_array(&padded(&format!("[{}]", numbers.join(", "))), numbers.len());
    }

    #[test]
    fn reals_are_parsed_like_the_standard_library(text in "-?(0|[1-9][0-9]{0,20})\\.[0-9]{1,30}([eE]-?[0-9]{1,3})?") {
        let expected: f64 = text.parse().expect("a number");
        let padded = padded(&format!("[{text},{text}]"));
        let (doubles, _) = fast(&padded, 2, DataType::Fp64, Elements::Kept);
        let (floats, _) = fast(&padded, 2, DataType::Fp32, Elements::Kept);
        if expected.is_finite() {
            prop_assert_eq!(doubles.expect("taken"), expected.to_le_bytes().repeat(2));
            prop_assert_eq!(floats.expect("taken"), (expected as f32).to_le_bytes().repeat(2));
        } else {
            prop_assert!(doubles.is_err() && floats.is_err());
        }
    }

    #[test]
    fn any_quotient_is_the_nearest_double(value in any::<u64>(), shift in 0u32..64, power in 0usize..24) {
        check_quotient(value >> shift, power);
    }

    #[test]
    fn quotients_between_two_doubles_are_rounded_once((value, power) in middles()) {
        check_quotient(value, power);
    }

    #[test]
    fn quotients_between_two_floats_are_rounded_exactly((value, power) in rough_middles()) {
        check_quotient(value, power);
    }

    #[test]
    fn integers_are_written_like_the_standard_library(value in any::<u64>(), shift in 0u32..64) {
        check_integer(value >> shift);
    }

    #[test]
    fn floats_are_written_like_zmij(bits in any::<u32>(), decimals in -9_999_999i32..10_000_000, down in 0i32..8) {
        check_float(f32::from_bits(bits));
        check_float((f64::from(decimals) / 10f64.powi(down)) as f32);
    }
}

#[track_caller]
fn check_integer(value: u64) {
    let mut room = NumberBuffer::default();
    let length = write_unsigned(&mut room, value);
    assert_eq!(String::from_utf8_lossy(&room[..length]), value.to_string());
    for signed in [value as i64, (value as i64).wrapping_neg()] {
        let length = write_signed(&mut room, signed);
        assert_eq!(String::from_utf8_lossy(&room[..length]), signed.to_string());
    }
}

#[track_caller]
fn check_float(value: f32) {
    let (mut room, mut expected) = (NumberBuffer::default(), NumberBuffer::default());
    let (length, wanted) = (write_f32(&mut room, value), write_float(&mut expected, value));
    let (found, wanted) = (&room[..length], &expected[..wanted]);
    assert_eq!(String::from_utf8_lossy(found), String::from_utf8_lossy(wanted));
    if value.is_finite() {
        let read: f32 = std::str::from_utf8(found).expect("UTF-8").parse().expect("a number");
        assert_eq!(read.to_bits(), value.to_bits());
    }
}

#[test]
fn integers_around_powers_of_ten_are_written_correctly() {
    for power in 0..20 {
        let value = 10u64.pow(power);
        [value - 1, value, value + 1].into_iter().for_each(check_integer);
    }
    [0, i64::MAX as u64, 1 << 63, u64::MAX].into_iter().for_each(check_integer);
}

/// All exponents, with significands at their limits and without a pattern.
#[test]
fn floats_of_all_sizes_are_written_correctly() {
    let mut taken = 0;
    for exponent in 0..=255u32 {
        let spread = (0..500u32).map(|n| n.wrapping_mul(2_654_435_761) >> 9);
        for significand in (0..100).chain((1 << 23) - 100..1 << 23).chain(spread) {
            let bits = exponent << 23 | significand;
            taken += usize::from(shortest(bits).is_some());
            check_float(f32::from_bits(bits));
            check_float(-f32::from_bits(bits));
        }
    }
    assert!(taken > 28_000, "{taken}");
}

#[test]
fn a_syntax_error_among_many_elements_has_its_offset() {
    let text = format!("[{}1.5 2.5]", "0.25,".repeat(150));
    let (found, _) = fast(text.as_bytes(), 152, DataType::Fp32, Elements::Kept);
    let JsonError::Syntax { offset, .. } =
        JsonCursor::check_document(text.as_bytes()).expect_err("no comma")
    else {
        panic!("a syntax error")
    };
    assert_eq!(offset, text.len() - 4);
    assert!(found.expect_err("no comma").ends_with(&format!("at {offset}")));
}
