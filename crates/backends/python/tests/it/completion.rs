//! Models that complete their configuration.

use std::collections::BTreeMap;

use galatea_backend::CompletionContext;
use galatea_config::{RawModelConfig, parse_json};
use galatea_types::Result;

use crate::common::{self, IDENTITY, Written};

fn complete(
    code: &str,
    config: &str,
    settings: &BTreeMap<String, String>,
) -> Result<RawModelConfig> {
    let folder = Written::class(code).write();
    let context = CompletionContext {
        model_name: "m",
        model_dir: folder.path(),
        version: 1,
        version_dir: &folder.path().join("1"),
        backend_config: settings,
        paths: &galatea_backend::PathRules::anywhere(),
    };
    let written = parse_json(config).expect("a configuration").into();
    Ok(common::backend().complete_config(written, &context)?.into_raw())
}

const COMPLETES: &str = r#"
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_UINT8", "dims": [4]})
        config.add_output({"name": "OUT", "data_type": "TYPE_UINT8", "dims": [4]})
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        config.set_model_transaction_policy({"decoupled": False})
        return config
"#;

#[test]
fn a_model_completes_its_configuration() {
    let completed = complete(COMPLETES, r#"{"name": "m"}"#, &common::settings());
    let completed = completed.expect("completed");
    assert_eq!((completed.max_batch_size, completed.input.len()), (8, 1));
    assert_eq!((&*completed.output[0].name, &completed.output[0].dims[..]), ("OUT", &[4][..]));
    assert!(completed.scheduling_choice.is_some());
    assert_eq!(completed.name, "m");
}

#[test]
fn an_exception_during_completion_is_an_error() {
    let fails = "    @staticmethod\n    def auto_complete_config(config):\n        raise RuntimeError('undecided')\n";
    let error = complete(fails, r#"{"name": "m"}"#, &common::settings()).expect_err("an error");
    assert!(error.message().contains("undecided"), "{error}");
}

#[test]
fn no_worker_starts_when_completion_is_off() {
    let settings =
        BTreeMap::from([("python-interpreter".to_owned(), "/nowhere/python".to_owned())]);
    let code = format!("    def execute(self, requests):{IDENTITY}");
    let config = complete(&code, r#"{"name": "m", "max_batch_size": 3}"#, &settings);
    assert_eq!(config.expect("unchanged").max_batch_size, 3);
}
