//! Integer divisions without a result: on x86-64 they raise SIGFPE, which ended the process.
#![cfg(target_arch = "x86_64")]

use std::thread;

use crate::support::{archive::Script, ask, infer, instance, load, model_folder};
use galatea_backend::testing::{instance_spec, run_batch};
use galatea_types::{
    AlignedBlock,
    DataType::{self, Int32, Int64},
    InferResponse, PreparedRequest, Result, Tensor,
};

const FAULT: &str = "the model divides an integer by zero, or the smallest integer by -1";

fn config(data_type: DataType, more: &str) -> String {
    let port = |name| format!("{{ name: \"{name}\" data_type: TYPE_{data_type} dims: -1 }}");
    format!("input [ {}, {} ] output [ {} ] {more}", port("a"), port("b"), port("y__0"))
}

/// `a` divided by `b`, by one of the operations of `torch`.
fn division(operation: &str) -> Script {
    Script::new(&format!("a: Tensor,\n    b: Tensor) -> Tensor:\n    return {operation}"))
}

const QUOTIENT: &str = "torch.div(a, b, rounding_mode=\"trunc\")";
const FLOOR: &str = "torch.floor_divide(a, b)";
const REST: &str = "torch.remainder(a, b)";

fn request(data_type: DataType, a: i64, b: i64, shape: &[i64]) -> PreparedRequest {
    let size = data_type.byte_size().expect("a fixed size");
    let count = usize::try_from(shape.iter().product::<i64>()).unwrap();
    let tensor = |name, value: i64| {
        let mut block = AlignedBlock::with_capacity(size * count);
        block.extend_from_slice(&value.to_le_bytes()[..size].repeat(count));
        Tensor::new(name, data_type, shape, block.freeze())
    };
    ask(1, vec![tensor("a", a), tensor("b", b)], &[])
}

/// The last element, or the error's text.
fn last(data_type: DataType, answer: Result<InferResponse>) -> Result<i64, String> {
    let answer = answer.map_err(|error| error.message().to_owned())?;
    let data = answer.outputs[0].host().expect("host memory");
    Ok(match data_type {
        Int32 => i64::from(i32::from_le_bytes(data[data.len() - 4..].try_into().unwrap())),
        _ => i64::from_le_bytes(data[data.len() - 8..].try_into().unwrap()),
    })
}

#[test]
fn torch_division_of_the_smallest_integer_fails_the_request() {
    for (operation, expected) in [(QUOTIENT, 3), (FLOOR, 3), (REST, 1)] {
        for (data_type, smallest) in [(Int32, i64::from(i32::MIN)), (Int64, i64::MIN)] {
            let mut instance = instance(&division(operation), &config(data_type, ""));
            let mut run =
                |a, b| last(data_type, infer(&mut *instance, request(data_type, a, b, &[3])));
            let what = format!("{operation} of {data_type}");
            assert_eq!(run(smallest, -1), Err(FAULT.to_owned()), "{what}");
            let by_zero = run(7, 0).expect_err("an error");
            assert!(by_zero == FAULT || by_zero.contains("ZeroDivisionError"), "{by_zero}");
            assert_eq!(run(7, 2), Ok(expected), "{what} afterwards");
        }
    }
}

/// The tensors are so large that libtorch's own threads divide too.
#[test]
fn torch_divisions_on_other_threads_fail_their_request_alone() {
    const COUNT: i64 = 1 << 17;
    let config = config(Int64, "instance_group { kind: KIND_CPU count: 2 }");
    let [model, other] = [QUOTIENT, REST]
        .map(|operation| load(&model_folder(&division(operation)), &config).expect("loads"));
    thread::scope(|scope| {
        let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
        scope.spawn(move || {
            for round in 0..2 {
                let bad = infer(&mut *instance, request(Int64, i64::MIN, -1, &[COUNT]));
                assert_eq!(last(Int64, bad), Err(FAULT.to_owned()), "round {round}");
            }
        });
        for (model, expected) in [(&model, 4), (&other, 1)] {
            let mut instance = model.new_instance(&instance_spec("m", 1)).expect("instance");
            scope.spawn(move || {
                for _ in 0..4 {
                    let good = infer(&mut *instance, request(Int64, 9, 2, &[COUNT]));
                    assert_eq!(last(Int64, good), Ok(expected));
                }
            });
        }
    });
}

#[test]
fn torch_division_fails_its_request_of_a_batch_alone() {
    let mut instance = instance(&division(QUOTIENT), &config(Int64, "max_batch_size: 4"));
    let requests = [(9, 3), (i64::MIN, -1), (8, 2)].map(|(a, b)| request(Int64, a, b, &[1, 2]));
    let answers = run_batch(&mut *instance, requests.into());
    let answers: Vec<_> = answers.into_iter().map(|answer| last(Int64, answer)).collect();
    assert_eq!(answers, [Ok(3), Err(FAULT.to_owned()), Ok(4)]);
}
