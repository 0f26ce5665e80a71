//! Settings that do not suit a model.

use galatea_perf_types::{
    model::SchedulingKind,
    settings::{DataSource, Range},
};
use galatea_types::DataType;

use super::{super::tests, *};

fn model() -> ModelInfo {
    tests::model(&[(DataType::Int32, &[1])])
}

fn settings() -> Settings {
    tests::settings(DataSource::Random)
}

#[track_caller]
fn assert_refused(settings: &Settings, model: &ModelInfo, text: &str) {
    assert_eq!(check_settings(settings, model).expect_err(text).message, text);
}

#[test]
fn the_batch_size_must_suit_the_model() {
    let mut settings = settings();
    settings.batch_size = 2;
    let mut model = model();
    check_settings(&settings, &model).unwrap();
    model.scheduling = SchedulingKind::EnsembleSequence;
    let text = "can not specify batch size > 1 when using a sequence model";
    assert_refused(&settings, &model, text);
    model.max_batch_size = 0;
    let text = "can not specify batch size > 1 as the model does not support batching";
    assert_refused(&settings, &model, text);
}

#[test]
fn decoupled_models_need_streaming() {
    let mut settings = settings();
    let mut model = model();
    model.decoupled = true;
    assert_refused(
        &settings,
        &model,
        "Decoupled models must be run with `--async` and `--streaming` and either `-i grpc` or \
         `--service-kind=triton_c_api`",
    );
    settings.calls.streaming = true;
    check_settings(&settings, &model).unwrap();
    settings.calls.forced_sync = true;
    assert_refused(&settings, &model, "can not use streaming with synchronous API");
}

#[test]
fn the_id_range_must_suffice_for_the_sequences() {
    let mut settings = settings();
    settings.sequences.id_count = Some(3);
    settings.load = Load::Concurrency(Range { start: 1, end: 4, step: 1 });
    let text = "sequence id range specified is smaller than the maximum possible concurrency, \
                sequence id collision may occur.";
    assert_refused(&settings, &model(), text);
    settings.load = Load::CustomIntervals(Vec::new());
    let text = "sequence id range specified is smaller than the maximum possible number of \
                sequences, sequence id collision may occur.";
    assert_refused(&settings, &model(), text);
    settings.sequences.id_count = Some(4);
    check_settings(&settings, &model()).unwrap();
}

#[test]
fn an_open_ended_search_needs_synchronous_calls() {
    let mut settings = settings();
    settings.load = Load::Concurrency(Range { start: 1, end: 0, step: 1 });
    let mut model = model();
    check_settings(&settings, &model).unwrap();
    model.scheduling = SchedulingKind::Sequence;
    assert_refused(
        &settings,
        &model,
        "The 'end' concurrency can not be 0 for sequence models when using asynchronous API.",
    );
    settings.calls.forced_sync = true;
    check_settings(&settings, &model).unwrap();
}
