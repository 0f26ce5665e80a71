//! Requests and answers: shapes, sharing of memory, texts, errors.

use std::thread;

use crate::support::{
    ask, floats,
    graph::{self, Builder},
    infer, instance, load, model_folder,
};
use galatea_backend::testing::{instance_spec, run_batch};
use galatea_types::{
    AlignedBlock, Buffer, Code,
    DataType::{self, Bytes, Fp32, Int32, Int64},
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
        .node("Mul", "product", &["in_X", "in_S"], Fp32)
        .node("Identity", "same", &["in_S"], Fp32)
        .output("Y", "product", Fp32, &[-1])
        .output("T", "same", Fp32, &[]);
    let mut instance = instance(&model_folder(&graph.bytes()), "");
    let inputs = vec![tensor("X", [2], &[1.0, 2.0]), tensor("S", [1], &[3.0])];
    let answer = infer(&mut *instance, ask(1, inputs, &[])).expect("answer");
    assert_eq!(answer.output("Y").unwrap().host().expect("host memory"), floats(&[3.0, 6.0]));
    assert_eq!(answer.output("T").unwrap(), &tensor("T", [1], &[3.0]));
}

/// The library borrows the memory of a request and must not write to it.
#[test]
fn an_input_is_neither_copied_nor_modified() {
    let graph = Builder::default()
        .input("X", Fp32, &[-1])
        .node("Neg", "negative", &["in_X"], Fp32)
        .node("Identity", "same", &["in_X"], Fp32)
        .output("Y", "negative", Fp32, &[-1])
        .output("SAME", "same", Fp32, &[-1]);
    let text = r#"input { name: "X" data_type: TYPE_FP32 dims: -1 }
        output [ { name: "Y" data_type: TYPE_FP32 dims: -1 }, { name: "SAME" data_type: TYPE_FP32 dims: -1 } ]"#;
    let mut instance = instance(&model_folder(&graph.bytes()), text);
    let mut block = AlignedBlock::with_capacity(4096);
    block.extend_from_slice(&floats(&[1.5; 1024]));
    let data = block.freeze();
    let request = ask(1, vec![Tensor::new("X", Fp32, [1024], data.clone())], &[]);
    let answer = infer(&mut *instance, request).expect("answer");
    drop(instance);
    assert_eq!(data.host().expect("host memory"), floats(&[1.5; 1024]));
    assert_eq!(answer.output("Y").unwrap().host().expect("host memory"), floats(&[-1.5; 1024]));
    // An output that is an input is the request's own memory: nothing was copied on the way in or out.
    let same = answer.output("SAME").unwrap().host().expect("host memory").as_ptr();
    assert_eq!(same, data.host().expect("host memory").as_ptr());
}

#[test]
fn inputs_at_unaligned_addresses_are_read_correctly() {
    let mut instance = instance(&model_folder(&graph::identity(Fp32).bytes()), "");
    let mut bytes = vec![0];
    bytes.extend(floats(&[1.0, 2.0, 3.0]));
    let odd = Buffer::from(bytes).slice(1..13).unwrap();
    let request = ask(1, vec![Tensor::new("X", Fp32, [1, 3], odd)], &[]);
    let answer = infer(&mut *instance, request).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[1.0, 2.0, 3.0]));
}

