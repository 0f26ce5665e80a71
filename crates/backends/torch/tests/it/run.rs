//! Requests and answers: names, texts, shapes, sharing of memory, state, errors.

use crate::support::{archive::Script, ask, floats, infer, instance, load, model_folder};
use galatea_backend::testing::{instance_spec, run_batch};
use galatea_types::{
    AlignedBlock, Buffer,
    DataType::{Bytes, Fp32, Fp64},
    Shape, Tensor,
};

fn tensor(name: &str, shape: impl Into<Shape>, values: &[f32]) -> Tensor {
    let mut block = AlignedBlock::with_capacity(values.len() * 4);
    block.extend_from_slice(&floats(values));
    Tensor::new(name, Fp32, shape, block.freeze())
}

fn texts(name: &str, shape: impl Into<Shape>, texts: &[&str]) -> Tensor {
    let mut data = Vec::new();
    for text in texts {
        data.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        data.extend(text.bytes());
    }
    Tensor::new(name, Bytes, shape, data)
}

/// `data_type` and `dims` of inputs and outputs, by name.
fn ports(inputs: &[&str], outputs: &[&str]) -> String {
    let list = |names: &[&str]| {
        let port = |n: &&str| format!("{{ name: \"{n}\" data_type: TYPE_FP32 dims: -1 }}");
        names.iter().map(port).collect::<Vec<_>>().join(", ")
    };
    format!("input [ {} ] output [ {} ]", list(inputs), list(outputs))
}

/// Returns 2a - b and a - 2b.
fn two() -> Script {
    Script::new(
        "a: Tensor,\n    b: Tensor) -> Tuple[Tensor, Tensor]:\n    \
         return (torch.sub(torch.mul(a, 2), b), torch.sub(a, torch.mul(b, 2)))",
    )
}

#[test]
fn inputs_and_outputs_are_matched_by_name_index_and_order() {
    for (names, outputs) in
        [(["b", "a"], ["OUTPUT__1", "OUTPUT__0"]), (["INPUT__1", "INPUT__0"], ["x__1", "y__0"])]
    {
        let mut instance = instance(&two(), &ports(&names, &outputs));
        let inputs = vec![tensor(names[0], [1], &[1.0]), tensor(names[1], [1], &[10.0])];
        let answer = infer(&mut *instance, ask(1, inputs, &[])).expect("answer");
        assert_eq!(answer.output(outputs[0]).unwrap(), &tensor(outputs[0], [1], &[8.0]));
        assert_eq!(answer.output(outputs[1]).unwrap(), &tensor(outputs[1], [1], &[19.0]));
    }
    let mut instance = instance(&two(), &ports(&["left", "right"], &["first", "second"]));
    let inputs = vec![tensor("right", [1], &[1.0]), tensor("left", [1], &[10.0])];
    let answer = infer(&mut *instance, ask(1, inputs, &["second"])).expect("answer");
    assert_eq!(answer.outputs, [tensor("second", [1], &[8.0])]);
}

#[test]
fn dictionaries_are_passed_and_returned_by_key() {
    let script = Script::new(
        "d: Dict[str, Tensor]) -> Dict[str, Tensor]:\n    \
         return {\"sum\": torch.add(d[\"x\"], d[\"y\"]), \"x\": d[\"x\"]}",
    );
    let mut instance = instance(&script, &ports(&["y", "x"], &["x", "sum"]));
    let inputs = vec![tensor("x", [2], &[1.0, 2.0]), tensor("y", [2], &[3.0, 4.0])];
    let answer = infer(&mut *instance, ask(1, inputs.clone(), &[])).expect("answer");
    assert_eq!(answer.output("x").unwrap(), &inputs[0]);
    assert_eq!(answer.output("sum").unwrap(), &tensor("sum", [2], &[4.0, 6.0]));
}

#[test]
fn a_dictionary_without_the_output_is_an_error() {
    let script = Script::new("x: Tensor) -> Dict[str, Tensor]:\n    return {\"a\": x, \"b\": x}");
    let mut instance = instance(&script, &ports(&["x"], &["y"]));
    let error =
        infer(&mut *instance, ask(1, vec![tensor("x", [1], &[1.0])], &[])).expect_err("none");
    let expected =
        "model 'm': output 'y' is not in the dictionary that the model returned, which has a, b";
    assert_eq!(error.message(), expected);
}

