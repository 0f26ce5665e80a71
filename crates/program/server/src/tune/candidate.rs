//! The configurations to measure: the model's own, and the same with another engine.

use galatea_config::{RawModelConfig, backend_for_platform, parse_text, to_text};

/// The backends whose models are compared.
pub const ONNX_RUNTIME: &str = "onnxruntime";
pub const OPENVINO: &str = "openvino";

/// Instances of an ONNX model on the CPU without a number in its configuration, as in Triton.
const USUAL_INSTANCES: &str = "instance_group { count: 2 kind: KIND_CPU }";

/// Parameters that set the precision of OpenVINO.
const PRECISIONS: [&str; 3] = ["HINT_BF16", "ENFORCE_BF16", "INFERENCE_PRECISION_HINT"];

/// An engine, and the configuration with which it serves the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name in the table.
    pub name: &'static str,
    pub config: RawModelConfig,
    /// The fields that differ from the model's configuration; empty for the configured engine.
    pub lines: String,
    pub is_bf16: bool,
}

impl Candidate {
    pub fn is_configured(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Returns the backend of a configuration, or the one that runs `file`.
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

/// Returns all engines that can run `file`, ONNX Runtime first, with which the others are compared. `completed`: the
/// configuration with the additions of the configured engine. The others get them too, or their shapes would differ.
pub fn candidates(
    config: &RawModelConfig,
    completed: &RawModelConfig,
    file: &str,
    allows_bf16: bool,
) -> Vec<Candidate> {
    let backend = backend_of(config, file);
    let is_bf16 = backend == OPENVINO && computes_in_bf16(config);
    // The default of ONNX Runtime is two instances, and that of OpenVINO is one, which is faster alone.
    let has_more = backend == ONNX_RUNTIME && config.instance_group.is_empty();
    let is_wanted = |choice: &EngineChoice| {
        (choice.backend != ONNX_RUNTIME || file.ends_with(".onnx"))
            && (has_more || choice.instances.is_empty())
            && (allows_bf16 || is_bf16 || !choice.is_bf16)
    };
    let candidate = |choice: EngineChoice| {
        let is_alike = choice.backend == backend && choice.is_bf16 == is_bf16;
        if !is_alike || !choice.instances.is_empty() {
            return other(config, completed, file, &choice);
        }
        let (config, lines) = (config.clone(), String::new());
        Candidate { name: choice.name, config, lines, is_bf16 }
    };
    CHOICES.into_iter().filter(is_wanted).map(candidate).collect()
}

fn computes_in_bf16(config: &RawModelConfig) -> bool {
    PRECISIONS.iter().any(|key| {
        let value =
            config.parameters.get(*key).map(|value| value.string_value.to_ascii_lowercase());
        matches!(value.as_deref(), Some("yes" | "bf16"))
    })
}

/// An engine, and its settings.
struct EngineChoice {
    name: &'static str,
    backend: &'static str,
    is_bf16: bool,
    /// The configuration's field for instances; empty: unchanged.
    instances: &'static str,
}

const CHOICES: [EngineChoice; 5] = [
    choice("ONNX Runtime", ONNX_RUNTIME, false, ""),
    choice("OpenVINO f32", OPENVINO, false, ""),
    choice("OpenVINO f32, 2 instances", OPENVINO, false, USUAL_INSTANCES),
    choice("OpenVINO bf16", OPENVINO, true, ""),
    choice("OpenVINO bf16, 2 instances", OPENVINO, true, USUAL_INSTANCES),
];

const fn choice(
    name: &'static str,
    backend: &'static str,
    is_bf16: bool,
    instances: &'static str,
) -> EngineChoice {
    EngineChoice { name, backend, is_bf16, instances }
}

fn other(
    config: &RawModelConfig,
    completed: &RawModelConfig,
    file: &str,
    choice: &EngineChoice,
) -> Candidate {
    let mut whole = config.clone();
    if let Some(optimization) = &mut whole.optimization {
        // Only ONNX Runtime has these.
        optimization.execution_accelerators = None;
        optimization.graph = None;
    }
    PRECISIONS.iter().for_each(|key| drop(whole.parameters.remove(*key)));
    let mut lines = RawModelConfig::default();
    for written in [&mut whole, &mut lines] {
        choose(written, file, choice);
        complete(written, config, completed);
    }
    Candidate { name: choice.name, config: whole, lines: to_text(&lines), is_bf16: choice.is_bf16 }
}

fn choose(config: &mut RawModelConfig, file: &str, choice: &EngineChoice) {
    config.platform.clear();
    choice.backend.clone_into(&mut config.backend);
    file.clone_into(&mut config.default_model_filename);
    if let Ok(instances) = parse_text(choice.instances)
        && !instances.instance_group.is_empty()
    {
        config.instance_group = instances.instance_group;
    }
    if choice.is_bf16 {
        let value = config.parameters.entry("HINT_BF16".to_owned()).or_default();
        "YES".clone_into(&mut value.string_value);
    }
}

/// Adds the fields that `config` leaves out.
fn complete(written: &mut RawModelConfig, config: &RawModelConfig, completed: &RawModelConfig) {
    if config.max_batch_size == 0 {
        written.max_batch_size = completed.max_batch_size;
    }
    if config.input.is_empty() {
        written.input.clone_from(&completed.input);
    }
    if config.output.is_empty() {
        written.output.clone_from(&completed.output);
    }
    if config.scheduling_choice.is_none() {
        written.scheduling_choice.clone_from(&completed.scheduling_choice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, file: &str, allows_bf16: bool) -> Vec<(&'static str, String)> {
        let config = parse_text(text).expect("a configuration");
        let found = candidates(&config, &config, file, allows_bf16);
        found.into_iter().map(|c| (c.name, c.lines)).collect()
    }

    const OPENVINO_LINES: &str = "backend: \"openvino\"\ndefault_model_filename: \"model.onnx\"\n";

    #[test]
    fn an_onnx_model_has_its_candidate_engines() {
        let (own, openvino) = (String::new(), sorted(OPENVINO_LINES));
        for text in ["", "backend: 'onnxruntime'", "platform: 'onnxruntime_onnx' max_batch_size: 8"]
        {
            let found = found(text, "model.onnx", false);
            let found: Vec<_> = found.into_iter().map(|(name, l)| (name, sorted(&l))).collect();
            let expected = [("ONNX Runtime", own.clone()), ("OpenVINO f32", openvino.clone())];
            assert_eq!(found[..2], expected, "{text}");
            assert_eq!(found.len(), 3);
            assert_eq!(found[2].0, "OpenVINO f32, 2 instances");
            assert!(found[2].1.contains("count: 2"), "{}", found[2].1);
        }
        let with_bf16 = found("", "model.onnx", true);
        assert_eq!(with_bf16.len(), 5);
        assert!(with_bf16[3].1.contains("HINT_BF16") && with_bf16[3].1.contains("YES"));
        let one = found("instance_group { count: 1 }", "model.onnx", true);
        assert_eq!(one.len(), 3, "as many as are configured");
    }

    fn sorted(lines: &str) -> String {
        let mut lines: Vec<&str> = lines.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    #[test]
    fn an_openvino_model_has_its_candidate_engines() {
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
    fn settings_of_the_other_engine_are_removed() {
        let text = "platform: 'onnxruntime_onnx' optimization { graph { level: 1 } execution_accelerators {
            cpu_execution_accelerator { name: 'openvino' } } } instance_group { count: 3 }";
        let config = parse_text(text).expect("a configuration");
        let openvino = &candidates(&config, &config, "model.onnx", false)[1].config;
        let text = to_text(openvino);
        assert!(
            !text.contains("platform") && !text.contains("accelerator") && !text.contains("graph")
        );
        assert_eq!(openvino.instance_group, config.instance_group);
    }

    #[test]
    fn settings_of_the_configured_engine_are_carried_over() {
        let config = parse_text("instance_group { count: 2 }").expect("a configuration");
        let completed = "max_batch_size: 4 dynamic_batching {} input { name: 'x' data_type: TYPE_FP32 dims: 3 } \
                         output { name: 'y' data_type: TYPE_FP32 dims: 3 } instance_group { count: 9 }";
        let completed = parse_text(completed).expect("a configuration");
        let found = candidates(&config, &completed, "model.onnx", false);
        assert_eq!((&found[0].config, found[0].lines.as_str()), (&config, ""));
        let (openvino, lines) = (&found[1].config, &found[1].lines);
        assert_eq!((openvino.max_batch_size, openvino.instance_group[0].count), (4, 2));
        assert!(
            lines.contains("max_batch_size: 4") && lines.contains("dynamic_batching"),
            "{lines}"
        );
        let own = parse_text("max_batch_size: 2 input { name: 'x' data_type: TYPE_FP32 dims: 3 }");
        let found = candidates(&own.expect("a configuration"), &completed, "model.onnx", false);
        assert_eq!(found[1].config.max_batch_size, 2);
        assert!(!found[1].lines.contains("input") && found[1].lines.contains("output"));
    }
}
