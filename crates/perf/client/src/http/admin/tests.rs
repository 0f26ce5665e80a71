//! Responses of a server, parsed.

use super::*;

#[test]
fn numbers_may_be_given_as_text() {
    let value = json!({
        "name": "m",
        "max_batch_size": "8",
        "dynamic_batching": {},
        "sequence_batching": null,
        "model_transaction_policy": {"decoupled": true},
        "response_cache": {"enable": true},
        "input": [
            {"name": "A", "optional": true},
            {"name": "B", "is_shape_tensor": true},
            {"name": "C", "optional": false},
        ],
        "ensemble_scheduling": {"step": [
            {"model_name": "x", "model_version": "-1"},
            {"model_name": "y", "model_version": 3},
        ]},
    });
    let facts = model_config(&value);
    assert_eq!((facts.name.as_str(), facts.max_batch_size), ("m", 8));
    assert!(facts.dynamic_batching && !facts.sequence_batching);
    assert!(facts.decoupled && facts.response_cache);
    assert_eq!(facts.ensemble_steps, [("x".to_owned(), -1), ("y".to_owned(), 3)]);
    assert_eq!((facts.optional_inputs, facts.shape_tensors), (vec!["A".into()], vec!["B".into()]));
}

#[test]
fn omitted_configuration_fields_are_off() {
    let facts = model_config(&json!({"name": "m"}));
    assert_eq!(facts.max_batch_size, 0);
    assert!(!facts.dynamic_batching && !facts.decoupled && !facts.response_cache);
    assert!(facts.ensemble_steps.is_empty() && facts.optional_inputs.is_empty());
}

#[test]
fn metadata_lists_the_tensors() {
    let metadata = model_metadata(&json!({
        "name": "m", "versions": ["1", "3"], "platform": "p",
        "inputs": [{"name": "A", "datatype": "FP32", "shape": [-1, "16"]}],
        "outputs": [{"name": "B", "datatype": "BYTES", "shape": []}],
    }))
    .unwrap();
    assert_eq!(metadata.versions, ["1", "3"]);
    let [input] = &metadata.inputs[..] else { panic!("{metadata:?}") };
    assert_eq!((input.data_type, &input.shape[..]), (DataType::Fp32, &[-1, 16][..]));
}

#[test]
fn an_unknown_data_type_is_named() {
    let value = json!({"name": "m", "inputs": [{"name": "A", "datatype": "FP8", "shape": [1]}]});
    let error = model_metadata(&value).unwrap_err();
    assert!(["'m'", "'A'", "'FP8'"].iter().all(|part| error.message().contains(part)), "{error}");
}

#[test]
fn statistics_have_counts_and_times() {
    let facts = model_statistics(&json!({
        "name": "m", "version": "1", "inference_count": 4, "execution_count": "2",
        "inference_stats": {"success": {"count": 4, "ns": "99"}, "queue": {"count": 4}},
    }));
    assert_eq!((facts.inference_count, facts.execution_count), (4, 2));
    assert_eq!(facts.success, CountAndTime { count: 4, ns: 99 });
    assert_eq!(facts.queue, CountAndTime { count: 4, ns: 0 });
    assert_eq!(facts.cache_hit, CountAndTime::default());
}

#[test]
fn an_index_entry_needs_only_a_name() {
    let entry =
        index_entry(&json!({"name": "m", "version": "2", "state": "UNAVAILABLE", "reason": "r"}));
    assert_eq!(
        (entry.version.as_str(), entry.state.as_str(), entry.reason.as_str()),
        ("2", "UNAVAILABLE", "r")
    );
    let bare = index_entry(&json!({"name": "m"}));
    assert_eq!(bare, ModelIndexEntry { name: "m".into(), ..Default::default() });
}
