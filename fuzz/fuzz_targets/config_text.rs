//! No `config.pbtxt` makes the parser, the defaults or the checks panic; and what they accept survives
//! the way through JSON and back.
#![no_main]

use galatea_config::{
    CheckContext, ModelConfig, NormalizeContext, normalize, parse_json, parse_text, to_json,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let raw = match parse_text(source) {
        Ok(raw) => raw,
        Err(error) => {
            error.render("config.pbtxt", source);
            return;
        }
    };
    parse_json(&to_json(&raw)).expect("our own JSON");
    let files = ["model.onnx".to_owned()];
    let context =
        NormalizeContext { directory_name: "m", version_files: &files, available_gpus: &[0] };
    if let Ok(config) = normalize(raw, &context) {
        let context =
            CheckContext { directory_name: "m", supports_gpus: true, available_gpus: &[0], ..Default::default() };
        let _ = ModelConfig::check(config, &context);
    }
});
