//! Mistakes that people make in a `config.pbtxt`: text in, place, sentence and advice out. The table is `table.txt`; with
//! `UPDATE_MISTAKES=1` the test writes what it is told now, to be read before it is committed.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{fmt::Write, fs, path::Path, sync::Arc};

use galatea_config::{
    CheckContext, ConfigSource, Diagnostic, ModelConfig, NormalizeContext, normalize,
};
use galatea_types::{Error, Result};

mod ensembles;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes/table.txt");

/// Between the text of a configuration and what it is told.
const ANSWER: &str = "-> ";

/// What is read, completed and checked, as a load does it.
fn checked(source: &ConfigSource) -> Result<ModelConfig> {
    let files = ["model.py".to_owned()];
    let names =
        NormalizeContext { directory_name: "m", version_files: &files, available_gpus: &[] };
    let context = CheckContext {
        directory_name: "m",
        supports_gpus: true,
        available_gpus: &[],
        min_compute_capability: 6.0,
        ..CheckContext::default()
    };
    let config = ModelConfig::check(normalize(source.parse()?, &names)?, &context)?;
    Ok(config)
}

fn told(text: &str) -> String {
    let source = ConfigSource::text("m/config.pbtxt", text);
    match checked(&source).map_err(|error| source.locate(error)) {
        Ok(_) => "nothing is wrong".to_owned(),
        Err(error) => finding(&error).one_line(),
    }
}

fn finding(error: &Error) -> Diagnostic {
    Diagnostic::of(error).expect("a finding behind every error").clone()
}

/// What most configurations need.
const TENSORS: &str = "input { name: \"A\" data_type: TYPE_FP32 dims: 4 } \
                       output { name: \"B\" data_type: TYPE_FP32 dims: 4 }";

/// `$AB` is an input A and an output B; `\n`, `\r`, `\t` and `\u{feff}` in the table are what they stand for.
fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n")
        .replace("\\r", "\r")
        .replace("\\t", "\t")
        .replace("\\u{feff}", "\u{feff}")
        .replace("$AB", TENSORS)
}

#[test]
fn every_mistake_has_a_place_and_advice() {
    let table = fs::read_to_string(TABLE).expect("the table");
    let mut now = String::new();
    let mut count = 0;
    for part in table.split("\n\n").map(str::trim_end).filter(|part| !part.is_empty()) {
        let Some(text) =
            part.lines().find(|line| !line.starts_with("# ") && !line.starts_with(ANSWER))
        else {
            let _ = write!(now, "{part}\n\n");
            continue;
        };
        count += 1;
        let told = told(&unescaped(text));
        for comment in part.lines().filter(|line| line.starts_with("# ")) {
            let _ = writeln!(now, "{comment}");
        }
        let _ = write!(now, "{text}\n{ANSWER}{told}\n\n");
    }
    if std::env::var_os("UPDATE_MISTAKES").is_some() {
        fs::write(Path::new(TABLE), now.trim_end().to_owned() + "\n").expect("written");
    }
    assert!(count >= 180, "{count} mistakes");
    assert!(!now.contains("nothing is wrong"));
    assert_eq!(now.trim_end(), table.trim_end());
}

#[test]
fn every_mistake_can_be_rendered() {
    let table = fs::read_to_string(TABLE).expect("the table");
    for text in table.lines().filter(|line| !line.starts_with(['#', '-']) && !line.is_empty()) {
        let text = unescaped(text);
        let source = ConfigSource::text("m/config.pbtxt", text.as_str());
        let Err(error) = checked(&source) else { continue };
        let located = source.locate(error);
        let found = finding(&located);
        let rendered = found.render(galatea_config::plain);
        let lines: Vec<_> = rendered.lines().collect();
        assert_eq!(
            found.line().is_some(),
            lines.iter().any(|line| line.ends_with('^')),
            "{rendered}"
        );
        assert!(located.message().contains(&found.text), "{}", located.message());
        assert!(found.text.lines().count() == 1 && found.advice.iter().all(|a| !a.contains('\n')));
    }
}

