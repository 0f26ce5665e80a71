//! Model configurations, as text and as JSON.

use std::sync::LazyLock;

use galatea_config::{
    CheckContext, ConfigSource, Diagnostic, ModelConfig, NormalizeContext, RawModelConfig,
    normalize, parse_json, parse_text, plain, to_json, to_text,
};

use crate::memory::{Bound, bounded};

/// A message of the configuration is some hundred bytes long, and two bytes of text are enough for one.
const BOUND: Bound = Bound { per_byte: 512, base: 256 << 10 };

/// What the first use of the readers leaves in memory.
static SCHEMA: LazyLock<()> = LazyLock::new(|| drop(to_json(&parse_text("").expect("empty"))));

/// No `config.pbtxt` makes the parser, the defaults or the checks panic; and what they accept survives the way through
/// JSON and back.
pub fn text(data: &[u8]) {
    let Ok(source) = str::from_utf8(data) else { return };
    LazyLock::force(&SCHEMA);
    bounded(source.len(), BOUND, || match parse_text(source) {
        Ok(raw) => exercise(raw),
        Err(error) => told(source, error.into_diagnostic("config.pbtxt", source)),
    });
}

/// The same of a configuration in JSON.
pub fn json(data: &[u8]) {
    let Ok(source) = str::from_utf8(data) else { return };
    LazyLock::force(&SCHEMA);
    bounded(source.len(), BOUND, || {
        if let Ok(raw) = parse_json(source) {
            exercise(raw);
        }
    });
}

/// What ends the reading is the first of all mistakes of the text.
fn told(source: &str, first: Diagnostic) {
    first.render(plain);
    let mistakes = ConfigSource::text("config.pbtxt", source).mistakes();
    assert_eq!(mistakes.first().map(|found| &found.text), Some(&first.text));
    assert!(mistakes.len() <= 51);
}

fn exercise(raw: RawModelConfig) {
    let json = to_json(&raw);
    let read = parse_json(&json).expect("our own JSON");
    assert_eq!(to_json(&read), json);
    let written = to_text(&raw);
    if let Ok(read) = parse_text(&written) {
        assert_eq!(to_text(&read), written);
    } else {
        assert!(written.len() > 1 << 20, "our own text: {written}");
    }
    let files = ["model.onnx".to_owned()];
    let context =
        NormalizeContext { directory_name: "m", version_files: &files, available_gpus: &[0] };
    if let Ok(config) = normalize(raw, &context) {
        let context = CheckContext {
            directory_name: "m",
            supports_gpus: true,
            available_gpus: &[0],
            ..Default::default()
        };
        let _ = ModelConfig::check(config, &context);
    }
}
