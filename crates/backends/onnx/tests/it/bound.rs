//! Runs of the same shapes one after the other, for which tensors are kept: they answer what single runs answer.

use crate::support::{
    ask, floats, infer, instance, ints, model_folder,
    onnx::{self, Builder},
};
use galatea_backend::{ModelInstance, testing::run_batch};
use galatea_types::{
    DataType::{Fp32, Int32, Int64},
    InferResponse, Result, Tensor,
};

/// Far more than it takes until tensors are kept.
const RUNS: i64 = 12;

fn row(name: &str, values: &[i64]) -> Tensor {
    Tensor::new(name, Int64, [1, values.len() as i64], ints(values))
}

fn alone(
    instance: &mut dyn ModelInstance,
    inputs: Vec<Tensor>,
    outputs: &[&str],
) -> Result<InferResponse> {
    infer(instance, ask(1, inputs, outputs))
}

#[track_caller]
fn holds(answer: &InferResponse, name: &str, values: &[i64]) {
    assert_eq!(
        answer.output(name).expect("such an output").host().unwrap(),
        ints(values),
        "{name}"
    );
}

#[test]
fn every_run_answers_its_own_inputs() {
    let mut instance = instance(&model_folder(&onnx::add_sub(Int64)), "");
    let mut kept = Vec::new();
    for n in 0..RUNS {
        let inputs = vec![row("A", &[n, 2, 3]), row("B", &[1, n, 1])];
        let answer = alone(&mut *instance, inputs, &[]).expect("answer");
        assert_eq!(answer.outputs.len(), 2);
        kept.push(answer);
    }
    // What was answered earlier stays what it was.
    for (n, answer) in (0..).zip(&kept) {
        holds(answer, "SUM", &[n + 1, n + 2, 4]);
        holds(answer, "DIFFERENCE", &[n - 1, 2 - n, 2]);
        assert_eq!(*answer.output("SUM").unwrap().shape, [1, 3]);
    }
}

#[test]
fn shapes_and_requested_outputs_may_change_between_runs() {
    let mut instance = instance(&model_folder(&onnx::add_sub(Int64)), "");
    for n in 0..20 * RUNS {
        let length = 1 + (n / 3) % 12;
        let values: Vec<i64> = (n..n + length).collect();
        let inputs = vec![row("A", &values), row("B", &values)];
        let wanted: &[&str] = if n % 5 < 3 { &["SUM"] } else { &["DIFFERENCE", "SUM"] };
        let answer = alone(&mut *instance, inputs, wanted).expect("answer");
        assert_eq!(answer.outputs.len(), wanted.len());
        holds(&answer, "SUM", &values.iter().map(|v| 2 * v).collect::<Vec<_>>());
    }
}

#[test]
fn batched_requests_get_their_own_rows() {
    let mut instance = instance(&model_folder(&onnx::add_sub(Int64)), "max_batch_size: 8");
    for n in 0..RUNS {
        let of = |m: i64| ask(1, vec![row("A", &[n, m]), row("B", &[m, m])], &[]);
        let answers = run_batch(&mut *instance, (0..1 + n % 3).map(of).collect());
        for (m, answer) in (0..).zip(answers) {
            holds(&answer.expect("answer"), "SUM", &[n + m, 2 * m]);
        }
    }
}

#[test]
fn output_shapes_may_depend_on_input_values() {
    let graph = Builder::default().input("X", Int64, &[-1]).output("AT", Int64, &[1, -1]).node(
        "NonZero",
        &["X"],
        &["AT"],
    );
    let mut instance = instance(&model_folder(&graph.bytes()), "");
    for n in 0..4 * RUNS {
        // The first ones are of one kind, so that tensors are kept that do not fit the later ones.
        let values: Vec<i64> =
            if n < 4 { vec![1, 0, 1] } else { (0..3).map(|bit| n >> bit & 1).collect() };
        let at: Vec<i64> = (0..3).filter(|&bit| values[bit as usize] != 0).collect();
        let answer = alone(&mut *instance, vec![Tensor::new("X", Int64, [3], ints(&values))], &[]);
        let answer = answer.expect("answer");
        holds(&answer, "AT", &at);
        assert_eq!(*answer.outputs[0].shape, [1, at.len() as i64]);
    }
}

#[test]
fn outputs_may_be_inputs_or_constants() {
    let graph = Builder::default()
        .input("X", Int64, &[-1])
        .constant("C", Int64, &[2], &ints(&[7, 8]))
        .output("X", Int64, &[-1])
        .output("C", Int64, &[2])
        .output("Y", Int64, &[-1])
        .node("Neg", &["X"], &["Y"]);
    let text = "input { name: 'X' data_type: TYPE_INT64 dims: -1 }
        output [ { name: 'X' data_type: TYPE_INT64 dims: -1 }, { name: 'C' data_type: TYPE_INT64 dims: 2 },
                 { name: 'Y' data_type: TYPE_INT64 dims: -1 } ]";
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    for n in 0..RUNS {
        let answer = alone(&mut *instance, vec![Tensor::new("X", Int64, [2], ints(&[n, 0]))], &[]);
        let answer = answer.expect("answer");
        holds(&answer, "X", &[n, 0]);
        holds(&answer, "C", &[7, 8]);
        holds(&answer, "Y", &[-n, 0]);
    }
}

#[test]
fn random_outputs_differ_between_runs() {
    let graph = Builder::default().input("X", Fp32, &[-1]).output("Y", Fp32, &[-1]).node(
        "RandomUniformLike",
        &["X"],
        &["Y"],
    );
    // Of one session: two of them would give the same values in turn.
    let text = "input { name: 'X' data_type: TYPE_FP32 dims: -1 } output { name: 'Y' data_type: TYPE_FP32 dims: -1 }
        parameters { key: 'intra_op_thread_count' value { string_value: '1' } }";
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let mut seen = Vec::new();
    for _ in 0..RUNS {
        let input = Tensor::new("X", Fp32, [4], floats(&[0.0; 4]));
        let answer = alone(&mut *instance, vec![input], &[]).expect("answer");
        let values = answer.outputs[0].host().unwrap().to_vec();
        assert!(!seen.contains(&values));
        seen.push(values);
    }
}

#[test]
fn a_failed_run_reports_its_error_and_the_next_run_succeeds() {
    let graph = Builder::default()
        .input("AT", Int64, &[-1])
        .constant("C", Int32, &[3], &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0])
        .output("Y", Int32, &[-1])
        .node("Gather", &["C", "AT"], &["Y"]);
    let mut instance = instance(&model_folder(&graph.bytes()), "");
    for n in 0..4 * RUNS {
        let answer =
            alone(&mut *instance, vec![Tensor::new("AT", Int64, [1], ints(&[n % 4]))], &[]);
        match n % 4 {
            3 => {
                let message = answer.expect_err("no such element").message().to_owned();
                assert!(message.contains("out of data bounds"), "{message}");
            }
            at => assert_eq!(answer.unwrap().outputs[0].host().unwrap(), [at as u8 + 1, 0, 0, 0]),
        }
    }
}
