//! The recorded refusals of the real server, and the checked form of what is accepted.

mod padding;
mod sections;

use galatea_types::Result;

use super::*;
use crate::{InstanceKind, MissingGpus, NormalizeContext, normalize, parse_text, to_json};

const NO_GPUS: CheckContext<'_> = CheckContext {
    directory_name: "m",
    supports_gpus: false,
    available_gpus: &[],
    missing_gpus: MissingGpus::Refuse,
    min_compute_capability: 6.0,
};

/// A configuration text, read, completed and checked for the folder that `context` names.
fn load(source: &str, files: &[&str], context: &CheckContext<'_>) -> Result<ModelConfig> {
    let version_files = files.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
    let normalized = normalize(
        parse_text(source)?,
        &NormalizeContext {
            directory_name: context.directory_name,
            version_files: &version_files,
            available_gpus: context.available_gpus,
        },
    )?;
    ModelConfig::check(normalized, context)
}

#[track_caller]
fn check_refusal(source: &str, expected: &str) {
    let error = load(source, &["model.py"], &NO_GPUS).unwrap_err();
    assert_eq!(error.message(), expected, "{source}");
}

/// Triton logged each of these reasons.
#[test]
fn refuses_configurations_that_triton_refuses() {
    let cases = include_str!("../../../testdata/triton/refusals.json");
    let cases: Vec<serde_json::Value> = serde_json::from_str(cases).unwrap();
    assert!(cases.len() > 80);
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let files = case["files"].as_array().unwrap();
        let files = files.iter().map(|f| f.as_str().unwrap()).collect::<Vec<_>>();
        let context =
            CheckContext { directory_name: text("model"), supports_gpus: true, ..NO_GPUS };
        match load(text("config"), &files, &context) {
            Ok(_) => panic!("{} was accepted", text("model")),
            Err(error) => assert_eq!(error.message(), text("refusal"), "{}", text("config")),
        }
    }
}

const TENSORS: &str = "backend: \"python\" max_batch_size: 4 \
    input { name: \"I\" data_type: TYPE_FP32 dims: 4 } output { name: \"O\" data_type: TYPE_FP32 dims: 4 } ";

#[test]
fn refuses_incomplete_model_metrics() {
    let cases = [
        ("", "metric control must specify 'metric_identifier'"),
        ("metric_identifier {}", "metric identifier must specify non-empty 'family'"),
        ("metric_identifier { family: \"f\" }", "metric control must specify 'histogram_options'"),
        (
            "metric_identifier { family: \"f\" } histogram_options {}",
            "histogram options must specify non-empty 'buckets'",
        ),
    ];
    for (control, expected) in cases {
        let source = format!("{TENSORS} model_metrics {{ metric_control {{ {control} }} }}");
        check_refusal(&source, expected);
    }
}

#[test]
fn refuses_unknown_enum_numbers() {
    let with = |tail: &str| format!("{TENSORS} {tail}");
    check_refusal(
        "backend: \"python\" input { name: \"I\" dims: 1 data_type: 99 }",
        "model input 'I' must specify 'data_type' for m",
    );
    check_refusal(
        &with("instance_group { kind: 99 }"),
        "instance group m_0 of model m has unexpected kind 99",
    );
    check_refusal(
        &with("batch_input { kind: 99 source_input: \"I\" data_type: TYPE_FP32 }"),
        "unknown batch input kind '99' for m",
    );
    check_refusal(
        &with("batch_output { kind: 99 source_input: \"I\" }"),
        "unknown batch output kind '99' for m",
    );
}

