//! Ragged batches: inputs in one dimension, inputs made from the batch, outputs divided by the shapes of an input.

use crate::support::{
    Folder, ask, floats, instance, load, load_error, model_folder,
    onnx::{self, Builder},
};
use galatea_backend::testing::run_batch;
use galatea_types::{
    DataType::{self, Bytes, Fp32, Int32},
    Shape, Tensor, byte_strings,
};

const SIZES: [i64; 4] = [2, 4, 1, 3];

/// As many numbers as its size, each the size.
fn request(size: i64) -> Tensor {
    let values = vec![size as f32; usize::try_from(size).unwrap()];
    Tensor::new("X", Fp32, [1, size], floats(&values))
}

fn config(size: &str, batch: &str) -> String {
    let made = |kind: &str, name: &str| {
        format!(
            "batch_input {{ kind: {kind} target_name: '{name}' data_type: TYPE_FP32 source_input: 'X' }}\n"
        )
    };
    let output = |name| format!("output {{ name: '{name}' data_type: TYPE_FP32 dims: -1 }}\n");
    format!(
        "max_batch_size: 8 input {{ name: 'X' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }}\n{}{}{}",
        made(size, "SIZE"),
        made(batch, "BATCH"),
        ["X_OUT", "SIZE_OUT", "BATCH_OUT"].map(output).concat()
    )
}

/// Every request sees what the whole batch was given.
#[track_caller]
fn check(size: &str, batch: &str, sizes: &[f32], batches: &[f32]) {
    let mut instance = instance(&model_folder(&onnx::ragged()), &config(size, batch));
    let requests = SIZES.map(|size| ask(1, vec![request(size)], &[])).into();
    let all: Vec<f32> = SIZES.iter().flat_map(|&n| vec![n as f32; n as usize]).collect();
    for answer in run_batch(&mut *instance, requests) {
        let answer = answer.expect("answered");
        for (output, expected) in [("X_OUT", &all[..]), ("SIZE_OUT", sizes), ("BATCH_OUT", batches)]
        {
            let shape = Shape::from([1, expected.len() as i64]);
            let expected = Tensor::new(output, Fp32, shape, floats(expected));
            assert_eq!(answer.output(output), Some(&expected));
        }
    }
}

#[test]
fn a_ragged_batch_passes_all_requests_and_their_element_counts() {
    let with_zero = "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO";
    let ends = [0.0, 2.0, 6.0, 7.0, 10.0];
    check("BATCH_ELEMENT_COUNT", with_zero, &[2.0, 4.0, 1.0, 3.0], &ends);
    let ended = "BATCH_ACCUMULATED_ELEMENT_COUNT";
    check(ended, "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", &ends[1..], &[0.0; 4]);
    let counts = [2.0, 4.0, 1.0, 3.0];
    check("BATCH_ELEMENT_COUNT", "BATCH_ITEM_SHAPE_FLATTEN", &counts, &counts);
}

#[test]
fn batch_item_shapes_form_one_row_per_request() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1])
        .input("SHAPES", Int32, &[-1, 2])
        .output("X_OUT", Fp32, &[-1])
        .output("SHAPES_OUT", Int32, &[-1, 2])
        .node("Neg", &["X"], &["X_OUT"])
        .node("Neg", &["SHAPES"], &["SHAPES_OUT"]);
    let text = "max_batch_size: 8
        input { name: 'X' data_type: TYPE_FP32 dims: [ -1, -1 ] allow_ragged_batch: true }
        batch_input { kind: BATCH_ITEM_SHAPE target_name: 'SHAPES' data_type: TYPE_INT32 source_input: 'X' }
        output { name: 'X_OUT' data_type: TYPE_FP32 dims: [ -1, -1 ] }
        output { name: 'SHAPES_OUT' data_type: TYPE_INT32 dims: 2 }
        batch_output { target_name: 'X_OUT' source_input: 'X' }";
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let shapes = [[2, 1, 2], [1, 1, 2], [1, 2, 2]];
    let tensor = |name, shape: [i64; 3], sign: f32| {
        let count = shape.iter().product::<i64>();
        let values: Vec<f32> = (0..count).map(|n| sign * n as f32).collect();
        Tensor::new(name, Fp32, shape, floats(&values))
    };
    let requests = shapes.map(|shape| ask(shape[0] as u32, vec![tensor("X", shape, 1.0)], &[]));
    let rows = |[items, height, width]: [i64; 3]| {
        let values = [-height as i32, -width as i32].repeat(items as usize);
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::new("SHAPES_OUT", Int32, [items, 2], bytes)
    };
    for (answer, shape) in run_batch(&mut *instance, requests.into()).into_iter().zip(shapes) {
        let outputs = answer.expect("answered").outputs;
        assert_eq!(outputs, [tensor("X_OUT", shape, -1.0), rows(shape)]);
    }
}

