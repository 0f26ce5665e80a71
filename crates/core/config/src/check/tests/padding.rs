//! The parameters `pad_batches.*`.

use crate::{Diagnostic, ModelConfig, PaddingMask, testing::Host};

const TENSORS: &str = "name: 'm' backend: 'onnxruntime' max_batch_size: 8
    input { name: 'ids' data_type: TYPE_INT64 dims: -1 }
    input { name: 'mask' data_type: TYPE_FP32 dims: -1 optional: true }
    input { name: 'image' data_type: TYPE_FP32 dims: [ 3, -1, -1 ] }
    input { name: 'fixed' data_type: TYPE_FP32 dims: 4 }
    input { name: 'ragged' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    output { name: 'tokens' data_type: TYPE_FP32 dims: [ -1, 384 ] }
    output { name: 'pooled' data_type: TYPE_FP32 dims: 384 }\n";

fn text(parameters: &[(&str, &str)]) -> String {
    let one = |(key, value): &(&str, &str)| {
        format!("parameters {{ key: '{key}' value {{ string_value: '{value}' }} }}\n")
    };
    format!("{TENSORS}{}", parameters.iter().map(one).collect::<String>())
}

fn with(parameters: &[(&str, &str)]) -> galatea_types::Result<ModelConfig> {
    let on = [&[("pad_batches", "true")], parameters].concat();
    Host::default().configure(&text(&on))
}

#[test]
fn open_dimensions_are_padded_with_zeros_by_default() {
    let config = with(&[]).expect("valid");
    let padding = config.padding().expect("on");
    let names: Vec<_> = padding.inputs.iter().map(|input| &*input.name).collect();
    assert_eq!(names, ["ids", "mask", "image"]);
    assert_eq!(padding.inputs[0].value, [0; 8]);
    assert_eq!((padding.max_padding, padding.source_of("tokens")), (Some(0.2), Some("ids")));
    assert_eq!(padding.source_of("pooled"), None);
    let off =
        Host::default().configure(&text(&[("pad_batches", "false"), ("pad_batches.value", "x")]));
    assert!(off.expect("valid").padding().is_none());
    assert!(Host::default().configure(&text(&[])).expect("valid").padding().is_none());
}

#[test]
fn each_padding_setting_is_read() {
    let config = with(&[
        ("pad_batches.inputs", " ids , mask"),
        ("pad_batches.value", "-1"),
        ("pad_batches.mask", "mask"),
        ("pad_batches.buckets", "16, 32"),
        ("pad_batches.length_of.tokens", "ids"),
    ]);
    let config = config.expect("valid");
    let padding = config.padding().expect("on");
    let inputs: Vec<_> =
        padding.inputs.iter().map(|input| (&*input.name, &input.value[..])).collect();
    assert_eq!(inputs, [("ids", &[0xff; 8][..]), ("mask", &[0; 4])]);
    let one = 1.0_f32.to_le_bytes().to_vec();
    let mask = PaddingMask { name: "mask".into(), one, source: "ids".into() };
    assert_eq!(padding.mask, Some(mask));
    assert_eq!((&padding.buckets[..], padding.max_padding), (&[16, 32][..], None));
    let config = with(&[
        ("pad_batches.value", "7"),
        ("pad_batches.value.image", "0.5"),
        ("pad_batches.max_padding", "1"),
        ("pad_batches.length_of.tokens", "none"),
    ]);
    let config = config.expect("valid");
    let padding = config.padding().expect("on");
    assert_eq!(padding.input("image").map(|i| &i.value[..]), Some(&0.5_f32.to_le_bytes()[..]));
    assert_eq!(padding.input("ids").map(|i| i.value[0]), Some(7));
    assert_eq!((padding.max_padding, padding.outputs.len()), (Some(1.0), 0));
}

#[track_caller]
fn check(parameters: &[(&str, &str)], expected: &str, field: &str) {
    let error = with(parameters).expect_err("refused");
    assert_eq!(error.message(), format!("{expected} for m"));
    let found = Diagnostic::of(&error).expect("a finding");
    assert_eq!(found.field.to_string(), format!("parameters[{field:?}]"));
    assert!(found.advice.is_some(), "{expected}");
}

#[test]
fn mistakes_are_reported_with_advice() {
    let of = |name: &str, value: &str, expected: &str| {
        let key = format!("pad_batches.{name}");
        check(&[(&key, value)], &format!("parameter '{key}'{expected}"), &key);
    };
    check(
        &[("pad_batches.bucket", "1")],
        "unknown parameter 'pad_batches.bucket'",
        "pad_batches.bucket",
    );
    of("inputs", "id", " names the input 'id', which the configuration does not list");
    for input in ["fixed", "ragged"] {
        of("inputs", input, &format!(" names the input '{input}', which is not padded"));
    }
    of("value", "x", ": 'x' is not an element of TYPE_INT64, the type of input 'ids'");
    of("value.ids", "0.5", ": '0.5' is not an element of TYPE_INT64, the type of input 'ids'");
    for buckets in ["", "8,8", "0,1", "8;16"] {
        let expected =
            format!(" must list lengths above 0, each larger than the one before, got '{buckets}'");
        of("buckets", buckets, &expected);
    }
    for share in ["-0.1", "1.1", "NaN", "20%"] {
        of("max_padding", share, &format!(" must be a number from 0 to 1, got '{share}'"));
    }
    of("mask", "ids", " names the input 'ids', which requests may not leave out");
    of("length_of.token", "ids", " is about an output that the configuration does not list");
    of("length_of.tokens", "fixed", " names the input 'fixed', which is not padded");
    let image = [("pad_batches.mask", "mask"), ("pad_batches.mask_of", "image")];
    let expected = "parameter 'pad_batches.mask': the mask 'mask' has 1 dimensions of -1, its input 'image' has 2";
    check(&image, expected, "pad_batches.mask");
    let only_image = [("pad_batches.inputs", "image"), ("pad_batches.mask", "mask")];
    check(&only_image, expected, "pad_batches.mask");
}

#[test]
fn impossible_combinations_are_refused() {
    let refused = |text: &str| {
        let error = Host::default().configure(text).expect_err("refused");
        error.message().to_owned()
    };
    let on = text(&[("pad_batches", "true")]);
    assert_eq!(
        refused(&on.replace("max_batch_size: 8", "")),
        "parameter 'pad_batches' expects 'max_batch_size' above 0 for m"
    );
    assert_eq!(
        refused(&text(&[("pad_batches", "yes")])),
        "parameter 'pad_batches' must be 'true' or 'false', got 'yes' for m"
    );
    assert_eq!(
        refused(&text(&[("pad_batches.value", "1")])),
        "parameter 'pad_batches.value' is set, but 'pad_batches' is not 'true' for m"
    );
    let only_image = on.replace("dims: -1", "dims: 7");
    assert_eq!(
        refused(&only_image),
        "output 'tokens' has a dimension of -1 where no padded input has one: what of it is padding? for m"
    );
    assert_eq!(
        refused(&only_image.replace("[ 3, -1, -1 ]", "3").replace("[ -1, 384 ]", "384")),
        "parameter 'pad_batches' expects an input with a dimension of -1 for m"
    );
}
