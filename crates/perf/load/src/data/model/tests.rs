//! Facts about a model, from the documents of a server.

use std::collections::BTreeMap;

use galatea_perf_types::settings::DataSource;
use galatea_types::{DataType, Error};

use super::{super::tests, *};

/// Configurations of a server, by name.
#[derive(Default)]
struct Server(BTreeMap<&'static str, ModelConfigFacts>);

impl Server {
    fn with(mut self, name: &'static str, change: impl FnOnce(&mut ModelConfigFacts)) -> Self {
        let mut config = ModelConfigFacts { name: name.to_owned(), ..Default::default() };
        change(&mut config);
        self.0.insert(name, config);
        self
    }

    fn read(&self, settings: &Settings, metadata: &ModelMetadata) -> Result<ModelInfo> {
        let config = &self.0["top"];
        let read = async |name: &str, _version: &str| {
            let unknown =
                || Error::not_found(format!("Request for unknown model: '{name}' is not found"));
            self.0.get(name).cloned().ok_or_else(unknown)
        };
        tests::block_on(model_info(settings, metadata, config, read))
    }
}

fn settings() -> Settings {
    tests::settings(DataSource::Random)
}

fn metadata() -> ModelMetadata {
    let tensor = |name: &str, shape: &[i64]| TensorMetadata {
        name: name.to_owned(),
        data_type: DataType::Fp32,
        shape: shape.to_vec(),
    };
    ModelMetadata {
        name: "top".to_owned(),
        inputs: vec![tensor("B", &[-1, 4]), tensor("A", &[-1, -1])],
        outputs: vec![tensor("OUT", &[-1, 2])],
        ..Default::default()
    }
}

fn step(name: &str) -> (String, i64) {
    (name.to_owned(), -1)
}

fn leaf(name: &str) -> ComposingModel {
    ComposingModel { name: name.to_owned(), version: String::new(), composing: Vec::new() }
}

#[test]
fn tensors_lose_the_batch_dimension_and_are_sorted() {
    let server = Server::default().with("top", |config| {
        config.max_batch_size = 4;
        config.optional_inputs = vec!["B".to_owned()];
        config.dynamic_batching = true;
    });
    let mut settings = settings();
    settings.data.shapes.insert("A".to_owned(), vec![7]);
    settings.data.shapes.insert("B".to_owned(), vec![9]);
    let info = server.read(&settings, &metadata()).unwrap();
    let inputs: Vec<_> =
        info.inputs.iter().map(|i| (&i.name[..], &i.shape[..], i.optional)).collect();
    // --shape does not change what the model fixes.
    assert_eq!(inputs, [("A", &[7][..], false), ("B", &[4][..], true)]);
    assert_eq!(info.outputs[0].shape, [2]);
    assert_eq!(info.scheduling, SchedulingKind::Dynamic);
}

#[test]
fn without_batching_shapes_are_complete() {
    let info = Server::default().with("top", |_| {}).read(&settings(), &metadata()).unwrap();
    assert_eq!(info.inputs[0].shape, [-1, -1]);
    assert_eq!(info.scheduling, SchedulingKind::None);
}

#[test]
fn an_input_without_metadata_is_refused() {
    let server =
        Server::default().with("top", |config| config.shape_tensors = vec!["X".to_owned()]);
    let failure = server.read(&settings(), &metadata()).expect_err("no such input");
    assert_eq!(
        failure.message,
        "error: failed to create model parser: no metadata found for input tensor X"
    );
}

#[test]
fn nested_ensembles_are_read_completely() {
    let server = Server::default()
        .with("top", |config| {
            config.ensemble_steps = vec![step("b"), step("a"), step("b"), ("c".to_owned(), 3)];
        })
        .with("a", |config| config.ensemble_steps = vec![step("d")])
        .with("b", |config| config.response_cache = true)
        .with("c", |_| {})
        .with("d", |config| config.dynamic_batching = true);
    let info = server.read(&settings(), &metadata()).unwrap();
    assert_eq!(info.scheduling, SchedulingKind::Ensemble);
    assert!(info.response_cache && !info.top_level_response_cache);
    let versioned = ComposingModel { version: "3".to_owned(), ..leaf("c") };
    let nested = ComposingModel { composing: vec![leaf("d")], ..leaf("a") };
    assert_eq!(info.composing, [nested, leaf("b"), versioned]);
}

#[test]
fn a_nested_sequence_model_makes_the_ensemble_a_sequence_model() {
    let server = Server::default()
        .with("top", |config| config.ensemble_steps = vec![step("a")])
        .with("a", |config| config.ensemble_steps = vec![step("b")])
        .with("b", |config| config.sequence_batching = true);
    let info = server.read(&settings(), &metadata()).unwrap();
    assert_eq!(info.scheduling, SchedulingKind::EnsembleSequence);
    let server = Server::default().with("top", |config| config.sequence_batching = true);
    let info = server.read(&settings(), &metadata()).unwrap();
    assert_eq!(info.scheduling, SchedulingKind::Sequence);
}

#[test]
fn bls_models_must_exist() {
    let mut settings = settings();
    settings.bls_composing_models = vec![("a".to_owned(), "2".to_owned())];
    let server = Server::default().with("top", |_| {});
    let failure = server.read(&settings, &metadata()).expect_err("no such model");
    assert_eq!(
        failure.message,
        "error: failed to create model parser: Request for unknown model: 'a' is not found"
    );
    let info = server.with("a", |_| {}).read(&settings, &metadata()).unwrap();
    assert_eq!(info.composing, [ComposingModel { version: "2".to_owned(), ..leaf("a") }]);
    assert_eq!(info.scheduling, SchedulingKind::Ensemble);
}

#[test]
fn a_recursive_ensemble_is_read_once() {
    let server = Server::default()
        .with("top", |config| config.ensemble_steps = vec![step("a")])
        .with("a", |config| config.ensemble_steps = vec![step("top"), step("a")]);
    let info = server.read(&settings(), &metadata()).unwrap();
    assert_eq!(info.composing, [leaf("a")]);
}
