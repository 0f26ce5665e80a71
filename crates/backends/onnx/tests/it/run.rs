//! Requests and answers: shapes, sharing of memory, errors.

use crate::support::{
    ask, floats, infer, instance, ints, model_folder,
    onnx::{self, Builder},
};
use galatea_backend::testing::run_batch;
use galatea_types::{
    AlignedBlock, Buffer, Code,
    DataType::{Bytes, Fp32, Int64},
    Shape, Tensor,
};

fn tensor(name: &str, shape: impl Into<Shape>, values: &[f32]) -> Tensor {
    Tensor::new(name, Fp32, shape, floats(values))
}

#[test]
fn scalars_are_configured_with_one_dimension() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1])
        .input("S", Fp32, &[])
        .output("Y", Fp32, &[-1])
        .output("T", Fp32, &[])
        .node("Mul", &["X", "S"], &["Y"])
        .node("Identity", &["S"], &["T"]);
    let text = r#"input [ { name: "X" data_type: TYPE_FP32 dims: -1 },
                          { name: "S" data_type: TYPE_FP32 dims: 1 } ]
        output [ { name: "Y" data_type: TYPE_FP32 dims: -1 },
                 { name: "T" data_type: TYPE_FP32 dims: 1 } ]"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let inputs = vec![tensor("X", [2], &[1.0, 2.0]), tensor("S", [1], &[3.0])];
    let answer = infer(&mut *instance, ask(1, inputs, &[])).expect("answer");
    assert_eq!(answer.output("Y").unwrap().host().expect("host memory"), floats(&[3.0, 6.0]));
    assert_eq!(answer.output("T").unwrap(), &tensor("T", [1], &[3.0]));
}

#[test]
fn inputs_and_outputs_are_reshaped() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1, -1, 2])
        .output("Y", Fp32, &[-1, -1, 2])
        .node("Identity", &["X"], &["Y"]);
    let text = r#"max_batch_size: 4
        input { name: "X" data_type: TYPE_FP32 dims: [ 1, -1, 2, 1 ] reshape { shape: [ -1, 2 ] } }
        output { name: "Y" data_type: TYPE_FP32 dims: [ 1, -1, 2 ] reshape { shape: [ -1, 2 ] } }"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let request = ask(2, vec![tensor("X", [2, 1, 3, 2, 1], &values)], &[]);
    let answer = infer(&mut *instance, request).expect("answer");
    assert_eq!(answer.outputs[0], tensor("Y", [2, 1, 3, 2], &values));
}

#[test]
fn a_batch_of_scalars_is_executed() {
    let graph = Builder::default().input("X", Fp32, &[-1]).output("Y", Fp32, &[-1]).node(
        "Neg",
        &["X"],
        &["Y"],
    );
    let mut instance = instance(&model_folder(&graph.bytes()), "");
    let requests = [1.0f32, 2.0].map(|v| ask(1, vec![tensor("X", [1, 1], &[v])], &[]));
    let answers = run_batch(&mut *instance, requests.into());
    let expected = [-1.0f32, -2.0].map(|v| tensor("Y", [1, 1], &[v]));
    for (answer, expected) in answers.into_iter().zip(expected) {
        assert_eq!(answer.expect("answer").outputs, [expected]);
    }
}

#[test]
fn tensor_names_may_contain_colons_and_slashes() {
    let graph = Builder::default()
        .input("serving_default_x:0", Fp32, &[-1, 1])
        .output("model/dense/Softmax:0", Fp32, &[-1, 1])
        .node("Neg", &["serving_default_x:0"], &["model/dense/Softmax:0"]);
    let mut instance = instance(&model_folder(&graph.bytes()), "");
    let request = ask(1, vec![tensor("serving_default_x:0", [1, 1], &[4.0])], &[]);
    let answer = infer(&mut *instance, request).expect("answer");
    assert_eq!(
        answer.output("model/dense/Softmax:0").unwrap().host().expect("host memory")[..],
        floats(&[-4.0])
    );
}

