//! The inputs of a request: typed values, matched with the inputs of the model.

use galatea_client::{InputData, InputTensor, TensorMetadata};
use galatea_types::{Shape, suggest};

use crate::{
    picture::{Layout, PictureOptions},
    shape::{self, KnownShape, ShapeError},
    value::{self, ValueError, WantedValue},
};

/// The reason why the inputs do not fit the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("the model has no input '{name}'{hint}; it has {known}")]
    Unknown { name: String, hint: String, known: String },
    #[error("no input is called '{text}'; the model has {known}: write --input NAME=VALUE")]
    Unnamed { text: String, known: String },
    #[error("input '{0}' is given twice")]
    Twice(String),
    #[error(
        "missing input: {0}; give each with --input NAME=VALUE, VALUE may be `zeros` or `random`"
    )]
    Missing(String),
    #[error("input '{name}': {reason}")]
    Value { name: String, reason: ValueError },
    #[error("input '{input}' needs {wanted}: {reason}")]
    Shape { input: String, wanted: String, reason: ShapeError },
}

/// The inputs of a model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ModelInput<'a> {
    pub inputs: &'a [TensorMetadata],
    /// Names of inputs that a request may leave out.
    pub optional: &'a [String],
    /// Names of inputs that are pictures, and their format in the configuration.
    pub formats: &'a [(String, String)],
    pub picture: PictureOptions,
}

impl ModelInput<'_> {
    /// Returns the layout of an image input: from the command line, else from the configuration.
    fn picture(&self, input: &str) -> PictureOptions {
        let format = self.formats.iter().find(|(name, _)| name == input);
        let layout = match (self.picture.layout, format.map(|(_, format)| format.as_str())) {
            (Layout::Guessed, Some("FORMAT_NHWC")) => Layout::Nhwc,
            (Layout::Guessed, Some("FORMAT_NCHW")) => Layout::Nchw,
            (layout, _) => layout,
        };
        PictureOptions { layout, ..self.picture }
    }
}

/// Returns the inputs, and notes about them for the user.
pub(crate) fn inputs(
    typed: &[String],
    taken: &ModelInput<'_>,
) -> Result<(Vec<InputTensor>, Vec<String>), InputError> {
    let known = taken.inputs;
    let mut notes = Vec::new();
    let mut made: Vec<InputTensor> = Vec::new();
    for text in typed {
        let (input, value) = matched(text, known)?;
        if made.iter().any(|made| made.name == input.name) {
            return Err(InputError::Twice(input.name.clone()));
        }
        let (tensor, note) = tensor(input, value, &taken.picture(&input.name))?;
        notes.extend(note.map(|note| format!("{}: {note}", input.name)));
        made.push(tensor);
    }
    let is_missing = |input: &&TensorMetadata| {
        !taken.optional.contains(&input.name) && made.iter().all(|made| made.name != input.name)
    };
    let missing: Vec<String> = known.iter().filter(is_missing).map(describe).collect();
    match missing.is_empty() {
        true => Ok((made, notes)),
        false => Err(InputError::Missing(missing.join(", "))),
    }
}

/// Returns a text such as `INPUT0 INT32 [-1,16]`.
pub(crate) fn describe(tensor: &TensorMetadata) -> String {
    format!("{} {} {}", tensor.name, tensor.data_type, shape::text(&tensor.shape))
}

fn matched<'a, 'b>(
    text: &'b str,
    known: &'a [TensorMetadata],
) -> Result<(&'a TensorMetadata, &'b str), InputError> {
    let names = || known.iter().map(|input| input.name.as_str());
    let list = || names().collect::<Vec<_>>().join(", ");
    let typed = text.split_once('=');
    let named = known.iter().find_map(|input| {
        let value = text.strip_prefix(input.name.as_str())?.strip_prefix('=')?;
        Some((input, value))
    });
    if let Some(named) = named {
        return Ok(named);
    }
    let near = typed.and_then(|(name, _)| suggest::nearest(name, names()).first().copied());
    match (known, typed) {
        ([only], _) if near.is_none() => Ok((only, text)),
        (_, Some((name, _))) => {
            let hint = near.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default();
            Err(InputError::Unknown { name: name.to_owned(), hint, known: list() })
        }
        (_, None) => {
            let text = text.chars().take(40).collect();
            Err(InputError::Unnamed { text, known: list() })
        }
    }
}

fn tensor(
    input: &TensorMetadata,
    text: &str,
    picture: &PictureOptions,
) -> Result<(InputTensor, Option<String>), InputError> {
    let (name, data_type) = (input.name.clone(), input.data_type);
    let of_value = |reason| InputError::Value { name: input.name.clone(), reason };
    let of_shape = |reason| InputError::Shape {
        input: input.name.clone(),
        wanted: format!("{data_type} {}", shape::text(&input.shape)),
        reason,
    };
    let is_filled = matches!(text, "zeros" | "random");
    let (shape, data, note) = match is_filled {
        true => {
            let shape = shape::complete(&input.shape, &KnownShape::Any).map_err(of_shape)?;
            let count = Shape::from(&shape[..])
                .element_count()
                .ok_or_else(|| of_shape(ShapeError::TooLarge))?;
            (shape, value::fill(count, data_type, text == "random").map_err(of_value)?, None)
        }
        false => {
            let wanted = WantedValue { data_type, shape: &input.shape, picture: *picture };
            let elements = value::read(text, &wanted).map_err(of_value)?;
            let shape = shape::complete(&input.shape, &elements.given).map_err(of_shape)?;
            (shape, elements.data, elements.note)
        }
    };
    let data = InputData::Inline(data.into());
    Ok((InputTensor { name, data_type, shape, data }, note))
}

#[cfg(test)]
mod tests {
    use galatea_types::DataType;

    use super::*;

    fn known(names: &[&str]) -> Vec<TensorMetadata> {
        let tensor = |name: &&str| TensorMetadata {
            name: name.to_string(),
            data_type: DataType::Int32,
            shape: vec![-1, 2],
        };
        names.iter().map(tensor).collect()
    }

    fn taken<'a>(inputs: &'a [TensorMetadata], optional: &'a [String]) -> ModelInput<'a> {
        ModelInput { inputs, optional, ..ModelInput::default() }
    }

    #[test]
    fn inputs_are_matched_by_name() {
        let typed = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let made = inputs(&typed(&["1,2"]), &taken(&known(&["A"]), &[])).expect("one input").0;
        assert_eq!((made[0].name.as_str(), &made[0].shape[..]), ("A", &[1, 2][..]));
        for (words, names, expected) in [
            (&["INPUT=1,2"][..], &["INPUTS"][..], "did you mean 'INPUTS'?"),
            (&["1,2"], &["A", "B"], "no input is called '1,2'; the model has A, B"),
            (&["A=zeros"], &["A", "B"], "missing input: B INT32 [-1,2]"),
            (&["A=zeros", "A=zeros"], &["A", "B"], "'A' is given twice"),
            (
                &["A=1,2,3"],
                &["A"],
                "input 'A' needs INT32 [-1,2]: 3 elements given; give a multiple of 2",
            ),
            (&["A=x"], &["A"], "input 'A': 'x' is not a value of INT32"),
        ] {
            let error =
                inputs(&typed(words), &taken(&known(names), &[])).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(
            inputs(&typed(&["A=zeros"]), &taken(&known(&["A", "B"]), &["B".to_owned()])).is_ok()
        );
    }
}