#[test]
fn inputs_may_mix_texts_and_tensors() {
    let script = Script::new(
        "t: List[str],\n    x: Tensor) -> Tuple[List[str], Tensor]:\n    \
         out = annotate(List[str], [])\n    for i in range(torch.len(t)):\n      \
         _0 = torch.append(out, torch.add(t[i], \"!\"))\n    return (out, torch.neg(x))",
    );
    let text = r#"max_batch_size: 4
        input [ { name: "t" data_type: TYPE_STRING dims: 1 reshape { shape: [] } },
                { name: "x" data_type: TYPE_FP32 dims: 1 } ]
        output [ { name: "u" data_type: TYPE_STRING dims: 1 reshape { shape: [] } },
                 { name: "y" data_type: TYPE_FP32 dims: 1 } ]"#;
    let mut instance = instance(&script, text);
    let one = ask(1, vec![texts("t", [1, 1], &["a"]), tensor("x", [1, 1], &[1.0])], &[]);
    let long = "ü".repeat(300);
    let two = ask(2, vec![texts("t", [2, 1], &["", &long]), tensor("x", [2, 1], &[2.0, 3.0])], &[]);
    let answers = run_batch(&mut *instance, vec![one, two]);
    let answers: Vec<_> = answers.into_iter().map(|a| a.expect("answer").outputs).collect();
    assert_eq!(answers[0], [texts("u", [1, 1], &["a!"]), tensor("y", [1, 1], &[-1.0])]);
    let expected =
        [texts("u", [2, 1], &["!", &format!("{long}!")]), tensor("y", [2, 1], &[-2.0, -3.0])];
    assert_eq!(answers[1], expected);
}

#[test]
fn a_single_list_of_texts_is_accepted() {
    let script = Script::new("t: List[str]) -> List[str]:\n    return t");
    let text = r#"input { name: "INPUT__0" data_type: TYPE_STRING dims: -1 }
                  output { name: "OUTPUT__0" data_type: TYPE_STRING dims: -1 }"#;
    let mut instance = instance(&script, text);
    for count in [0, 3] {
        let words = &["x", "", "zz"][..count];
        let input = texts("INPUT__0", [i64::try_from(count).unwrap()], words);
        let answer = infer(&mut *instance, ask(1, vec![input.clone()], &[])).expect("answer");
        assert_eq!(answer.outputs[0].data, input.data);
        assert_eq!(answer.outputs[0].shape, input.shape);
    }
}