#[test]
fn batch_outputs_share_one_buffer_without_copies() {
    let mut instance = instance(&model_folder(&graph::identity(Fp32).bytes()), "");
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

#[test]
fn strings_keep_every_byte_when_split() {
    let mut instance = instance(&model_folder(&graph::identity(Bytes).bytes()), "");
    let wire = |texts: &[&[u8]]| {
        let one = |t: &&[u8]| [&(t.len() as u32).to_le_bytes()[..], *t].concat();
        texts.iter().flat_map(one).collect::<Vec<u8>>()
    };
    // Short texts lie in the element itself, long ones on the heap.
    let long = [b'x'; 100_000];
    let first = wire(&[b"", b"a\0b"]);
    let second = wire(&["grün".as_bytes(), &[0xff, 0xfe], &long, &[b'y'; 22]]);
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
fn a_failed_run_is_reported_and_the_next_run_succeeds() {
    let graph = graph::binary(&[("AddV2", "SUM")], Fp32);
    let mut instance = instance(&model_folder(&graph.bytes()), "");
    let mut with = |width: usize| {
        let a = tensor("A", [1, 4], &[1.0; 4]);
        let b = tensor("B", [1, width as i64], &vec![2.0; width]);
        infer(&mut *instance, ask(1, vec![a, b], &[]))
    };
    let error = with(3).expect_err("they do not fit");
    assert_eq!(error.code(), Code::InvalidArg);
    assert!(error.message().contains("Incompatible shapes: [1,4] vs. [1,3]"), "{error}");
    assert_eq!(with(4).expect("answer").outputs[0].host().expect("host memory"), floats(&[3.0; 4]));
}

#[test]
fn outputs_outlive_the_model() {
    let mut instance = instance(&model_folder(&graph::add_sub(Fp32).bytes()), "");
    let inputs = vec![tensor("A", [1, 1], &[3.0]), tensor("B", [1, 1], &[1.0])];
    let answer = infer(&mut *instance, ask(1, inputs, &[])).expect("answer");
    drop(instance);
    assert_eq!(answer.output("SUM").unwrap().host().expect("host memory"), floats(&[4.0]));
}

fn filled(data_type: DataType, value: i64, count: usize) -> Vec<u8> {
    let size = data_type.byte_size().expect("a fixed size");
    value.to_le_bytes()[..size].repeat(count)
}

/// By zero it is TensorFlow that refuses; of the smallest number by -1 the processor would end the process.
#[test]
fn divisions_by_zero_fail_the_request() {
    for (operation, data_type) in [
        ("FloorDiv", Int32),
        ("FloorDiv", Int64),
        ("FloorMod", Int64),
        ("TruncateDiv", Int32),
        ("TruncateMod", Int64),
    ] {
        let what = format!("{operation} of {data_type}");
        let folder = model_folder(&graph::binary(&[(operation, "Y")], data_type).bytes());
        let mut instance = instance(&folder, "");
        let mut divide = |a: i64, b: i64, count: usize| {
            let tensor = |name, value| {
                Tensor::new(name, data_type, [1, count as i64], filled(data_type, value, count))
            };
            infer(&mut *instance, ask(1, vec![tensor("A", a), tensor("B", b)], &[]))
        };
        for count in [1, 100_000] {
            assert!(divide(7, 0, count).is_err(), "{what} by zero");
            let smallest = i64::MIN >> (64 - 8 * data_type.byte_size().expect("fixed"));
            let smallest = divide(smallest, -1, count);
            // A kernel that computes it without the processor's division has a result of its own.
            if let Err(error) = smallest {
                assert!(error.message().contains("the smallest integer by -1"), "{what}: {error}");
            }
            divide(7, 2, count).expect("the next one works");
        }
    }
}

#[test]
fn sessions_are_shared_as_configured() {
    let text = "parameters { key: 'MAX_SESSION_SHARE_COUNT' value { string_value: '2' } }";
    let folder = model_folder(&graph::add_sub(Fp32).bytes());
    let model = load(&folder, text).expect("loads");
    let mut instances: Vec<_> =
        (0..5).map(|i| model.new_instance(&instance_spec("m", i)).expect("instance")).collect();
    thread::scope(|scope| {
        for (i, instance) in instances.iter_mut().enumerate() {
            scope.spawn(move || {
                for round in 0..50 {
                    let inputs = vec![
                        tensor("A", [1, 1], &[i as f32]),
                        tensor("B", [1, 1], &[round as f32]),
                    ];
                    let answer = infer(&mut **instance, ask(1, inputs, &[])).expect("answer");
                    let sum = answer.output("SUM").unwrap().host().expect("host memory").to_vec();
                    assert_eq!(sum, floats(&[i as f32 + round as f32]));
                }
            });
        }
    });
}
