//! Executions of models that are not decoupled.

use std::error::Error as _;

use galatea_backend::testing;
use galatea_proto::inference::{ModelOutput, ModelTensorReshape};
use galatea_types::{Buffer, Code, CorrelationId, DataType, ParameterValue, Shape, Tensor};

use crate::common::{IDENTITY, Written, bytes, error_text, output, request, run};

#[test]
fn tensors_of_every_size_return_unchanged() {
    let (mut instance, _loaded) = Written::execute(IDENTITY).instance();
    // Inline, at the limits of inline and of a packet, and far beyond both.
    for size in [0, 1, 1000, 32 << 10, (32 << 10) + 1, 128 << 10, 5 << 20, 40 << 20] {
        let data: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let answer = output(run(&mut *instance, bytes(&data)));
        assert!(answer == data, "{size} bytes came back changed");
    }
}

/// What `allow_ragged_batch` promises: the scheduler joins requests of different shapes, and the model gets each
/// tensor as it was sent.
#[test]
fn requests_of_a_ragged_batch_keep_their_shapes() {
    let body = r#"
        assert len(requests) == 2, len(requests)
        arrays = [pb_utils.get_input_tensor_by_name(r, "IN").as_numpy() for r in requests]
        assert [a.shape for a in arrays] == [(1, 2), (1, 3)], [a.shape for a in arrays]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", a)]) for a in arrays]
"#;
    let written = Written::execute(body).changed(|raw| {
        raw.max_batch_size = 8;
        raw.input[0].allow_ragged_batch = true;
    });
    let (mut instance, _loaded) = written.instance();
    let row = |data: &[u8]| {
        let shape = [1, i64::try_from(data.len()).expect("small")];
        request(Tensor::new("IN", DataType::Uint8, shape, data.to_vec()))
    };
    let answers = testing::run_batch(&mut *instance, vec![row(&[1, 2]), row(&[3, 4, 5])]);
    let outputs: Vec<_> = answers.into_iter().map(output).collect();
    assert_eq!(outputs, [vec![1, 2], vec![3, 4, 5]]);
}

#[test]
fn requests_of_a_batch_get_their_own_responses() {
    let (mut instance, _loaded) = Written::execute(IDENTITY).instance();
    for size in [10, 9000, 60_000] {
        let requests = (0..100).map(|i| request(bytes(&vec![i; size]))).collect();
        let answers = testing::run_batch(&mut *instance, requests);
        for (i, answer) in answers.into_iter().enumerate() {
            assert_eq!(output(answer), vec![i as u8; size]);
        }
    }
}

#[test]
fn outputs_outlive_their_execution() {
    let (mut instance, _loaded) = Written::execute(IDENTITY).instance();
    let large = |byte| bytes(&vec![byte; 1 << 20]);
    let kept: Vec<_> = (0..20).map(|i| run(&mut *instance, large(i)).expect("an answer")).collect();
    for (i, answer) in kept.iter().enumerate() {
        let data = answer.output("OUT").expect("OUT").host().expect("host memory");
        assert!(data.iter().all(|&byte| usize::from(byte) == i), "answer {i} was overwritten");
    }
    drop(instance);
    assert_eq!(kept[3].outputs[0].host().expect("host memory")[7], 3, "gone with the worker");
}

#[test]
fn texts_arrive_as_arrays_of_bytes_objects() {
    let body = r#"
        out = []
        for r in requests:
            array = pb_utils.get_input_tensor_by_name(r, "IN").as_numpy()
            assert array.dtype == np.object_ and all(type(x) is bytes for x in array), array
            back = np.array([x.decode("utf-8")[::-1] for x in array], dtype=object)
            out.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", back)]))
        return out
"#;
    let (mut instance, _loaded) = Written::execute(body).data_type(DataType::Bytes).instance();
    let texts = |texts: &[&str]| {
        let element = |t: &&str| [&(t.len() as u32).to_le_bytes()[..], t.as_bytes()].concat();
        texts.iter().flat_map(element).collect::<Vec<u8>>()
    };
    let input = texts(&["abc", "", "häß"]);
    let input = Tensor::new("IN", DataType::Bytes, [3], input);
    assert_eq!(output(run(&mut *instance, input)), texts(&["cba", "", "ßäh"]));
}

#[test]
fn a_request_arrives_with_all_its_properties() {
    let body = r#"
        r = requests[0]
        text = "|".join([r.request_id(), str(r.correlation_id()), str(r.timeout()), str(r.flags()),
            r.parameters(), ",".join(sorted(r.requested_output_names()))])
        array = np.frombuffer(text.encode(), dtype=np.uint8)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)])]
"#;
    let (mut instance, _loaded) = Written::execute(body).instance();
    let sent = testing::adjusted(request(bytes(&[1])), |r| {
        r.id = "id-1".to_owned();
        r.correlation_id = CorrelationId::Number(42);
        r.sequence_start = true;
        r.timeout = Some(std::time::Duration::from_millis(90_000));
        r.parameters = vec![("k".to_owned(), ParameterValue::String("v\"".to_owned()))];
    });
    let answer = testing::run_batch(&mut *instance, vec![sent]).remove(0);
    let text = String::from_utf8(output(answer)).expect("text");
    let text: Vec<&str> = text.split('|').collect();
    assert_eq!(text[..4], ["id-1", "42", "90000000", "1"]);
    assert_eq!(text[4].replace(' ', ""), r#"{"k":"v\""}"#);
    assert_eq!(text[5], "OUT");
}

