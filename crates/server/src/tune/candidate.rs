//! The configurations that are measured: the model's own, and the same with another engine in it.

use galatea_config::{RawModelConfig, backend_for_platform, to_text};

/// The backends whose models are compared.
pub const ONNX_RUNTIME: &str = "onnxruntime";
/// The other one.
pub const OPENVINO: &str = "openvino";

/// Parameters that choose what OpenVINO computes in.
const PRECISIONS: [&str; 3] = ["HINT_BF16", "ENFORCE_BF16", "INFERENCE_PRECISION_HINT"];

/// An engine, and the configuration with which it serves the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// As the table has it.
    pub name: &'static str,
    /// The whole configuration.
    pub config: RawModelConfig,
    /// The fields that make the difference; empty for the one that is configured.
    pub lines: String,
    /// Whether it computes in bfloat16.
    pub is_bf16: bool,
}

impl Candidate {
    /// Whether the model is configured so already.
    pub fn is_configured(&self) -> bool {
        self.lines.is_empty()
    }
}

/// The backend that a configuration names, or that runs `file`.
pub fn backend_of(config: &RawModelConfig, file: &str) -> String {
    let named = || backend_for_platform(&config.platform).unwrap_or(&config.platform);
    match (config.backend.is_empty(), config.platform.is_empty()) {
        (false, _) => config.backend.clone(),
        (true, false) => named().to_owned(),
        (true, true) if file.ends_with(".onnx") => ONNX_RUNTIME.to_owned(),
        (true, true) if file.ends_with(".xml") => OPENVINO.to_owned(),
        (true, true) => String::new(),
    }
}

/// All that can run `file`, ONNX Runtime first: it is what others are compared with.
pub fn candidates(config: &RawModelConfig, file: &str, allows_bf16: bool) -> Vec<Candidate> {
    let backend = backend_of(config, file);
    let is_bf16 = backend == OPENVINO && computes_in_bf16(config);
    let own = |name, is_bf16| {
        let config = config.clone();
        Candidate { name, config, lines: String::new(), is_bf16 }
    };
    let mut found = Vec::new();
    if file.ends_with(".onnx") {
        found.push(match backend == ONNX_RUNTIME {
            true => own("ONNX Runtime", false),
            false => other("ONNX Runtime", config, file, ONNX_RUNTIME, false),
        });
    }
    found.push(match backend == OPENVINO && !is_bf16 {
        true => own("OpenVINO f32", false),
        false => other("OpenVINO f32", config, file, OPENVINO, false),
    });
    if is_bf16 {
        found.push(own("OpenVINO bf16", true));
    } else if allows_bf16 {
        found.push(other("OpenVINO bf16", config, file, OPENVINO, true));
    }
    found
}

fn computes_in_bf16(config: &RawModelConfig) -> bool {
    PRECISIONS.iter().any(|key| {
        let value =
            config.parameters.get(*key).map(|value| value.string_value.to_ascii_lowercase());
        matches!(value.as_deref(), Some("yes" | "bf16"))
    })
}

fn other(
    name: &'static str,
    config: &RawModelConfig,
    file: &str,
    backend: &str,
    is_bf16: bool,
) -> Candidate {
    let mut config = config.clone();
    if let Some(optimization) = &mut config.optimization {
        // Of ONNX Runtime alone.
        optimization.execution_accelerators = None;
        optimization.graph = None;
    }
    PRECISIONS.iter().for_each(|key| drop(config.parameters.remove(*key)));
    choose(&mut config, file, backend, is_bf16);
    let mut lines = RawModelConfig::default();
    choose(&mut lines, file, backend, is_bf16);
    Candidate { name, config, lines: to_text(&lines), is_bf16 }
}

fn choose(config: &mut RawModelConfig, file: &str, backend: &str, is_bf16: bool) {
    config.platform.clear();
    backend.clone_into(&mut config.backend);
    file.clone_into(&mut config.default_model_filename);
    if is_bf16 {
        let value = config.parameters.entry("HINT_BF16".to_owned()).or_default();
        "YES".clone_into(&mut value.string_value);
    }
}

#[cfg(test)]
mod tests {
    use galatea_config::parse_text;

    use super::*;

    fn found(text: &str, file: &str, allows_bf16: bool) -> Vec<(&'static str, String)> {
        let config = parse_text(text).expect("a configuration");
        let found = candidates(&config, file, allows_bf16);
        found.into_iter().map(|c| (c.name, c.lines)).collect()
    }

    const OPENVINO_LINES: &str = "backend: \"openvino\"\ndefault_model_filename: \"model.onnx\"\n";

    #[test]
    fn engines_of_an_onnx_model() {
        let (own, openvino) = (String::new(), sorted(OPENVINO_LINES));
        for text in ["", "backend: 'onnxruntime'", "platform: 'onnxruntime_onnx' max_batch_size: 8"]
        {
            let found = found(text, "model.onnx", false);
            let found: Vec<_> = found.into_iter().map(|(name, l)| (name, sorted(&l))).collect();
            let expected = [("ONNX Runtime", own.clone()), ("OpenVINO f32", openvino.clone())];
            assert_eq!(found, expected, "{text}");
        }
        let with_bf16 = found("", "model.onnx", true);
        assert_eq!(with_bf16.len(), 3);
        assert!(with_bf16[2].1.contains("HINT_BF16") && with_bf16[2].1.contains("YES"));
    }

    fn sorted(lines: &str) -> String {
        let mut lines: Vec<&str> = lines.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    #[test]
    fn engines_of_a_model_of_openvino() {
        let names = |text, file| {
            let found = found(text, file, false);
            found.into_iter().map(|(name, lines)| (name, lines.is_empty())).collect::<Vec<_>>()
        };
        let onnx = "backend: 'openvino' default_model_filename: 'model.onnx'";
        assert_eq!(names(onnx, "model.onnx"), [("ONNX Runtime", false), ("OpenVINO f32", true)]);
        assert_eq!(names("backend: 'openvino'", "model.xml"), [("OpenVINO f32", true)]);
        let bf16 =
            "backend: 'openvino' parameters { key: 'HINT_BF16' value { string_value: 'YES' } }";
        assert_eq!(names(bf16, "model.xml"), [("OpenVINO f32", false), ("OpenVINO bf16", true)]);
    }

    #[test]
    fn what_belongs_to_the_other_engine_goes() {
        let text = "platform: 'onnxruntime_onnx' optimization { graph { level: 1 } execution_accelerators {
            cpu_execution_accelerator { name: 'openvino' } } } instance_group { count: 3 }";
        let config = parse_text(text).expect("a configuration");
        let openvino = &candidates(&config, "model.onnx", false)[1].config;
        let text = to_text(openvino);
        assert!(
            !text.contains("platform") && !text.contains("accelerator") && !text.contains("graph")
        );
        assert_eq!(openvino.instance_group, config.instance_group);
    }
}