#[test]
fn all_mistakes_of_a_configuration_are_reported_at_once() {
    let text = "name: \"other\" backend: \"python\" max_batch_size: -1\n\
                input [ { name: \"A\" dims: 1 },\n { name: \"B\" data_type: TYPE_FP32 dims: 0 } ]\n\
                output { data_type: TYPE_FP32 dims: 1 }\n\
                instance_group { kind: KIND_GPU }\nmodel_metrics { metric_control {} }\n";
    let source = ConfigSource::text("m/config.pbtxt", text);
    let names = NormalizeContext { directory_name: "m", ..NormalizeContext::default() };
    let config = normalize(source.parse().expect("text"), &names).expect("defaults");
    let context = CheckContext { directory_name: "m", ..CheckContext::default() };
    let places = |is_complete| -> Vec<String> {
        let mistakes = config.mistakes(&context, is_complete).into_iter();
        let located = mistakes.map(|found| source.locate_diagnostic(found));
        located.map(|found| found.place.expect("a place").to_string()).collect()
    };
    let of = |rest: &[&str]| -> Vec<String> {
        rest.iter().map(|at| format!("m/config.pbtxt:{at}")).collect()
    };
    assert_eq!(places(true), of(&["1:7", "1:49", "6:17", "5:24", "2:9", "3:41", "4:1"]));
    // A backend could still say the type of A.
    assert_eq!(places(false), of(&["1:7", "1:49", "6:17", "5:24", "3:41", "4:1"]));
}

#[test]
fn all_mistakes_of_an_ensemble_are_reported_at_once() {
    let places = |text: &str| -> Vec<String> {
        let source = ConfigSource::text("m/config.pbtxt", text);
        let names = NormalizeContext { directory_name: "m", ..NormalizeContext::default() };
        let config = normalize(source.parse().expect("text"), &names).expect("defaults");
        let context = CheckContext { directory_name: "m", ..CheckContext::default() };
        let mistakes = config.mistakes(&context, true).into_iter();
        let located = mistakes.map(|found| source.locate_diagnostic(found));
        located.map(|found| found.one_line()).collect()
    };
    let io = "platform: \"ensemble\"\ninput [ { name: \"A\" data_type: TYPE_FP32 dims: 1 } ]\n\
              output [ { name: \"Z\" data_type: TYPE_FP32 dims: 1 }, { name: \"Y\" data_type: TYPE_FP32 dims: 1 } ]\n";
    let step = |input: &str, outputs: &[&str]| {
        let outputs = outputs
            .iter()
            .map(|name| format!("output_map {{ key: \"{name}\" value: \"{name}\" }}"));
        format!(
            "ensemble_scheduling {{ step [ {{ model_name: \"s\" input_map {{ key: \"i\" value: \"{input}\" }} {} }} ] }}",
            outputs.collect::<String>()
        )
    };
    let of = |found: &[&str]| -> Vec<String> {
        found.iter().map(|line| format!("m/config.pbtxt:{line}")).collect()
    };
    let begins = |found: Vec<String>, expected: &[&str]| {
        let expected = of(expected);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    };
    begins(places(&format!("{io}{}", step("A", &["Z", "Y"]))), &[]);
    // That its outputs cannot be written is no mistake of its own.
    begins(
        places(&format!("{io}{}", step("B", &["Z", "X"]))),
        &["2:17: ensemble input 'A'", "3:62: ensemble output 'Y'"],
    );
    begins(
        places(&format!("{io}{}", step("A", &["Z", "Y", "V", "W"]))),
        &["4:179: ensemble tensor 'V'", "4:213: ensemble tensor 'W'"],
    );
    let extra = "instance_group { }\noptimization { }\n";
    begins(
        places(&format!("{io}{extra}{}", step("A", &["Z", "Y"]))),
        &["4:1: instance group", "5:1: optimization"],
    );
}

/// A model of a step, or the ensemble itself.
fn model(text: &str) -> Arc<ModelConfig> {
    let raw = ConfigSource::text("m", text).parse().expect("text");
    let name = raw.name.clone();
    let names = NormalizeContext { directory_name: &name, ..NormalizeContext::default() };
    let context = CheckContext { directory_name: &name, ..CheckContext::default() };
    let config = normalize(raw, &names).expect("defaults");
    Arc::new(ModelConfig::check(config, &context).expect("a right configuration"))
}