/// `Y = X` in one dimension, divided by the shapes of X.
fn scattered(data_type: DataType) -> (Folder, String) {
    let graph = Builder::default().input("X", data_type, &[-1]).output("Y", data_type, &[-1]);
    let folder = model_folder(&graph.node("Identity", &["X"], &["Y"]).bytes());
    let kind = data_type.config_name();
    let text = format!(
        "max_batch_size: 4 input {{ name: 'X' data_type: {kind} dims: -1 allow_ragged_batch: true }}
         output {{ name: 'Y' data_type: {kind} dims: -1 }}
         batch_output {{ target_name: 'Y' source_input: 'X' }}"
    );
    (folder, text)
}

#[test]
fn a_ragged_output_is_split_by_input_shapes() {
    let (folder, text) = scattered(Fp32);
    let mut numbers = instance(&folder, &text);
    let requests = SIZES.map(|size| ask(1, vec![request(size)], &[])).into();
    for (answer, size) in run_batch(&mut *numbers, requests).into_iter().zip(SIZES) {
        let expected = Tensor { name: "Y".into(), ..request(size) };
        assert_eq!(answer.expect("answered").outputs, [expected]);
    }
    let (folder, text) = scattered(Bytes);
    let mut texts = instance(&folder, &text);
    let tensor = |name, words: &[&str]| {
        let data = byte_strings::pack(words).expect("short");
        Tensor::new(name, Bytes, [1, words.len() as i64], data)
    };
    let all: [&[&str]; 3] = [&["a", "bb"], &[], &["ccc"]];
    let requests = all.map(|words| ask(1, vec![tensor("X", words)], &[])).into();
    for (answer, words) in run_batch(&mut *texts, requests).into_iter().zip(all) {
        assert_eq!(answer.expect("answered").outputs, [tensor("Y", words)]);
    }
}

#[test]
fn unsupported_batch_inputs_are_refused_at_load() {
    let folder = model_folder(&onnx::identity(Fp32));
    let (_, ragged) = scattered(Fp32);
    assert_eq!(
        load_error(&folder, &ragged),
        "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'X', \
         model provides [-1,-1]"
    );
    let folder = model_folder(&onnx::ragged());
    let good = config("BATCH_ELEMENT_COUNT", "BATCH_ELEMENT_COUNT");
    load(&folder, &good).expect("loads");
    let refused = |from: &str, to: &str| load_error(&folder, &good.replacen(from, to, 1));
    assert_eq!(
        refused(
            "target_name: 'SIZE' data_type: TYPE_FP32",
            "target_name: 'SIZE' data_type: TYPE_INT32"
        ),
        "unable to load model 'm', configuration expects datatype TYPE_INT32 for batch input 'SIZE', model provides \
         TYPE_FP32"
    );
    assert_eq!(
        refused("kind: BATCH_ELEMENT_COUNT", "kind: BATCH_ITEM_SHAPE"),
        "unable to load model 'm', batch input 'SIZE' is made with shape [-1,1], model provides [-1]"
    );
    assert_eq!(
        refused("target_name: 'SIZE'", "target_name: 'SIZES'"),
        "unexpected inference input 'SIZES', allowed inputs are: BATCH, SIZE, X"
    );
    assert_eq!(
        refused("target_name: 'SIZE'", "target_name: 'BATCH'"),
        "target input name 'BATCH' can only be specified once, and is not an input of requests for m"
    );
    let optional = scattered(Fp32).1.replace("allow_ragged", "optional: true allow_ragged");
    let unbatched = optional.replace("max_batch_size: 4", "");
    let (folder, _) = scattered(Fp32);
    assert!(load_error(&folder, &unbatched).contains("configuration expects 0 inputs"));
}