#[test]
fn weights_are_applied_and_column_major_outputs_are_returned_in_rows() {
    // The transposed product is not contiguous.
    let script =
        Script::new("x: Tensor) -> Tensor:\n    return torch.t(torch.mm(self.w, torch.t(x)))")
            .tensor("w", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let text = r#"max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: 3 }
                  output { name: "y" data_type: TYPE_FP32 dims: 2 }"#;
    let mut instance = instance(&script, text);
    let x = tensor("x", [2, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    let answer = infer(&mut *instance, ask(2, vec![x], &[])).expect("answer");
    assert_eq!(answer.outputs, [tensor("y", [2, 2], &[1.0, 4.0, 5.0, 11.0])]);
}

#[test]
fn a_scalar_is_one_element_and_cannot_be_batched() {
    let script = Script::new("x: Tensor) -> Tensor:\n    return torch.sum(x)");
    let one = r#"output { name: "y" data_type: TYPE_FP32 dims: 1 }"#;
    let input = r#"input { name: "x" data_type: TYPE_FP32 dims: -1 }"#;
    let mut alone = instance(&script, &format!("{input} {one}"));
    let answer =
        infer(&mut *alone, ask(1, vec![tensor("x", [2], &[1.0, 2.0])], &[])).expect("answer");
    assert_eq!(answer.outputs, [tensor("y", [1], &[3.0])]);
    let mut batched = instance(&script, &format!("max_batch_size: 2 {input} {one}"));
    let error = infer(&mut *batched, ask(1, vec![tensor("x", [1, 2], &[1.0, 2.0])], &[]))
        .expect_err("scalar");
    assert_eq!(error.message(), "model 'm': output 'y' is a scalar which is not supported.");
}

#[test]
fn a_mismatch_with_the_configuration_names_model_and_output() {
    let one = Script::new("x: Tensor) -> Tensor:\n    return x");
    let message = |script: &Script, text: &str| {
        let mut instance = instance(script, text);
        let request = ask(1, vec![tensor("x", [1, 1], &[1.0])], &[]);
        infer(&mut *instance, request).expect_err("an error").message().to_owned()
    };
    assert_eq!(
        message(&one, &format!("max_batch_size: 2 {}", ports(&["x"], &["OUTPUT__0", "OUTPUT__1"]))),
        "model 'm': The output OUTPUT__1 in the model configuration refers to an output index which doesn't \
         exist. This model has 1 outputs"
    );
    let doubles = r#"max_batch_size: 2 input { name: "x" data_type: TYPE_FP32 dims: -1 }
                     output { name: "y" data_type: TYPE_FP64 dims: -1 }"#;
    assert_eq!(
        message(&one, doubles),
        "model 'm': configuration expects datatype TYPE_FP64 for output 'y', model provides TYPE_FP32"
    );
    let sum = Script::new("x: Tensor) -> Tensor:\n    return torch.cat([x, x])");
    assert_eq!(
        message(&sum, &format!("max_batch_size: 2 {}", ports(&["x"], &["y"]))),
        "output 'y' of model 'm' has shape [2,1], but a batch of 1 needs 1 as its first dimension"
    );
    let number = Script::new("x: Tensor) -> int:\n    return 1");
    assert_eq!(
        message(&number, &format!("max_batch_size: 2 {}", ports(&["x"], &["y"]))),
        "PyTorch execute failure: output must be of type Tensor, List[str] or Tuple containing one of these \
         two types, received int"
    );
}

#[test]
fn a_model_error_shows_only_message_and_location() {
    let script = Script::new("x: Tensor) -> Tensor:\n    return torch.mm(x, x)");
    let mut instance = instance(&script, &format!("max_batch_size: 2 {}", ports(&["x"], &["y"])));
    let request = || ask(1, vec![tensor("x", [1, 3], &[1.0, 2.0, 3.0])], &[]);
    let error = infer(&mut *instance, request()).expect_err("an error");
    let message = error.message();
    assert!(message.starts_with("PyTorch execute failure: RuntimeError: "), "{message}");
    assert!(
        message.contains("mat1 and mat2 shapes cannot be multiplied (1x3 and 1x3)"),
        "{message}"
    );
    assert!(message.contains("in forward"), "{message}");
    assert!(message.lines().count() == 1 && !message.contains("Traceback"), "{message}");
    // The instance works on.
    let good = ask(1, vec![tensor("x", [1, 1], &[3.0])], &[]);
    assert_eq!(
        infer(&mut *instance, good).expect("answer").outputs[0].host().expect("host memory"),
        floats(&[9.0])
    );
}

#[test]
fn raised_exceptions_are_reported() {
    let script = Script::new(
        "x: Tensor) -> Tensor:\n    ops.prim.RaiseException(\"no such city\", \"builtins.ValueError\")\n    \
         return x",
    );
    let mut instance = instance(&script, &ports(&["x"], &["y"]));
    let error =
        infer(&mut *instance, ask(1, vec![tensor("x", [1], &[1.0])], &[])).expect_err("raised");
    assert!(error.message().contains("no such city"), "{error}");
    assert!(!error.message().contains("Traceback"), "{error}");
}

/// Inputs and outputs are not copied: the output is the memory of the request.
#[test]
fn a_single_request_is_executed_without_copies() {
    let script = Script::new("x: Tensor) -> Tensor:\n    return x");
    let mut instance = instance(&script, &ports(&["x"], &["y"]));
    let x = tensor("x", [4], &[1.0, 2.0, 3.0, 4.0]);
    let there = x.host().expect("host memory").as_ptr();
    let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory").as_ptr(), there);
    drop(instance);
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[1.0, 2.0, 3.0, 4.0]));
}

/// Batch normalisation writes only in training: such models stay shared, and their inputs are not copied.
#[test]
fn writes_in_training_mode_only_do_not_count_as_writes() {
    let script = Script::new(
        "x: Tensor) -> Tensor:\n    if self.training:\n      _0 = torch.add_(self.seen, 1)\n    else:\n      \
         pass\n    return x",
    )
    .tensor("seen", &[1], &[0.0]);
    let mut instance = instance(&script, &ports(&["x"], &["y"]));
    let x = tensor("x", [1], &[1.0]);
    let there = x.host().expect("host memory").as_ptr();
    let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory").as_ptr(), there);
}

#[test]
fn unaligned_inputs_are_read_correctly() {
    let script = Script::new("x: Tensor) -> Tensor:\n    return torch.neg(x)");
    let mut instance = instance(&script, &ports(&["x"], &["y"]));
    let mut block = AlignedBlock::with_capacity(9);
    block.extend_from_slice(&[0]);
    block.extend_from_slice(&floats(&[1.0, 2.0]));
    let data: Buffer = block.freeze().slice(1..9).unwrap();
    let answer = infer(&mut *instance, ask(1, vec![Tensor::new("x", Fp32, [2], data)], &[]));
    assert_eq!(
        answer.expect("answer").outputs[0].host().expect("host memory"),
        floats(&[-1.0, -2.0])
    );
}

/// Others may read the memory of the request, such as the next step of an ensemble.
#[test]
fn a_model_that_modifies_its_input_gets_a_copy() {
    let script = Script::new("x: Tensor) -> Tensor:\n    return torch.add_(x, 1)");
    let mut instance = instance(&script, &ports(&["x"], &["y"]));
    let x = tensor("x", [2], &[1.0, 2.0]);
    let kept = x.data.clone();
    let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[2.0, 3.0]));
    assert_eq!(kept.host().expect("host memory"), floats(&[1.0, 2.0]));
}

