//! Checked configurations for the tests of other crates, made from text by the same steps as in the server.
//!
//! Nothing else makes a [`ModelConfig`], so that no test is about a state that no model can have.

use galatea_types::{DataType, Result, Shape};

use crate::{
    CheckContext, Format, ModelConfig, NormalizeContext, RawModelConfig, TensorSpec, normalize,
    parse_text,
};

/// The configuration that the text of a `config.pbtxt` gives on a server without GPUs, in a folder named as
/// the model. Without a name in the text the model is `m`.
///
/// # Panics
/// When the text is wrong, with what is wrong with it.
#[track_caller]
pub fn model_config(text: &str) -> ModelConfig {
    or_panic(try_model_config(text))
}

/// As [`model_config`], for tests of what is refused.
///
/// # Errors
/// What is wrong with the text.
pub fn try_model_config(text: &str) -> Result<ModelConfig> {
    checked(parse_text(text)?)
}

/// What the configuration is when its message is changed, with every check made again.
///
/// # Panics
/// When the checks refuse what it has become.
#[track_caller]
pub fn changed(config: &ModelConfig, change: impl FnOnce(&mut RawModelConfig)) -> ModelConfig {
    let mut raw = config.raw().clone();
    change(&mut raw);
    or_panic(checked(raw))
}

/// The text of tensors that differ in nothing but their names; `field` is `input` or `output`.
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

/// A tensor as a configuration describes it, for tests of what needs no model around it.
pub fn tensor_spec(name: &str, data_type: DataType, dims: impl Into<Shape>) -> TensorSpec {
    TensorSpec {
        name: name.into(),
        data_type,
        dims: dims.into(),
        reshape: None,
        format: Format::None,
        is_optional: false,
        allows_ragged_batch: false,
        label_filename: None,
    }
}

fn checked(mut raw: RawModelConfig) -> Result<ModelConfig> {
    if raw.name.is_empty() {
        raw.name = "m".to_owned();
    }
    let name = raw.name.clone();
    let known = NormalizeContext { directory_name: &name, ..Default::default() };
    let context = CheckContext { directory_name: &name, ..Default::default() };
    ModelConfig::check(normalize(raw, &known)?, &context)
}

#[track_caller]
fn or_panic(config: Result<ModelConfig>) -> ModelConfig {
    match config {
        Ok(config) => config,
        Err(error) => panic!("the configuration of this test is wrong: {error}"),
    }
}
