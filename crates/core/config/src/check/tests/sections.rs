//! What each section becomes in the checked form.

use std::time::Duration;

use galatea_types::{DataType, Error};

use crate::{
    BatchInputKind, BatchOutputKind, ConfigDraft, ControlKind, FalseTrue, InitialData, ModelConfig,
    ModelPriority, Optimization, Scheduling, SequenceBatching, SequenceStrategy, WarmupData,
    testing::{Host, model_config},
};

const TENSORS: &str = "backend: 'python' max_batch_size: 4
    input { name: 'IN' data_type: TYPE_FP32 dims: 4 }
    output { name: 'OUT' data_type: TYPE_FP32 dims: 4 }";

fn with(section: &str) -> ModelConfig {
    model_config(&format!("{TENSORS} {section}"))
}

#[track_caller]
fn refused(section: &str) -> Error {
    Host::default().configure(&format!("{TENSORS} {section}")).expect_err("refused")
}

fn sequences(fields: &str) -> SequenceBatching {
    match with(&format!("sequence_batching {{ {fields} }}")).scheduling() {
        Scheduling::Sequence(sequences) => sequences.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sequence_batching_defaults_to_direct_with_one_second_idle_time() {
    let sequences = sequences("");
    let expected =
        SequenceStrategy::Direct { max_queue_delay: Duration::ZERO, minimum_slot_utilization: 0.0 };
    assert_eq!((&sequences.strategy, sequences.max_idle), (&expected, Duration::from_secs(1)));
    assert!(sequences.controls.is_empty() && sequences.states.is_empty());
    assert!(!sequences.is_iterative);
}

#[test]
fn the_oldest_strategy_reads_the_batcher_settings() {
    let sequences = sequences(
        "max_sequence_idle_microseconds: 5 iterative_sequence: true oldest {
           max_candidate_sequences: 9 preferred_batch_size: [ 4, 2 ]
           max_queue_delay_microseconds: 7 preserve_ordering: true }",
    );
    let expected = SequenceStrategy::Oldest {
        max_candidate_sequences: 9,
        preferred_batch_sizes: vec![2, 4],
        max_queue_delay: Duration::from_micros(7),
        preserves_ordering: true,
    };
    assert_eq!(sequences.strategy, expected);
    assert!(sequences.is_iterative && sequences.max_idle == Duration::from_micros(5));
}

#[test]
fn sequence_controls_have_their_values() {
    let sequences = sequences(
        "control_input { name: 'S' control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 2 ] } }
         control_input { name: 'R' control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 0.5 ] } }
         control_input { name: 'E' control { kind: CONTROL_SEQUENCE_END bool_false_true: [ true, false ] } }
         control_input { name: 'C' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }",
    );
    let controls: Vec<_> = sequences.controls.iter().map(|c| (&*c.input, &c.kind)).collect();
    let expected = [
        ("S", &ControlKind::Start(FalseTrue::Int32([0, 2]))),
        ("R", &ControlKind::Ready(FalseTrue::Fp32([0.0, 0.5]))),
        ("E", &ControlKind::End(FalseTrue::Bool([true, false]))),
        ("C", &ControlKind::CorrelationId(DataType::Bytes)),
    ];
    assert_eq!(controls, expected);
    let error = refused("sequence_batching { control_input { name: 'S' control { kind: 9 } } }");
    assert_eq!(error.message(), "sequence batching has unexpected control kind 9 for m");
}

#[test]
fn sequence_states_have_their_initial_values() {
    let sequences = sequences(
        "state { input_name: 'A' output_name: 'B' data_type: TYPE_FP32 dims: [ -1, 2 ]
                 use_same_buffer_for_input_output: true }
         state { input_name: 'C' output_name: 'D' data_type: TYPE_INT32 dims: 2 use_growable_memory: true
                 initial_state { name: 'i' data_type: TYPE_INT32 dims: 2 data_file: 'f' } }",
    );
    let [first, second] = &sequences.states[..] else { panic!("two states") };
    assert_eq!((&*first.input, &*first.output, &first.initial), ("A", "B", &None));
    assert_eq!((first.data_type, &first.dims[..]), (DataType::Fp32, &[-1, 2][..]));
    assert!(first.uses_same_buffer && !second.uses_same_buffer);
    let initial = second.initial.as_ref().expect("an initial state");
    assert_eq!((&*initial.name, &initial.dims[..]), ("i", &[2][..]));
    assert_eq!(initial.data, InitialData::File("f".to_owned()));
    let error = refused("sequence_batching { state { input_name: 'A' output_name: 'B' dims: 1 } }");
    assert_eq!(error.message(), "state for input 'A' must specify 'data_type'");
}

#[test]
fn optimization_settings_have_defaults() {
    assert_eq!(with("").optimization(), &Optimization::default());
    let config = with(
        "optimization { graph { level: -1 } priority: PRIORITY_MIN eager_batching: true
           cuda { busy_wait_events: true graph_spec { batch_size: 1 } output_copy_stream: true }
           execution_accelerators {
             gpu_execution_accelerator { name: 'tensorrt' parameters { key: 'k' value: 'v' } }
             cpu_execution_accelerator { name: 'openvino' } }
           input_pinned_memory { enable: false } gather_kernel_buffer_threshold: 3 }",
    );
    let optimization = config.optimization();
    assert_eq!(optimization.graph_level, Some(-1));
    assert_eq!(optimization.priority, ModelPriority::Min);
    assert_eq!(optimization.gpu_accelerators[0].parameters["k"], "v");
    assert_eq!(optimization.cpu_accelerators[0].name, "openvino");
}