#[test]
fn refuses_gpus_the_server_does_not_have() {
    let group = "instance group m_0 of model m ";
    let cases: [(&str, bool, &[u32], &str); 7] = [
        ("kind: KIND_GPU", false, &[], "has kind KIND_GPU but server does not support GPUs"),
        (
            "kind: KIND_GPU gpus: 0",
            false,
            &[],
            "has kind KIND_GPU but server does not support GPUs",
        ),
        ("kind: KIND_GPU", true, &[], "has kind KIND_GPU but no GPUs are available"),
        (
            "kind: KIND_GPU gpus: 2",
            true,
            &[0, 1],
            "specifies invalid or unsupported gpu id 2. GPUs with at least the minimum required \
             CUDA compute compatibility of 6.000000 are: 0, 1",
        ),
        (
            "kind: KIND_GPU gpus: -1",
            true,
            &[0],
            "specifies invalid or unsupported gpu id -1. GPUs with at least the minimum required \
             CUDA compute compatibility of 6.000000 are: 0",
        ),
        (
            "kind: KIND_GPU gpus: 0",
            true,
            &[],
            "specifies invalid or unsupported gpu id 0. GPUs with at least the minimum required \
             CUDA compute compatibility of 6.000000 are: ",
        ),
        ("gpus: 1", true, &[0], "has kind KIND_CPU but specifies one or more GPUs"),
    ];
    for (fields, supports_gpus, available_gpus, expected) in cases {
        let context = CheckContext { supports_gpus, available_gpus, ..NO_GPUS };
        let source = format!("{TENSORS} instance_group {{ {fields} }}");
        let error = load(&source, &["model.py"], &context).unwrap_err();
        assert_eq!(error.message(), format!("{group}{expected}"), "{fields}");
    }
    // Not normalised: the default lists the GPUs there are.
    let raw = parse_text(&format!(
        "name: \"m\" {TENSORS} version_policy {{}} instance_group {{ name: \"m_0\" kind: KIND_GPU count: 1 }}"
    ))
    .unwrap();
    let context = CheckContext { supports_gpus: true, available_gpus: &[0], ..NO_GPUS };
    let error = ModelConfig::check(raw, &context).unwrap_err();
    assert_eq!(error.message(), format!("{group}has kind KIND_GPU but specifies no GPUs"));
}

#[test]
fn groups_with_missing_gpus_run_on_the_cpu_if_allowed() {
    let placed = |gpus: &[u32], fields: &str| {
        let context = CheckContext {
            supports_gpus: true,
            available_gpus: gpus,
            missing_gpus: MissingGpus::UseCpu,
            ..NO_GPUS
        };
        let source = format!("{TENSORS} instance_group {{ {fields} }}");
        let config = load(&source, &["model.py"], &context).map_err(|e| e.message().to_owned())?;
        let group = &config.instance_groups[0];
        let echo = &config.raw().instance_group[0];
        assert_eq!(echo.count, 2, "as it is written: {fields}");
        Ok::<_, String>((group.kind, group.count, group.gpus.clone(), group.stands_for_gpus))
    };
    let cpu = |count| Ok((InstanceKind::Cpu, count, vec![], true));
    assert_eq!(placed(&[], "count: 2 kind: KIND_GPU"), cpu(2));
    assert_eq!(placed(&[], "count: 2 kind: KIND_GPU gpus: 7"), cpu(2));
    assert_eq!(placed(&[], "count: 2 kind: KIND_GPU gpus: [ 0, 1, 2 ]"), cpu(6));
    assert_eq!(placed(&[], "count: 2 gpus: [ 0, 1 ]"), cpu(4), "AUTO");
    assert_eq!(placed(&[0], "count: 2 kind: KIND_GPU gpus: 1"), cpu(2));
    let own = Ok((InstanceKind::Cpu, 2, vec![], false));
    assert_eq!(placed(&[], "count: 2 kind: KIND_CPU"), own);
    assert_eq!(placed(&[], "count: 2"), own);
    // Where the GPUs are, nothing changes.
    let gpu = Ok((InstanceKind::Gpu, 2, vec![0], false));
    assert_eq!(placed(&[0], "count: 2 kind: KIND_GPU"), gpu);
    assert_eq!(placed(&[0, 1], "count: 2 kind: KIND_GPU gpus: 0"), gpu);
    // Half of it would be slow without a reason that anyone sees.
    let error = placed(&[0], "count: 2 kind: KIND_GPU gpus: [ 0, 1 ]").unwrap_err();
    assert!(error.contains("specifies invalid or unsupported gpu id 1"), "{error}");
    let error = placed(&[], "count: 2 kind: KIND_CPU gpus: 0").unwrap_err();
    assert!(error.contains("has kind KIND_CPU but specifies one or more GPUs"), "{error}");
}

#[test]
fn refuses_invalid_profiles() {
    let source = |profile: &str| {
        format!(
            "platform: \"tensorrt_plan\" instance_group {{ kind: KIND_CPU profile: \"{profile}\" }}"
        )
    };
    check_refusal(&source(""), "profile name must not be empty");
    check_refusal(
        &source("-1"),
        "instance group m_0 of model m and platform tensorrt_plan specifies invalid profile -1. The \
         field should contain the string representation of a non-negative integer.",
    );
    assert!(load(&source("3"), &[], &NO_GPUS).is_ok());
}

