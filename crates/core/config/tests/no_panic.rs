//! No input makes the parsers, the defaults or the checks panic; what they accept survives JSON and back.
//! The fuzz targets `config_text` and `config_json` look for the same with more time.
#![allow(clippy::expect_used)] // a test may stop where it stands

use galatea_config::{
    CheckContext, ConfigSource, Diagnostic, FieldPath, ModelConfig, NormalizeContext, normalize,
    parse_json, parse_text, plain, to_json,
};
use proptest::prelude::*;

const SEEDS: [&str; 5] = [
    include_str!("../testdata/seeds/base_model_gpu.pbtxt"),
    include_str!("../testdata/seeds/flair-ner-english-fast-ensemble.pbtxt"),
    include_str!("../testdata/triton/dynamic.pbtxt"),
    include_str!("../testdata/triton/sequence.pbtxt"),
    include_str!("../testdata/triton/ensemble.pbtxt"),
];

/// Pieces the format gives a meaning to.
const PIECES: [&str; 32] = [
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ":",
    ",",
    ";",
    "#",
    "\n",
    "\"",
    "'",
    "\\",
    "-1",
    "0",
    "0x",
    "1e999",
    "inf",
    "9223372036854775808",
    "input",
    "dims",
    "reshape",
    "shape",
    "name",
    "key",
    "value",
    "\"\\u005c\\",
    "TYPE_FP32",
    "99",
    "é",
    "\u{feff}",
];

fn exercise(source: &str) {
    let raw = match parse_text(source) {
        Ok(raw) => raw,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1);
            assert!(error.line <= source.split('\n').count());
            let found = error.into_diagnostic("config.pbtxt", source);
            assert!(found.render(plain).len() < 2000);
            return;
        }
    };
    let asked = ["input.dims", "parameters", "dynamic_batching.preferred_batch_size", "nothing"];
    let text = ConfigSource::text("m/config.pbtxt", source);
    for field in asked {
        let place = text.place(&FieldPath::from(field)).expect("the file at least");
        let lines = source.split('\n').count();
        assert!(place.position.is_none_or(|at| at.line <= lines && at.column >= 1), "{place}");
    }
    let json = to_json(&raw);
    let read = parse_json(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(to_json(&read), json);
    let files = ["model.onnx".to_owned()];
    let context =
        NormalizeContext { directory_name: "m", version_files: &files, available_gpus: &[0] };
    if let Ok(config) = normalize(raw, &context) {
        let name = config.raw.name.clone();
        let context = CheckContext {
            directory_name: &name,
            supports_gpus: true,
            available_gpus: &[0],
            ..Default::default()
        };
        for found in config.mistakes(&context, true) {
            assert!(text.locate_diagnostic(found).render(plain).len() < 20_000);
        }
        if let Err(error) = ModelConfig::check(config, &context) {
            Diagnostic::of(&text.locate(error)).expect("a finding behind every error");
        }
    }
}

/// One edit of a text: at a place given as a share of its length, take some characters out and put a piece in.
fn edited(source: &str, edits: &[(f64, usize, usize)]) -> String {
    let mut chars = source.chars().collect::<Vec<_>>();
    for &(share, removed, piece) in edits {
        let at = (share * chars.len() as f64) as usize;
        let end = (at + removed).min(chars.len());
        chars.splice(at..end, PIECES[piece].chars());
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arbitrary_text_causes_no_panic(source in any::<String>()) {
        exercise(&source);
    }

    #[test]
    fn arbitrary_token_sequences_cause_no_panic(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
        let source = pieces.iter().map(|&p| PIECES[p]).collect::<Vec<_>>();
        exercise(&source.concat());
        exercise(&source.join(" "));
    }

    #[test]
    fn edited_configurations_cause_no_panic(
        seed in 0..SEEDS.len(),
        edits in prop::collection::vec((0.0..1.0, 0_usize..8, 0..PIECES.len()), 1..6),
    ) {
        exercise(&edited(SEEDS[seed], &edits));
    }

    #[test]
    fn edited_json_causes_no_panic(
        seed in 0..SEEDS.len(),
        edits in prop::collection::vec((0.0..1.0, 0_usize..8, 0..PIECES.len()), 1..6),
    ) {
        let json = to_json(&parse_text(SEEDS[seed]).unwrap());
        if let Ok(raw) = parse_json(&edited(&json, &edits)) {
            let json = to_json(&raw);
            prop_assert_eq!(to_json(&parse_json(&json).unwrap()), json);
        }
    }
}