#[test]
fn batch_inputs_name_their_source() {
    let config = with(
        "batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: [ 'N', 'M' ]
                       data_type: TYPE_INT32 source_input: 'IN' }
         batch_output { target_name: 'OUT' source_input: 'IN' }",
    );
    let [input] = config.batch_inputs() else { panic!("one") };
    assert_eq!(input.kind, BatchInputKind::AccumulatedElementCount);
    assert_eq!((input.targets.len(), input.data_type, &*input.source), (2, DataType::Int32, "IN"));
    let made: Vec<_> = config.execution_inputs().iter().map(|spec| &*spec.name).collect();
    assert_eq!(made, ["IN", "N", "M"]);
    assert_eq!(config.batch_input_for("M"), Some(input));
    let [output] = config.batch_outputs() else { panic!("one") };
    assert_eq!(config.batch_output_for("OUT"), Some(output));
    assert_eq!(output.kind, BatchOutputKind::ScatterWithInputShape);
    assert_eq!((&*output.targets[0], &*output.source), ("OUT", "IN"));
}

#[test]
fn warm_up_samples_without_requests_are_skipped() {
    let input = |data: &str| format!("inputs {{ key: 'IN' value {{ dims: 4 {data} }} }}");
    let sample = |fields: &str| format!("model_warmup {{ name: 'w' {fields} }}");
    let random = input("data_type: TYPE_FP32 random_data: true");
    let config = with(&[sample("count: 3"), sample(&format!("batch_size: 2 {random}"))].concat());
    let [warmup] = config.warmups() else { panic!("{:?}", config.warmups()) };
    assert_eq!((warmup.batch_size, warmup.count), (2, 1));
    assert_eq!(warmup.inputs["IN"].data, WarmupData::Random);
    let error = refused(&sample(&format!("batch_size: 1 {}", input("data_type: TYPE_FP32"))));
    let text =
        "[request id: <id_unknown>] warmup setting expects input 'IN' to have input_data_type set";
    assert_eq!(error.message(), text);
    let error = refused(&sample(&format!("batch_size: 1 {}", input("zero_data: true"))));
    let text = "input 'IN' of warm-up sample 'w' must specify 'data_type' for m";
    assert_eq!(error.message(), text);
}

#[test]
fn fields_for_other_parts_of_the_server_are_kept() {
    let config = with(
        "instance_group { host_policy: 'p' rate_limiter { resources { name: 'R' global: true count: 2 } } }
         model_repository_agents { agents { name: 'checksum' parameters { key: 'k' value: 'v' } } }
         model_operations { op_library_filename: 'ops.so' } runtime: 'r' response_cache { enable: true }",
    );
    let group = &config.instance_groups()[0];
    let limiter = group.rate_limiter.as_ref().expect("a limiter");
    assert_eq!((limiter.priority, &*limiter.resources[0].name), (1, "R"));
    assert!(limiter.resources[0].is_global && limiter.resources[0].count == 2);
    assert_eq!(group.host_policy, "p");
    let agents = ConfigDraft::from(config.raw().clone()).repository_agents();
    assert_eq!((agents[0].name.as_str(), agents[0].parameters["k"].as_str()), ("checksum", "v"));
    assert_eq!((config.operator_libraries(), config.runtime()), (&["ops.so".to_owned()][..], "r"));
    assert!(config.caches_responses());
}

#[test]
fn the_source_of_an_error_names_the_tensor() {
    let error = refused("input { name: 'X' data_type: TYPE_FP32 dims: 0 }");
    let found = crate::Diagnostic::of(&error).expect("a finding");
    assert_eq!(found.field.to_string(), "input[1].dims[0]");
    assert_eq!(error.message(), found.text, "no place and no advice before the text is known");
}

#[test]
fn hidden_inputs_and_outputs_are_listed_for_the_model() {
    let config = with(
        "sequence_batching {
           control_input { name: 'START' control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
           control_input { name: 'ID' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
           state { input_name: 'S_IN' output_name: 'S_OUT' data_type: TYPE_INT32 dims: [ -1 ] }
           state { input_name: 'LAST' output_name: 'OUT' data_type: TYPE_FP32 dims: 4 } }",
    );
    let inputs = config.model_inputs().iter().map(|t| (&*t.name, t.data_type, t.dims.to_vec()));
    let expected = [
        ("IN", DataType::Fp32, vec![4]),
        ("START", DataType::Fp32, vec![1]),
        ("ID", DataType::Uint64, vec![1]),
        ("S_IN", DataType::Int32, vec![-1]),
        ("LAST", DataType::Fp32, vec![4]),
    ];
    assert!(inputs.eq(expected), "{:?}", config.model_inputs());
    let outputs: Vec<_> = config.model_outputs().iter().map(|t| &*t.name).collect();
    assert_eq!(outputs, ["OUT", "S_OUT"]);
    assert_eq!((config.inputs().len(), config.outputs().len()), (1, 1));
}
