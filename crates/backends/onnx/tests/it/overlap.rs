//! Runs of one session that overlap: on their own thread, on the session's, and both at once.

use std::thread;

use crate::support::{Folder, ask, floats, infer, ints, load, model_folder, onnx::Builder};
use galatea_backend::testing::instance_spec;
use galatea_types::{
    DataType::{Fp32, Int64},
    Tensor,
};

const SIZE: i64 = 192;

/// `Y = X W W ... W`: long enough a run that one overlapping it goes to the session's threads. `G` picks a
/// row, so that a request can fail.
fn chain(length: usize) -> Folder {
    let count = (SIZE * SIZE) as usize;
    let weights: Vec<f32> = (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 500.0).collect();
    let mut graph = Builder::default()
        .input("X", Fp32, &[-1, SIZE])
        .input("G", Int64, &[1])
        .constant("W", Fp32, &[SIZE, SIZE], &floats(&weights))
        .output("Y", Fp32, &[1, SIZE]);
    let mut last = "X".to_owned();
    for i in 0..length {
        let next = format!("t{i}");
        graph = graph.node("MatMul", &[&last, "W"], &[&next]);
        last = next;
    }
    model_folder(&graph.node("Gather", &[&last, "G"], &["Y"]).bytes())
}

const CONFIG: &str = r#"input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, 192 ] },
                                { name: "G" data_type: TYPE_INT64 dims: 1 } ]
    output { name: "Y" data_type: TYPE_FP32 dims: [ 1, 192 ] }"#;

fn request(rows: i64, seed: usize, row: i64) -> galatea_types::PreparedRequest {
    let count = (rows * SIZE) as usize;
    let values: Vec<f32> = (0..count).map(|i| ((i * 13 + seed) % 17) as f32 / 17.0).collect();
    let inputs = vec![
        Tensor::new("X", Fp32, [rows, SIZE], floats(&values)),
        Tensor::new("G", Int64, [1], ints(&[row])),
    ];
    ask(1, inputs, &[])
}

/// Concurrent runs give the same bits as single runs; a failed run disturbs no other.
#[test]
fn overlapping_runs_answer_like_single_runs() {
    check(&chain(16), SIZE);
}

/// The inputs are so small that each instance keeps the tensors of its runs.
#[test]
fn overlapping_runs_with_kept_tensors_answer_like_single_runs() {
    check(&chain(64), 16);
}

fn check(folder: &Folder, rows: i64) {
    let model = load(folder, CONFIG).expect("loads");
    let new_instance = |i| model.new_instance(&instance_spec("m", i)).expect("instance");
    let mut alone = new_instance(0);
    let expected: Vec<_> = (0..4)
        .map(|seed| infer(&mut *alone, request(rows, seed, 5)).expect("answer").outputs)
        .collect();
    thread::scope(|scope| {
        for caller in 0..4 {
            let mut instance = new_instance(caller);
            let expected = &expected;
            scope.spawn(move || {
                for round in 0..12 {
                    let seed = (caller + round) % 4;
                    let answer = infer(&mut *instance, request(rows, seed, 5)).expect("answer");
                    assert_eq!(answer.outputs, expected[seed], "caller {caller}, round {round}");
                    let error =
                        infer(&mut *instance, request(rows, seed, 1000)).expect_err("no such row");
                    assert!(error.message().starts_with("onnx runtime error "), "{error}");
                }
            });
        }
    });
}
