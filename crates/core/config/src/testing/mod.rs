//! Checked configurations for the tests of other crates, made from text by the same steps as in the server.
//!
//! Nothing else makes a [`ModelConfig`], so no test uses a state that no model can have.

mod places;

use galatea_types::{DataType, Result, Shape};

use crate::{
    CheckContext, ModelConfig, NormalizeContext, RawModelConfig, TensorSpec, normalize, parse_text,
};

pub use self::places::without_places;

/// The host that completes and checks a configuration. Without GPUs and files by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host<'a> {
    /// Names in the version folder, which may decide the backend.
    pub version_files: &'a [&'a str],
    /// Indices of the GPUs. An instance group gets them only if the configuration names them.
    pub gpus: &'a [u32],
}

impl Host<'_> {
    /// Makes the configuration from the text of a `config.pbtxt`. Without a name in the text the model is `m`; its folder has the
    /// same name.
    ///
    /// # Errors
    /// The mistake in the text.
    pub fn configure(&self, text: &str) -> Result<ModelConfig> {
        self.check(parse_text(text)?)
    }

    /// Makes the configuration from a message.
    ///
    /// # Errors
    /// The mistake in the message.
    pub fn check(&self, mut raw: RawModelConfig) -> Result<ModelConfig> {
        if raw.name.is_empty() {
            raw.name = "m".to_owned();
        }
        let name = raw.name.clone();
        let version_files: Vec<_> = self.version_files.iter().map(|f| (*f).to_owned()).collect();
        let context = NormalizeContext {
            directory_name: &name,
            version_files: &version_files,
            available_gpus: &[],
        };
        let normalized = normalize(raw, &context)?;
        let context = CheckContext {
            directory_name: &name,
            supports_gpus: !self.gpus.is_empty(),
            available_gpus: self.gpus,
            ..Default::default()
        };
        ModelConfig::check(normalized, &context)
    }
}

/// Makes the configuration from the text of a `config.pbtxt`, on a host without GPUs.
///
/// # Panics
/// When the text is wrong, with the mistake.
#[track_caller]
pub fn model_config(text: &str) -> ModelConfig {
    or_panic(Host::default().configure(text))
}

/// Returns the configuration with its message changed and all checks repeated.
///
/// # Panics
/// When the checks refuse the changed configuration.
#[track_caller]
pub fn changed(config: &ModelConfig, change: impl FnOnce(&mut RawModelConfig)) -> ModelConfig {
    let mut raw = config.raw().clone();
    change(&mut raw);
    or_panic(Host::default().check(raw))
}

/// Returns the text of tensors that differ only in their names; `field` is `input` or `output`.
///
/// ```
/// use galatea_config::testing::{model_config, tensors};
/// use galatea_types::DataType::Bytes;
///
/// let config = model_config(&format!("backend: 'identity' {}", tensors("input", ["A", "B"], Bytes, &[-1])));
/// assert_eq!(&*config.inputs()[1].name, "B");
/// ```
pub fn tensors<N: AsRef<str>>(
    field: &str,
    names: impl IntoIterator<Item = N>,
    data_type: DataType,
    dims: &[i64],
) -> String {
    let tensor = |name: N| {
        let name = name.as_ref();
        let data_type = data_type.config_name();
        format!("{field} {{ name: '{name}' data_type: {data_type} dims: {dims:?} }}\n")
    };
    names.into_iter().map(tensor).collect()
}

/// Makes a tensor as a configuration describes it, for tests that need no model.
pub fn tensor_spec(name: &str, data_type: DataType, dims: impl Into<Shape>) -> TensorSpec {
    TensorSpec::plain(name.into(), data_type, dims.into())
}

#[track_caller]
fn or_panic(config: Result<ModelConfig>) -> ModelConfig {
    match config {
        Ok(config) => config,
        Err(error) => panic!("the configuration of this test is wrong: {error}"),
    }
}
