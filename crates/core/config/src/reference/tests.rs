//! The reference has every field of the schema and no other, and says of it what the server does.

use super::*;
use crate::{parse_text, testing::Host};

fn all_places() -> Vec<Place> {
    places(&schema::model_config().expect("the descriptor"))
}

#[test]
fn every_message_and_field_is_documented() {
    let places = all_places();
    for place in &places {
        let name = place.message_name();
        let section = SECTIONS.iter().find(|section| section.message == name);
        let section = section.unwrap_or_else(|| panic!("no section about {name}"));
        let told: Vec<&str> = section.fields.iter().map(|field| field.name).collect();
        let there: Vec<String> = place.message.fields().map(|f| f.name().to_owned()).collect();
        for field in &there {
            let entry = section.fields.iter().find(|entry| entry.name == field);
            assert!(entry.is_some_and(|e| !e.meaning.is_empty()), "no text about {name}.{field}");
        }
        assert_eq!(told.len(), there.len(), "{name}: {told:?}");
    }
    assert_eq!(SECTIONS.len(), places.len());
}

/// The page repeats each row of the table of warnings and adds no other.
#[test]
fn fields_without_effect_are_those_of_the_warning_table() {
    for place in all_places() {
        let section =
            SECTIONS.iter().find(|s| s.message == place.message_name()).expect("a section");
        for (field, path) in
            section.fields.iter().flat_map(|field| place.paths.iter().map(move |p| (field, p)))
        {
            let path = format!("{path}.{}", field.name);
            let path = path.trim_start_matches('.');
            let above: Vec<&str> = ancestors(path).chain([path]).collect();
            let rows = || above.iter().flat_map(|path| support::treatments(path));
            let is_by_table = field.here == FieldSupport::ByTable;
            assert!(!is_by_table || rows().next().is_some(), "{path} has no row");
            let is_always_idle = rows().any(|row| row.condition.is_empty());
            assert!(is_by_table || !is_always_idle, "{path} has a row and is said to work");
        }
    }
}

/// Fields that the checker refuses, each in the smallest configuration that has it.
const REFUSED: &[(&str, &str)] = &[
    (
        "ModelInput.is_shape_tensor",
        "input { name: 'x' data_type: TYPE_FP32 dims: 1 is_shape_tensor: true }",
    ),
    (
        "ModelInput.is_non_linear_format_io",
        "input { name: 'x' data_type: TYPE_FP32 dims: [ 1, 1, 1 ] is_non_linear_format_io: true }",
    ),
    (
        "ModelOutput.is_shape_tensor",
        "output { name: 'y' data_type: TYPE_FP32 dims: 1 is_shape_tensor: true }",
    ),
    (
        "ModelOutput.is_non_linear_format_io",
        "output { name: 'y' data_type: TYPE_FP32 dims: [ 1, 1, 1 ] is_non_linear_format_io: true }",
    ),
    ("ModelInstanceGroup.profile", "instance_group { profile: '0' }"),
];

#[test]
fn fields_documented_as_refused_are_refused() {
    let refused = |here| matches!(here, FieldSupport::Refused(_));
    let told: Vec<String> = SECTIONS
        .iter()
        .flat_map(|s| s.fields.iter().map(move |f| (s.message, f)))
        .filter(|(_, field)| refused(field.here))
        .map(|(message, field)| format!("{message}.{}", field.name))
        .collect();
    assert_eq!(told, REFUSED.iter().map(|(field, _)| *field).collect::<Vec<_>>());
    for (field, text) in REFUSED {
        let raw = parse_text(&format!("backend: 'onnxruntime' {text}")).expect("the text");
        let error = Host::default().check(raw).expect_err(field);
        assert!(error.message().contains("TensorRT"), "{field}: {error}");
    }
}

/// The server fills in the defaults that the page documents.
#[test]
fn documented_defaults_are_those_filled_in() {
    let text = "backend: 'onnxruntime' max_batch_size: 6 dynamic_batching {}";
    let config = Host::default().configure(text).expect("a configuration");
    let crate::Scheduling::Dynamic(dynamic) = config.scheduling() else { panic!("no batching") };
    assert_eq!(dynamic.preferred_batch_sizes, [6]);
    assert_eq!(config.instance_groups()[0].count, 2);
    assert_eq!(config.instance_groups()[0].name, "m");
    assert_eq!(*config.version_policy(), crate::VersionPolicy::Latest(1));
    assert_eq!(config.default_model_filename(), "model.onnx");
}

#[test]
fn the_reference_page_has_the_expected_rows() {
    let page = reference();
    let row = |field: &str, section: &str| {
        let (_, rest) = page.split_once(&format!("\n## {section}\n")).expect("the section");
        let line = rest.lines().find(|line| line.starts_with(&format!("| `{field}` |")));
        line.expect("the field").rsplit(" | ").next().expect("a cell").to_owned()
    };
    assert_eq!(
        row("max_queue_size", "`dynamic_batching.default_queue_policy`"),
        "Requests that may wait; the next one is answered 503 |"
    );
    let same = "## `dynamic_batching.default_queue_policy`\n\nThe same: `dynamic_batching.priority_queue_policy`.\n";
    assert!(page.contains(same));
    assert!(page.contains(
        "## `optimization.cuda.graph_spec`\n\nAll fields here: as `optimization.cuda`.\n"
    ));
    assert_eq!(row("response_cache", "The model"), " |");
    assert!(
        row("version_policy", "The model").is_empty()
            || row("name", "The model").starts_with("works")
    );
    assert!(row("level", "`optimization.graph`").starts_with("**warning** other than 0"));
    assert!(row("profile", "`instance_group`").starts_with("**refused**: profiles"));
}