#[test]
fn an_exception_fails_the_batch_but_not_the_worker() {
    let body = &format!(
        r#"
        if pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy()[0] == 0:
            raise ValueError("no zeros, please"){IDENTITY}"#
    );
    let (mut instance, _loaded) = Written::execute(body).instance();
    let text = error_text(run(&mut *instance, bytes(&[0])));
    let start =
        "Failed to process the request(s) for model 'm_0_0', message: ValueError: no zeros, please";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("model.py"), "{text}");
    assert_eq!(output(run(&mut *instance, bytes(&[5]))), [5]);
}

#[test]
fn the_traceback_is_attached_to_a_single_error() {
    let body = r#"
        try:
            {}["weights"]
        except KeyError as error:
            raise RuntimeError("not loaded") from error
"#;
    let (mut instance, _loaded) = Written::execute(body).instance();
    let requests = vec![request(bytes(&[1])), request(bytes(&[2]))];
    let answers = testing::run_batch(&mut *instance, requests);
    let errors: Vec<_> = answers.into_iter().map(|a| a.expect_err("an error")).collect();
    let traceback = errors[0].source().expect("a source").to_string();
    assert!(traceback.starts_with("Traceback (most recent call last):"), "{traceback}");
    assert!(traceback.contains("KeyError: 'weights'"), "{traceback}");
    assert!(traceback.ends_with("RuntimeError: not loaded"), "{traceback}");
    assert!(!errors[0].message().contains("KeyError"), "{}", errors[0]);
    assert!(errors[1].source().is_none(), "it would be logged twice");
    assert_eq!(errors[0].message(), errors[1].message());
}

#[test]
fn one_request_of_a_batch_can_fail() {
    let body = r#"
        error = pb_utils.TritonError("not today", pb_utils.TritonError.UNAVAILABLE)
        ok = pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([1], dtype=np.uint8))])
        return [pb_utils.InferenceResponse(error=error), ok]
"#;
    let (mut instance, _loaded) = Written::execute(body).instance();
    let requests = vec![request(bytes(&[1])), request(bytes(&[2]))];
    let mut answers = testing::run_batch(&mut *instance, requests).into_iter();
    let error = answers.next().expect("one").expect_err("an error");
    assert_eq!((error.code(), error.message()), (Code::Unavailable, "not today"));
    assert_eq!(output(answers.next().expect("two")), [1]);
}

#[test]
fn outputs_that_were_not_requested_are_dropped() {
    let body = r#"
        name = "OTHER" if requests[0].request_id() == "bad" else "OUT"
        one = np.zeros(3, dtype=np.uint8)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(name, one), pb_utils.Tensor("MORE", one)])]
"#;
    let written = Written::execute(body).changed(|raw| {
        let more = ModelOutput { name: "MORE".to_owned(), ..raw.output[0].clone() };
        raw.output.push(more);
    });
    let (mut instance, _loaded) = written.instance();
    let one = testing::adjusted(request(bytes(&[1])), |r| {
        r.outputs = vec!["MORE".into()];
    });
    let answer = testing::run_batch(&mut *instance, vec![one]).remove(0).expect("an answer");
    let names: Vec<&str> = answer.outputs.iter().map(|t| &*t.name).collect();
    assert_eq!(names, ["MORE"]);
    let bad = testing::adjusted(request(bytes(&[1])), |r| {
        r.id = "bad".to_owned();
    });
    // As in Triton the model's outputs are dropped where they were not asked for, this one with them.
    let answer = testing::run_batch(&mut *instance, vec![bad]).remove(0).expect("an answer");
    assert_eq!(answer.outputs.len(), 1);
}

#[test]
fn the_model_sees_reshaped_tensors() {
    let body = r#"
        array = requests[0].inputs()[0].as_numpy()
        assert array.shape == (2, 3), array.shape
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)])]
"#;
    let written = Written::execute(body).changed(|raw| {
        let reshape = Some(ModelTensorReshape { shape: vec![2, 3] });
        (raw.input[0].dims, raw.input[0].reshape) = (vec![6], reshape.clone());
        (raw.output[0].dims, raw.output[0].reshape) = (vec![6], reshape);
    });
    let (mut instance, _loaded) = written.instance();
    let answer = run(&mut *instance, bytes(&[1, 2, 3, 4, 5, 6])).expect("an answer");
    assert_eq!(answer.outputs[0].shape, Shape::from([6]));
}

#[test]
fn a_request_beyond_the_memory_limit_fails_alone() {
    let written = Written::execute(IDENTITY).setting("shm-max-byte-size", "2097152");
    let (mut instance, _loaded) = written.instance();
    let text = error_text(run(&mut *instance, bytes(&vec![1; 4 << 20])));
    assert!(text.contains("shm-max-byte-size"), "{text}");
    assert_eq!(output(run(&mut *instance, bytes(&vec![1; 1 << 20]))), vec![1; 1 << 20]);
}

#[test]
fn unaligned_slices_of_a_body_are_accepted() {
    let (mut instance, _loaded) = Written::execute(IDENTITY).data_type(DataType::Fp64).instance();
    let body = Buffer::from((0..81).collect::<Vec<u8>>());
    let data = body.slice(1..81).expect("inside");
    let input = Tensor::new("IN", DataType::Fp64, [10], data.clone());
    assert_eq!(output(run(&mut *instance, input)), data.host().expect("host memory"));
}