#[test]
fn survives_reshapes_beyond_64_bits() {
    let dims = "[9223372036854775807, 9223372036854775807]";
    let source = format!(
        "backend: \"python\" input {{ name: \"I\" data_type: TYPE_FP32 dims: {dims} reshape {{ shape: 1 }} }}"
    );
    check_refusal(&source, "model input 'I' has different size for dims and reshape for m");
}

#[test]
fn converts_every_field_to_the_checked_form() {
    let source = "platform: \"onnxruntime_onnx\" max_batch_size: 8
        input [ { name: \"x\" data_type: TYPE_STRING dims: [ 2, 2 ] reshape { shape: 4 } optional: true },
                { name: \"y\" data_type: TYPE_BF16 dims: [ 1 ] reshape { } allow_ragged_batch: true } ]
        output { name: \"z\" data_type: TYPE_FP16 dims: 3 reshape { shape: 3 } label_filename: \"l.txt\" }
        dynamic_batching { preferred_batch_size: [ 8, 2, 8 ] max_queue_delay_microseconds: 100
          priority_levels: 2 default_priority_level: 1
          default_queue_policy { max_queue_size: 5 default_timeout_microseconds: 7 timeout_action: DELAY }
          priority_queue_policy { key: 2 value { allow_timeout_override: true } } }
        parameters { key: \"intra_op_thread_count\" value { string_value: \"2\" } }
        metric_tags { key: \"team\" value: \"a\" }
        version_policy { specific { versions: [ 1, 3 ] } }
        model_transaction_policy { decoupled: true }
        instance_group [ { kind: KIND_CPU }, { count: 3, name: \"g\", kind: KIND_MODEL, passive: true } ]";
    let config = load(source, &[], &NO_GPUS).unwrap();
    assert_eq!((&*config.name, &*config.backend), ("m", "onnxruntime"));
    assert_eq!(config.default_model_filename, "model.onnx");
    assert_eq!(config.version_policy, VersionPolicy::Specific(vec![1, 3]));
    assert_eq!(config.inputs[0].reshape.as_deref(), Some(&[4][..]));
    assert_eq!(config.inputs[1].reshape.as_deref(), Some(&[][..]));
    assert!(config.inputs[0].is_optional && config.inputs[1].allows_ragged_batch);
    assert_eq!(config.outputs[0].reshape, None);
    assert_eq!(config.outputs[0].label_filename.as_deref(), Some("l.txt"));
    assert_eq!(config.parameters["intra_op_thread_count"], "2");
    assert_eq!(config.metric_tags["team"], "a");
    assert!(config.is_decoupled);
    let Scheduling::Dynamic(dynamic) = &config.scheduling else { panic!() };
    assert_eq!(dynamic.preferred_batch_sizes, [2, 8]);
    assert_eq!(dynamic.max_queue_delay.as_micros(), 100);
    assert_eq!(dynamic.default_queue_policy.max_queue_size, 5);
    assert_eq!(dynamic.default_queue_policy.default_timeout.unwrap().as_micros(), 7);
    assert_eq!(dynamic.default_queue_policy.timeout_action, crate::TimeoutAction::Delay);
    assert!(dynamic.priority_queue_policies[&2].allows_timeout_override);
    assert_eq!(dynamic.priority_queue_policies[&2].default_timeout, None);
    let groups = &config.instance_groups;
    assert_eq!((&*groups[0].name, groups[0].count, groups[0].is_count_default), ("m_0", 2, true));
    assert_eq!((&*groups[1].name, groups[1].count, groups[1].is_count_default), ("g", 3, false));
    assert_eq!((groups[1].kind, groups[1].is_passive), (InstanceKind::Model, true));
}

/// Configurations in every form the seed documents use; each must load, at least on a server with GPUs.
#[test]
fn loads_the_seed_configurations() {
    let seeds = [
        ("handwriting", include_str!("../../../testdata/seeds/handwriting.pbtxt")),
        ("base_model_cpu", include_str!("../../../testdata/seeds/base_model_cpu.pbtxt")),
        ("base_model_gpu", include_str!("../../../testdata/seeds/base_model_gpu.pbtxt")),
        (
            "base_model_gpu_scheduling",
            include_str!("../../../testdata/seeds/base_model_gpu_scheduling.pbtxt"),
        ),
        ("resnet50_trt_fp16", include_str!("../../../testdata/seeds/resnet50_trt_fp16.pbtxt")),
        (
            "flair-ner-english-fast",
            include_str!("../../../testdata/seeds/flair-ner-english-fast.pbtxt"),
        ),
        (
            "flair-ner-english-fast-ensemble",
            include_str!("../../../testdata/seeds/flair-ner-english-fast-ensemble.pbtxt"),
        ),
        ("embedding", include_str!("../../../testdata/seeds/embedding.pbtxt")),
        ("ner-english-fast", include_str!("../../../testdata/seeds/ner-english-fast.pbtxt")),
    ];
    let load = |(name, source): (&'static str, &str), gpus: &[u32]| {
        let context = CheckContext {
            directory_name: name,
            supports_gpus: true,
            available_gpus: gpus,
            ..NO_GPUS
        };
        load(source, &[], &context)
    };
    for seed in seeds {
        if let Err(error) = load(seed, &[0, 1]) {
            panic!("{}: {error}", seed.0);
        }
    }
    let handwriting = load(seeds[0], &[]).unwrap();
    assert_eq!(handwriting.inputs[0].reshape, None);
    let blip = load(seeds[1], &[]).unwrap();
    let group = &blip.instance_groups[0];
    assert_eq!((group.kind, group.count), (InstanceKind::Cpu, 2));
    assert!(group.is_count_default);
    assert_eq!(load(seeds[2], &[0]).unwrap().instance_groups[0].gpus, [0]);
    assert!(load(seeds[2], &[]).is_err());
    let ensemble = load(seeds[6], &[]).unwrap();
    let Scheduling::Ensemble(ensembling) = &ensemble.scheduling else { panic!("an ensemble") };
    assert!(ensembling.steps.iter().all(|s| s.model_version.is_none() && !s.inputs.is_empty()));
    assert_eq!(ensembling.max_inflight_requests, 0);
    assert!(ensemble.instance_groups.is_empty());
    assert_eq!(&*load(seeds[7], &[1]).unwrap().outputs[0].dims, [1, -1, 768]);
}

/// The JSON equals Triton's byte for byte, except for `DIFFERENCES`.
#[test]
fn writes_the_same_json_as_triton() {
    /// Triton forgets to turn some 64-bit integers into numbers, prints maps in the order of their
    /// hashes and large floats in full, and 2.51 did not have `max_inflight_requests`.
    const DIFFERENCES: [(&str, &str); 5] = [
        ("{\"dim\":[\"1\",\"2\"]}", "{\"dim\":[1,2]}"),
        ("\"dims\":[\"2\"]", "\"dims\":[2]"),
        ("100000000000000000000.0", "1e20"),
        ("{\"INPUT1\":\"A\",\"INPUT0\":\"A\"}", "{\"INPUT0\":\"A\",\"INPUT1\":\"A\"}"),
        ("\"model_namespace\":\"\"}]", "\"model_namespace\":\"\"}],\"max_inflight_requests\":0"),
    ];
    let recorded = [
        (
            "plain",
            include_str!("../../../testdata/triton/plain.pbtxt"),
            include_str!("../../../testdata/triton/plain.json"),
        ),
        (
            "dynamic",
            include_str!("../../../testdata/triton/dynamic.pbtxt"),
            include_str!("../../../testdata/triton/dynamic.json"),
        ),
        (
            "sequence",
            include_str!("../../../testdata/triton/sequence.pbtxt"),
            include_str!("../../../testdata/triton/sequence.json"),
        ),
        (
            "ensemble",
            include_str!("../../../testdata/triton/ensemble.pbtxt"),
            include_str!("../../../testdata/triton/ensemble.json"),
        ),
    ];
    for (name, source, answer) in recorded {
        let context = CheckContext { directory_name: name, ..NO_GPUS };
        let config = load(source, &["model.py"], &context).unwrap();
        let mut expected = answer.trim_end().to_owned();
        for (theirs, ours) in DIFFERENCES {
            expected = expected.replace(theirs, ours);
        }
        assert_eq!(to_json(&config.raw), expected, "{name}");
        // And back: the JSON form loses nothing.
        assert_eq!(crate::parse_json(&expected).unwrap(), config.raw, "{name}");
    }
}
