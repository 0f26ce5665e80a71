//! Integer divisions without a result: on x86-64 they raise SIGFPE, which ended the process.
#![cfg(target_arch = "x86_64")]

use std::thread;

use crate::support::{Folder, ask, infer, instance, load, load_error, model_folder, onnx::Builder};
use galatea_backend::testing::{instance_spec, run_batch};
use galatea_types::{
    DataType::{self, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64},
    PreparedRequest, Result, Tensor,
};

const FAULT: &str = "the model divides an integer by zero, or the smallest integer by -1";

/// `Y = A op B`.
fn model(operation: &str, data_type: DataType) -> Folder {
    let graph = Builder::default()
        .input("A", data_type, &[-1, -1])
        .input("B", data_type, &[-1, -1])
        .output("Y", data_type, &[-1, -1])
        .node(operation, &["A", "B"], &["Y"]);
    model_folder(&graph.bytes())
}

/// `value` in as many bytes as the type has, `count` times.
fn filled(data_type: DataType, value: i64, count: usize) -> Vec<u8> {
    let size = data_type.byte_size().expect("a fixed size");
    value.to_le_bytes()[..size].repeat(count)
}

fn request(data_type: DataType, a: i64, b: i64, count: usize) -> PreparedRequest {
    let tensor = |name, value| {
        Tensor::new(name, data_type, [1, count as i64], filled(data_type, value, count))
    };
    ask(1, vec![tensor("A", a), tensor("B", b)], &[])
}

/// The first element, or the error's text.
fn first(data_type: DataType, answer: Result<galatea_types::InferResponse>) -> Result<i64, String> {
    let answer = answer.map_err(|error| error.message().to_owned())?;
    let data = answer.outputs[0].host().expect("host memory");
    let mut bytes = [0; 8];
    let size = data_type.byte_size().expect("a fixed size");
    bytes[..size].copy_from_slice(&data[..size]);
    Ok(i64::from_le_bytes(bytes))
}

#[test]
fn onnx_division_by_zero_and_of_the_smallest_integer_fail_the_request() {
    let smallest =
        |data_type: DataType| i64::MIN >> (64 - 8 * data_type.byte_size().expect("fixed"));
    let types = [Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64];
    let divisions = [("Div", Int32), ("Div", Int64)];
    let rests = types.map(|data_type| ("Mod", data_type));
    for (operation, data_type) in divisions.into_iter().chain(rests) {
        let what = format!("{operation} of {data_type}");
        let mut instance = instance(&model(operation, data_type), "");
        let mut run = |a, b| first(data_type, infer(&mut *instance, request(data_type, a, b, 3)));
        // Newer libraries look for zeros themselves before some operations.
        let by_zero = run(7, 0).expect_err("a division by zero");
        assert!(by_zero == FAULT || by_zero.ends_with(" by zero"), "{what}: {by_zero}");
        // Smaller ones are divided as 32 bits, which have room for the result.
        if matches!(data_type, Int32 | Int64) {
            // The rest has a value, 0, which the library gives since 1.32.
            let expected = if operation == "Div" { Err(FAULT.to_owned()) } else { Ok(0) };
            assert_eq!(run(smallest(data_type), -1), expected, "{what}: smallest");
        }
        let expected = if operation == "Div" { 3 } else { 1 };
        assert_eq!(run(7, 2), Ok(expected), "{what} afterwards");
    }
}

/// Nodes run on threads of the session, which several runs share; other clients of the same model and of another one
/// get their results meanwhile.
#[test]
fn onnx_divisions_on_the_sessions_threads_fail_their_request_alone() {
    const COUNT: usize = 64;
    let config = r#"max_batch_size: 1 instance_group { kind: KIND_CPU count: 3 }
        parameters [ { key: "execution_mode" value { string_value: "1" } },
                     { key: "inter_op_thread_count" value { string_value: "3" } } ]"#;
    let (model, other) = (load(&model("Div", Int64), config), load(&model("Mod", Int64), config));
    let (model, other) = (model.expect("loads"), other.expect("loads"));
    thread::scope(|scope| {
        for number in 0..2 {
            let mut instance = model.new_instance(&instance_spec("m", number)).expect("instance");
            scope.spawn(move || {
                for round in 0..20 {
                    let bad = infer(&mut *instance, request(Int64, i64::MIN, -1, COUNT));
                    assert_eq!(first(Int64, bad), Err(FAULT.to_owned()), "round {round}");
                }
            });
        }
        for (model, result) in [(&model, 4), (&other, 1)] {
            let mut instance = model.new_instance(&instance_spec("m", 2)).expect("instance");
            scope.spawn(move || {
                for round in 0..20 {
                    let good = infer(&mut *instance, request(Int64, 9, 2, COUNT));
                    let good = good.unwrap_or_else(|e| panic!("round {round}: {e}"));
                    let expected = filled(Int64, result, COUNT);
                    assert!(good.outputs[0].host().expect("host memory")[..] == expected);
                }
            });
        }
    });
}

#[test]
fn onnx_division_fails_its_request_of_a_batch_alone() {
    let mut instance = instance(&model("Div", Int64), "max_batch_size: 4");
    let requests = [(9, 3), (i64::MIN, -1), (8, 2)].map(|(a, b)| request(Int64, a, b, 2));
    let answers = run_batch(&mut *instance, requests.into());
    let answers: Vec<_> = answers.into_iter().map(|answer| first(Int64, answer)).collect();
    assert_eq!(answers, [Ok(3), Err(FAULT.to_owned()), Ok(4)]);
}

/// ONNX Runtime computes constants when it loads the model.
#[test]
fn onnx_division_of_constants_fails_the_load() {
    let graph = Builder::default()
        .input("X", Int64, &[-1])
        .constant("A", Int64, &[1], &i64::MIN.to_le_bytes())
        .constant("B", Int64, &[1], &(-1_i64).to_le_bytes())
        .output("Y", Int64, &[-1])
        .node("Div", &["A", "B"], &["C"])
        .node("Add", &["X", "C"], &["Y"]);
    let error = load_error(&model_folder(&graph.bytes()), "");
    assert!(error.contains(FAULT), "{error}");
}
