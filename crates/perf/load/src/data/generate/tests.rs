//! Generated data: its sizes and values.

use galatea_perf_types::settings::DataSource;
use galatea_types::{
    DataType::{self, *},
    byte_strings,
};

use super::{
    super::tests::{data_settings, model},
    *,
};

fn step(tensors: &[(DataType, &[i64])], random: bool) -> Step {
    generate(&model(tensors), &data_settings(DataSource::Random), random).unwrap()
}

fn bytes(step: &Step, input: usize) -> &[u8] {
    &step.inputs[input].as_ref().expect("data").data
}

#[test]
fn zero_data_is_all_zeros() {
    let step = step(&[(Fp32, &[2, 3]), (Uint8, &[])], false);
    assert_eq!(bytes(&step, 0), [0; 24]);
    assert_eq!(bytes(&step, 1), [0]);
}

#[test]
fn random_numbers_are_valid_and_repeatable() {
    let tensors: &[(DataType, &[i64])] = &[
        (Bool, &[4096]),
        (Fp16, &[4096]),
        (Bf16, &[4096]),
        (Fp32, &[4096]),
        (Fp64, &[4096]),
        (Int64, &[4096]),
    ];
    let first = step(tensors, true);
    assert!(bytes(&first, 0).iter().all(|&byte| byte < 2));
    let (words, _) = bytes(&first, 1).as_chunks::<2>();
    assert!(words.iter().all(|&word| half::f16::from_le_bytes(word).is_finite()));
    let (words, _) = bytes(&first, 2).as_chunks::<2>();
    assert!(words.iter().all(|&word| half::bf16::from_le_bytes(word).is_finite()));
    let (words, _) = bytes(&first, 3).as_chunks::<4>();
    assert!(words.iter().all(|&word| f32::from_le_bytes(word).is_finite()));
    let (words, _) = bytes(&first, 4).as_chunks::<8>();
    assert!(words.iter().all(|&word| f64::from_le_bytes(word).is_finite()));
    let again = step(tensors, true);
    (0..tensors.len()).for_each(|input| assert_eq!(bytes(&first, input), bytes(&again, input)));
    assert!(bytes(&first, 5).iter().any(|&byte| byte != 0));
}

#[test]
fn strings_are_random_or_given() {
    let model = model(&[(Bytes, &[3])]);
    let mut settings = data_settings(DataSource::Zero);
    settings.string_length = 5;
    let step = generate(&model, &settings, false).unwrap();
    assert_eq!(bytes(&step, 0).len(), 3 * (4 + 5));
    assert_eq!(byte_strings::count(bytes(&step, 0)), Ok(3));
    assert!(bytes(&step, 0)[4..9].iter().all(|letter| LETTERS.contains(letter)));

    settings.string_data = Some("ab".to_owned());
    let step = generate(&model, &settings, true).unwrap();
    assert_eq!(bytes(&step, 0), b"\x02\0\0\0ab\x02\0\0\0ab\x02\0\0\0ab");
}

#[test]
fn data_that_cannot_be_generated_is_an_error() {
    let refused = |model: &ModelInfo| {
        generate(model, &data_settings(DataSource::Zero), false).expect_err("no data").to_string()
    };
    for data_type in [Fp32, Bytes] {
        assert_eq!(
            refused(&model(&[(data_type, &[-1])])),
            "input INPUT0 contains dynamic shape, provide shapes to send along with the request"
        );
        assert_eq!(refused(&model(&[(data_type, &[i64::MAX])])), "input INPUT0 is too large");
    }
    let mut with_shape_tensor = model(&[(Int32, &[2])]);
    with_shape_tensor.inputs[0].is_shape_tensor = true;
    assert_eq!(
        refused(&with_shape_tensor),
        "can not generate data for shape tensor 'INPUT0', user-provided data is needed."
    );
}