#[test]
fn an_initialiser_listed_as_input_may_be_omitted() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1])
        .input("W", Fp32, &[1])
        .constant("W", Fp32, &[1], &floats(&[2.0]))
        .output("Y", Fp32, &[-1])
        .node("Mul", &["X", "W"], &["Y"]);
    let text = r#"input { name: "X" data_type: TYPE_FP32 dims: -1 }
        input { name: "W" data_type: TYPE_FP32 dims: 1 optional: true }
        output { name: "Y" data_type: TYPE_FP32 dims: -1 }"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let x = || tensor("X", [1], &[3.0]);
    let absent = infer(&mut *instance, ask(1, vec![x()], &[])).expect("answer");
    assert_eq!(absent.outputs[0].host().expect("host memory"), floats(&[6.0]));
    let given = ask(1, vec![x(), tensor("W", [1], &[5.0])], &[]);
    assert_eq!(
        infer(&mut *instance, given).expect("answer").outputs[0].host().expect("host memory"),
        floats(&[15.0])
    );
}

/// The model declares another rank for output `Y` than it has.
#[test]
fn a_wrong_declared_rank_returns_the_true_shape() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1, 4])
        .input("S", Int64, &[-1])
        .output("Y", Fp32, &[-1])
        .node("Reshape", &["X", "S"], &["Y"]);
    let text = r#"input { name: "X" data_type: TYPE_FP32 dims: [ -1, 4 ] }
        input { name: "S" data_type: TYPE_INT64 dims: -1 }
        output { name: "Y" data_type: TYPE_FP32 dims: -1 }"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let shape = Tensor::new("S", Int64, [3], ints(&[2, 1, 2]));
    let request = ask(1, vec![tensor("X", [1, 4], &[1.0, 2.0, 3.0, 4.0]), shape], &[]);
    let answer = infer(&mut *instance, request).expect("answer");
    assert_eq!(answer.outputs[0].shape, Shape::from([2, 1, 2]));
}

/// The output holds the positive elements only.
#[test]
fn an_output_without_batch_dimension_is_an_error() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1, 1])
        .constant("S", Int64, &[1], &ints(&[-1]))
        .constant("ZERO", Fp32, &[], &floats(&[0.0]))
        .output("Y", Fp32, &[-1])
        .node("Reshape", &["X", "S"], &["FLAT"])
        .node("Greater", &["FLAT", "ZERO"], &["POSITIVE"])
        .node("Compress", &["FLAT", "POSITIVE"], &["Y"]);
    let text = r#"max_batch_size: 4
        input { name: "X" data_type: TYPE_FP32 dims: 1 }
        output { name: "Y" data_type: TYPE_FP32 dims: 1 reshape {} }"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let error = infer(&mut *instance, ask(2, vec![tensor("X", [2, 1], &[1.0, -2.0])], &[]))
        .expect_err("an error");
    let expected =
        "output 'Y' of model 'm' has shape [1], but a batch of 2 needs 2 as its first dimension";
    assert_eq!(error.message(), expected);
}

#[test]
fn a_failed_run_is_reported_and_the_next_run_succeeds() {
    let graph = Builder::default()
        .input("X", Int64, &[-1])
        .constant("D", Fp32, &[2], &floats(&[7.0, 8.0]))
        .output("Y", Fp32, &[-1])
        .node("Gather", &["D", "X"], &["Y"]);
    let text = r#"input { name: "X" data_type: TYPE_INT64 dims: -1 }
        output { name: "Y" data_type: TYPE_FP32 dims: -1 }"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let mut at = |index: i64| {
        let input = Tensor::new("X", Int64, [1], ints(&[index]));
        infer(&mut *instance, ask(1, vec![input], &[]))
    };
    let error = at(5).expect_err("out of range");
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().starts_with("onnx runtime error 2: "), "{error}");
    assert_eq!(at(1).expect("answer").outputs[0].host().expect("host memory"), floats(&[8.0]));
}

#[test]
fn batch_outputs_share_one_buffer_without_copies() {
    let mut instance = instance(&model_folder(&onnx::identity(Fp32)), "");
    let requests: Vec<_> = [1, 3]
        .map(|n| ask(n, vec![tensor("X", [n.into(), 2], &vec![1.0; 2 * n as usize])], &[]))
        .into();
    let answers = run_batch(&mut *instance, requests);
    let data: Vec<&[u8]> = answers
        .iter()
        .map(|a| a.as_ref().expect("answer").outputs[0].host().expect("host memory"))
        .collect();
    assert_eq!((data[0].len(), data[1].len()), (8, 24));
    assert_eq!(data[0].as_ptr().wrapping_add(8), data[1].as_ptr());
}