/// Counts in place, and answers with the very tensor it counts in.
fn counting() -> Script {
    Script::new("x: Tensor) -> Tensor:\n    return torch.add_(self.sum, x)").tensor(
        "sum",
        &[1],
        &[0.0],
    )
}

#[test]
fn instances_have_their_own_state_and_earlier_outputs_do_not_change() {
    let folder = model_folder(&counting());
    let model = load(&folder, &ports(&["x"], &["y"])).expect("loads");
    let mut one = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let mut other = model.new_instance(&instance_spec("m", 1)).expect("instance");
    let count = |instance: &mut dyn galatea_backend::ModelInstance, by: f32| {
        infer(instance, ask(1, vec![tensor("x", [1], &[by])], &[]))
            .expect("answer")
            .outputs
            .remove(0)
    };
    let first = count(&mut *one, 1.0);
    let second = count(&mut *one, 2.0);
    let elsewhere = count(&mut *other, 5.0);
    let values = [first, second, elsewhere].map(|t| t.host().expect("host memory").to_vec());
    assert_eq!(values, [floats(&[1.0]), floats(&[3.0]), floats(&[5.0])]);
}

#[test]
fn state_is_shared_between_instances_on_request() {
    let sharing = r#"parameters { key: "ENABLE_WEIGHT_SHARING" value { string_value: "true" } }"#;
    let folder = model_folder(&counting());
    let model = load(&folder, &format!("{} {sharing}", ports(&["x"], &["y"]))).expect("loads");
    let totals: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let work = |index| {
            let mut instance = model.new_instance(&instance_spec("m", index)).expect("instance");
            for _ in 0..100 {
                infer(&mut *instance, ask(1, vec![tensor("x", [1], &[1.0])], &[])).expect("answer");
            }
        };
        let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || work(i))).collect();
        threads.into_iter().for_each(|t| t.join().expect("no panic"));
        let mut instance = model.new_instance(&instance_spec("m", 9)).expect("instance");
        let last = infer(&mut *instance, ask(1, vec![tensor("x", [1], &[0.0])], &[]));
        vec![last.expect("answer").outputs[0].host().expect("host memory").to_vec()]
    });
    assert_eq!(totals, [floats(&[400.0])]);
}

/// A module may keep data of a request after the request is gone.
#[test]
fn a_module_may_keep_a_reference_to_its_input() {
    let script = Script::new(
        "x: Tensor) -> Tensor:\n    before = self.last\n    self.last = x\n    return before",
    )
    .tensor("last", &[2], &[0.0, 0.0]);
    let mut instance = instance(&script, &ports(&["x"], &["y"]));
    let mut said = Vec::new();
    for n in 1..50u8 {
        let x = tensor("x", [2], &[f32::from(n), 0.5]);
        let answer = infer(&mut *instance, ask(1, vec![x], &[])).expect("answer");
        said.push(answer.outputs[0].host().expect("host memory").to_vec());
    }
    assert_eq!(said[0], floats(&[0.0, 0.0]));
    assert_eq!(said[48], floats(&[48.0, 0.5]));
}

/// The twin of a float32 model in float64, with a named tuple, and a list of tensors.
#[test]
fn other_result_types_are_returned() {
    let script = Script::new("x: Tensor) -> List[Tensor]:\n    return [x, torch.neg(x)]");
    let mut list = instance(&script, &ports(&["x"], &["y", "z"]));
    let answer = infer(&mut *list, ask(1, vec![tensor("x", [1], &[1.0])], &["z"])).expect("answer");
    assert_eq!(answer.outputs, [tensor("z", [1], &[-1.0])]);
    let text = r#"input { name: "x" data_type: TYPE_FP64 dims: -1 }
                  output { name: "y" data_type: TYPE_FP64 dims: -1 }"#;
    let mut doubles =
        instance(&Script::new("x: Tensor) -> Tuple[Tensor]:\n    return (torch.sqrt(x),)"), text);
    let x = Tensor::new("x", Fp64, [1], 2f64.to_le_bytes().to_vec());
    let answer = infer(&mut *doubles, ask(1, vec![x], &[])).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory"), 2f64.sqrt().to_le_bytes());
}
