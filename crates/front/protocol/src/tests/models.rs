//! Requests on both wires, through a model and back.

use galatea_backend::testing::{Fixture, instance_spec, load_context, prepared, run_batch};

use super::*;

/// Reads and writes 4 bytes of the region at these offsets, the outputs in spans of this size.
struct Spans {
    inputs: [u64; 2],
    outputs: [u64; 2],
    output_size: u64,
}

const SPANS: Spans = Spans { inputs: [8, 16], outputs: [32, 40], output_size: 4 };
const SUMS: [u8; 4] = [8 + 16, 9 + 17, 10 + 18, 11 + 19];
const DIFFERENCES: [u8; 4] = [248; 4];

fn config(backend: &str) -> ModelConfig {
    let tensors = |kind: &str, name: &str| {
        let tensor = |i| format!("{kind} {{ name: '{name}{i}' data_type: TYPE_UINT8 dims: -1 }}\n");
        tensor(0) + &tensor(1)
    };
    let (inputs, outputs) = (tensors("input", "INPUT"), tensors("output", "OUTPUT"));
    testing::model_config(&format!("backend: '{backend}'\n{inputs}{outputs}"))
}

fn http_decoded(spans: &Spans, config: &ModelConfig, regions: &dyn Regions) -> Decoded {
    let parameters = |offset, size| {
        format!(
            r#""parameters":{{"shared_memory_region":"r","shared_memory_offset":{offset},"shared_memory_byte_size":{size}}}"#
        )
    };
    let input = |i: usize| {
        let parameters = parameters(spans.inputs[i], 4);
        format!(r#"{{"name":"INPUT{i}","shape":[4],"datatype":"UINT8",{parameters}}}"#)
    };
    let output = |i: usize| {
        format!(r#"{{"name":"OUTPUT{i}",{}}}"#, parameters(spans.outputs[i], spans.output_size))
    };
    let (inputs, outputs) = ([input(0), input(1)].join(","), [output(0), output(1)].join(","));
    let json = format!(r#"{{"inputs":[{inputs}],"outputs":[{outputs}]}}"#);
    http::decode(&Bytes::from(json.clone()), json.len(), config, None, regions)
}

fn grpc_decoded(spans: &Spans, config: &ModelConfig, regions: &dyn Regions) -> Decoded {
    let parameters = |offset: u64, size: u64| {
        let (offset, size) = (offset.cast_signed(), size.cast_signed());
        let parameter = |(key, choice): (&str, _)| {
            (key.to_owned(), InferParameter { parameter_choice: Some(choice) })
        };
        region(offset, size).into_iter().map(parameter).collect()
    };
    let input = |i: usize| InferInputTensor {
        name: format!("INPUT{i}"),
        datatype: "UINT8".into(),
        shape: vec![4],
        parameters: parameters(spans.inputs[i], 4),
        ..Default::default()
    };
    let output = |i: usize| InferRequestedOutputTensor {
        name: format!("OUTPUT{i}"),
        parameters: parameters(spans.outputs[i], spans.output_size),
    };
    let (inputs, outputs) = (vec![input(0), input(1)], vec![output(0), output(1)]);
    let message = ModelInferRequest { inputs, outputs, ..Default::default() };
    grpc::decode(grpc_message(&message), config, regions)
}

/// What the model of `backend` answers.
fn answer(backend: &str, config: &ModelConfig, request: InferRequest) -> InferResponse {
    let backend = galatea_backend_builtin::find(backend).expect("built in");
    let context = load_context(&Fixture::new(config.clone(), "unused"));
    let model = backend.load(context).expect("it loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("an instance");
    run_batch(&mut *instance, vec![prepared(request, 1)]).remove(0).expect("success")
}

/// The model of `backend` answers the same request over both protocols.
#[track_caller]
fn assert_written(backend: &str, spans: &Spans, expected: &[(usize, &[u8])]) {
    let config = config(backend);
    let regions = OneRegion::new();
    let decoded = http_decoded(spans, &config, &regions.table);
    let (request, plan) = decoded.expect("the region is there");
    let response = answer(backend, &config, request);
    let encoded = http::encode(response, &plan, |_, _| None).expect("it fits");
    assert!(encoded.binary.is_empty());
    regions.assert_written(expected);

    let regions = OneRegion::new();
    let decoded = grpc_decoded(spans, &config, &regions.table);
    let (request, plan) = decoded.expect("the region is there");
    let response = answer(backend, &config, request);
    let message = grpc::encode(response, &plan, |_, _| None).expect("it fits");
    assert_eq!(message.raw_output_contents, [Bytes::new(), Bytes::new()]);
    regions.assert_written(expected);
}

#[test]
fn outputs_of_every_model_are_written_to_the_region() {
    assert_written("add_sub", &SPANS, &[(32, &SUMS), (40, &DIFFERENCES)]);
    assert_written("identity", &SPANS, &[(32, &[8, 9, 10, 11]), (40, &[16, 17, 18, 19])]);
}

#[test]
fn an_output_span_may_be_the_input_span() {
    let in_place = Spans { outputs: SPANS.inputs, ..SPANS };
    assert_written("identity", &in_place, &[]);
    assert_written("add_sub", &in_place, &[(8, &SUMS), (16, &DIFFERENCES)]);
}

#[test]
fn no_output_is_written_if_one_does_not_fit() {
    let config = testing::model_config(
        "platform: 'ensemble'
        input { name: 'INPUT0' data_type: TYPE_UINT8 dims: -1 } input { name: 'INPUT1' data_type: TYPE_UINT8 dims: -1 }
        output { name: 'OUTPUT0' data_type: TYPE_UINT8 dims: -1 } output { name: 'OUTPUT1' data_type: TYPE_UINT8 dims: -1 }
        ensemble_scheduling { step { model_name: 'a' model_version: -1
            input_map { key: 'INPUT0' value: 'INPUT0' } input_map { key: 'INPUT1' value: 'INPUT1' }
            output_map { key: 'OUTPUT0' value: 'OUTPUT0' } output_map { key: 'OUTPUT1' value: 'OUTPUT1' } } }",
    );
    let response = || InferResponse {
        outputs: [("OUTPUT0", 4), ("OUTPUT1", 5)]
            .map(|(name, size)| Tensor::new(name, DataType::Uint8, [size], vec![9; size as usize]))
            .into(),
        ..response(0)
    };
    let text = format!(
        "in ensemble '{}', shared memory size specified with the request for output 'OUTPUT1' (4 bytes) should be at \
         least 5 bytes to hold the results",
        config.name()
    );
    let regions = OneRegion::new();
    let (_, plan) = http_decoded(&SPANS, &config, &regions.table).expect("it is there");
    let error = http::encode(response(), &plan, |_, _| None).expect_err("too small");
    assert_eq!((error.code(), error.message()), (Code::Internal, &*text));
    let (_, plan) = grpc_decoded(&SPANS, &config, &regions.table).expect("it is there");
    let error = grpc::encode(response(), &plan, |_, _| None).expect_err("too small");
    assert_eq!((error.code(), error.message()), (Code::Internal, &*text));
    regions.assert_written(&[]);
}

#[test]
fn a_span_that_is_too_small_is_not_written() {
    let config = config("add_sub");
    let too_small = Spans { output_size: 3, ..SPANS };
    let text = "shared memory size specified with the request for output 'OUTPUT0' (3 bytes) should be at least 4 \
                bytes to hold the results";
    let regions = OneRegion::new();
    let (request, plan) = http_decoded(&too_small, &config, &regions.table).expect("it is there");
    let response = answer("add_sub", &config, request);
    let error = http::encode(response, &plan, |_, _| None).expect_err("too small");
    assert_eq!((error.code(), error.message()), (Code::Internal, text));

    let (request, plan) = grpc_decoded(&too_small, &config, &regions.table).expect("it is there");
    let response = answer("add_sub", &config, request);
    let error = grpc::encode(response, &plan, |_, _| None).expect_err("too small");
    assert_eq!((error.code(), error.message()), (Code::Internal, text));
    regions.assert_written(&[]);
}