/// An output that is an input: the library hands back the request's own memory, which shows that it was
/// not copied on the way in, and must live as long as the answer.
#[test]
fn an_input_is_not_copied_and_outlives_its_request() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1])
        .output("X", Fp32, &[-1])
        .output("Y", Fp32, &[-1])
        .node("Neg", &["X"], &["Y"]);
    let text = r#"input { name: "X" data_type: TYPE_FP32 dims: -1 }
        output { name: "X" data_type: TYPE_FP32 dims: -1 }"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let mut block = AlignedBlock::with_capacity(4096);
    block.extend_from_slice(&floats(&[1.5; 1024]));
    let data = block.freeze();
    let pointer = data.host().expect("host memory").as_ptr();
    let request = ask(1, vec![Tensor::new("X", Fp32, [1024], data)], &[]);
    let answer = infer(&mut *instance, request).expect("answer");
    drop(instance);
    assert_eq!(answer.outputs[0].host().expect("host memory").as_ptr(), pointer);
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[1.5; 1024]));
}

#[test]
fn inputs_at_unaligned_addresses_are_read_correctly() {
    let mut instance = instance(&model_folder(&onnx::identity(Fp32)), "");
    let mut bytes = vec![0];
    bytes.extend(floats(&[1.0, 2.0, 3.0]));
    let odd = Buffer::from(bytes).slice(1..13).unwrap();
    let request = ask(1, vec![Tensor::new("X", Fp32, [1, 3], odd)], &[]);
    let answer = infer(&mut *instance, request).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[1.0, 2.0, 3.0]));
}

#[test]
fn strings_keep_every_byte_when_split() {
    let mut instance = instance(&model_folder(&onnx::identity(Bytes)), "");
    let wire = |texts: &[&[u8]]| {
        let one = |t: &&[u8]| [&(t.len() as u32).to_le_bytes()[..], *t].concat();
        texts.iter().flat_map(one).collect::<Vec<u8>>()
    };
    let first = wire(&[b"", b"a\0b"]);
    let second = wire(&["grün".as_bytes(), &[0xff, 0xfe], b"x", b""]);
    let request = |rows: i64, data: &[u8]| {
        let input = Tensor::new("X", Bytes, [rows, 2], data.to_vec());
        ask(rows as u32, vec![input], &[])
    };
    let answers = run_batch(&mut *instance, vec![request(1, &first), request(2, &second)]);
    let outputs: Vec<&Tensor> =
        answers.iter().map(|a| &a.as_ref().expect("answer").outputs[0]).collect();
    assert_eq!(
        (outputs[0].host().expect("host memory"), outputs[1].host().expect("host memory")),
        (&first[..], &second[..])
    );
    assert_eq!(outputs[1].shape, Shape::from([2, 2]));
}

#[test]
fn outputs_outlive_the_model() {
    let folder = model_folder(
        &Builder::default()
            .input("X", Fp32, &[-1])
            .constant("C", Fp32, &[3], &floats(&[1.0, 2.0, 3.0]))
            .output("Y", Fp32, &[3])
            .output("Z", Fp32, &[-1])
            .node("Identity", &["C"], &["Y"])
            .node("Neg", &["X"], &["Z"])
            .bytes(),
    );
    let text = r#"input { name: "X" data_type: TYPE_FP32 dims: -1 }
        output { name: "Y" data_type: TYPE_FP32 dims: 3 }
        output { name: "Z" data_type: TYPE_FP32 dims: -1 }"#;
    let mut instance = instance(&folder, text);
    let answer =
        infer(&mut *instance, ask(1, vec![tensor("X", [1], &[9.0])], &[])).expect("answer");
    drop(instance);
    assert_eq!(answer.output("Y").unwrap().host().expect("host memory"), floats(&[1.0, 2.0, 3.0]));
    assert_eq!(answer.output("Z").unwrap().host().expect("host memory"), floats(&[-9.0]));
}
