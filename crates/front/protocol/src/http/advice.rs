//! Advice added to Triton's error text for a request that cannot be read: the input, the place in its data, and the
//! right form. It is made when a request is refused, from its text.
//!
//! It names kinds and places, never the contents of the request: errors are logged, and requests are not.

use std::borrow::Cow;

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{DataType, Shape};

use super::{
    decode_error::DecodeError,
    json::{JsonCursor, Kind, check_depth, for_each_element, for_each_member},
    json_error::{JsonError, SyntaxFault},
    limits,
    tensor_data::{self, Elements, ExpectedData},
};
use crate::input_description::taken_as;

/// Adds advice to the `error` of an input object. `object` points to it, and `index` is its number in the request.
pub(super) fn of_input(
    error: DecodeError,
    object: &JsonCursor<'_>,
    index: usize,
    model: &ModelConfig,
) -> DecodeError {
    let input = Input::find(object.clone());
    let Some(advice) = input.advice(&error, model) else { return error };
    let subject = match &input.name {
        Some(name) => format!("input '{name}'"),
        None => format!("inputs[{index}]"),
    };
    error.explained(format!("{subject}: {advice}"))
}

/// Adds advice to the `error` of a value in a generate request. `data` points to the value.
pub(super) fn of_generate(
    error: DecodeError,
    data: &JsonCursor<'_>,
    expected: ExpectedData<'_>,
) -> DecodeError {
    if !is_about_elements(&error) {
        return error;
    }
    let advice = of_elements(data, "its value", expected);
    error.explained(format!("input '{}': {advice}", expected.input_name))
}

/// Adds advice to the `error` of a request as a whole.
pub(super) fn of_request(
    error: DecodeError,
    json: &[u8],
    has_header_length: bool,
    model: &ModelConfig,
) -> DecodeError {
    let advice = match &error {
        DecodeError::Json(JsonError::Syntax { fault, offset }) => {
            of_syntax(*fault, json, *offset, has_header_length)
        }
        DecodeError::MissingField("inputs") => Some(example(model)),
        DecodeError::Field { field, error } if field == "inputs" && is_kind(error) => {
            Some(example(model))
        }
        _ => None,
    };
    match advice {
        Some(advice) => error.explained(advice),
        None => error,
    }
}

fn of_syntax(
    fault: SyntaxFault,
    json: &[u8],
    offset: usize,
    has_header_length: bool,
) -> Option<String> {
    let before = json.get(..offset).unwrap_or_default().trim_ascii_end();
    let advice = match (fault, json.get(offset)) {
        (SyntaxFault::MissingName | SyntaxFault::InvalidValue, Some(b'\'')) => {
            "JSON: names and strings stand in double quotes"
        }
        (SyntaxFault::MissingName | SyntaxFault::InvalidValue, Some(b'}' | b']'))
            if before.ends_with(b",") =>
        {
            "JSON: no comma stands behind the last element"
        }
        (SyntaxFault::InvalidValue, Some(b'T' | b'F')) => {
            "JSON: it is true and false, in small letters"
        }
        (SyntaxFault::RootNotSingular, _) if !has_header_length => {
            "JSON: binary tensors may follow it where the header 'Inference-Header-Content-Length' says how many bytes of \
             the body are JSON"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

/// Adds advice to the `error` of the requested outputs.
pub(super) fn of_outputs(error: DecodeError, model: &ModelConfig) -> DecodeError {
    if !is_kind(&error) && !matches!(error, DecodeError::MissingField("name")) {
        return error;
    }
    let name =
        serde_json::Value::from(model.outputs().first().map_or("OUT", |output| &*output.name));
    error.explained(format!("outputs: each is an object such as {{\"name\":{name}}}"))
}

/// Returns a request that the model accepts, without its data.
fn example(model: &ModelConfig) -> String {
    let input = model.inputs().first();
    let name = serde_json::Value::from(input.map_or("IN", |input| &*input.name));
    let data_type = input.map_or(DataType::Fp32, |input| input.data_type).protocol_name();
    let shape = input.map_or_else(|| [1].into(), |input| shape_of_one(input, model.has_batching()));
    format!(
        "request: it is an object such as {{\"inputs\":[{{\"name\":{name},\"shape\":{shape},\"datatype\":\"{data_type}\",\
         \"data\":[...]}}]}}"
    )
}

/// Returns the smallest shape that is accepted.
fn shape_of_one(spec: &TensorSpec, has_batching: bool) -> Shape {
    let sizes = spec.dims.iter().map(|&size| size.max(1));
    has_batching.then_some(1).into_iter().chain(sizes).collect()
}

/// The members of an input object on which the advice depends. Of two members with the same name the first counts.
#[derive(Default)]
struct Input<'a> {
    name: Option<String>,
    data_type: Option<Cow<'a, [u8]>>,
    shape: Option<Shape>,
    data: Option<JsonCursor<'a>>,
}

impl<'a> Input<'a> {
    fn find(mut object: JsonCursor<'a>) -> Self {
        let mut found = Self::default();
        // Anything after an unreadable part is omitted.
        let _ = for_each_member(&mut object, |key, cursor| {
            let mut value = cursor.clone();
            match key {
                b"name" if found.name.is_none() => {
                    let name = value.expect_string().ok();
                    found.name = name.map(|name| limits::name(&name).into_owned());
                }
                b"datatype" if found.data_type.is_none() => {
                    found.data_type = value.expect_string().ok();
                }
                b"shape" if found.shape.is_none() => found.shape = shape(&mut value),
                b"data" if found.data.is_none() => found.data = Some(value),
                _ => {}
            }
            cursor.skip_value()
        });
        found
    }

    fn advice(&self, error: &DecodeError, model: &ModelConfig) -> Option<String> {
        match error {
            DecodeError::MissingField("name" | "shape" | "datatype")
            | DecodeError::InvalidDataType(_) => Some(taken_as(self.name.as_deref(), model)),
            DecodeError::Field { field, error } if field == "shape" && is_kind(error) => {
                Some(taken_as(self.name.as_deref(), model))
            }
            DecodeError::DataSources { set } => Some(match set.is_empty() {
                true => "give its elements as 'data'".to_owned(),
                false => "give one of them".to_owned(),
            }),
            error if is_about_elements(error) => self.of_data(),
            _ => None,
        }
    }

    fn of_data(&self) -> Option<String> {
        let data_type = std::str::from_utf8(self.data_type.as_deref()?).ok()?;
        let expected = ExpectedData {
            data_type: DataType::from_protocol_name(data_type)?,
            count: self.shape.as_ref()?.element_count()?,
            input_name: "",
            elements: Elements::Checked,
        };
        Some(of_elements(self.data.as_ref()?, "data", expected))
    }
}

fn shape(cursor: &mut JsonCursor<'_>) -> Option<Shape> {
    let mut shape = Shape::scalar();
    let read = for_each_element(cursor, |cursor| {
        let size = cursor.expect_u64()?;
        if shape.len() < limits::MAX_RANK {
            shape.push(i64::try_from(size).unwrap_or(i64::MAX));
        }
        Ok::<_, JsonError>(())
    });
    read.ok().map(|()| shape)
}

/// Returns `true` if a value has the wrong kind.
fn is_kind(error: &DecodeError) -> bool {
    matches!(error, DecodeError::Json(JsonError::WrongKind(_)))
}

fn is_about_elements(error: &DecodeError) -> bool {
    let of_data = |error: &DecodeError| {
        is_kind(error)
            || matches!(error, DecodeError::CountMismatch | DecodeError::ValueOutOfRange { .. })
    };
    match error {
        DecodeError::Field { field, error } => field == "data" && of_data(error),
        DecodeError::BytesArray(error) => of_data(error),
        _ => false,
    }
}

/// Returns what is wrong with the elements of `data`. `what` is their name.
fn of_elements(data: &JsonCursor<'_>, what: &str, expected: ExpectedData<'_>) -> String {
    let takes = taken_elements(expected.data_type);
    let mut reader = data.clone();
    let refused = tensor_data::decode_any(
        &mut reader,
        ExpectedData { elements: Elements::Checked, ..expected },
    );
    let is_count = matches!(&refused, Err(DecodeError::Field { error, .. }) if matches!(**error, DecodeError::CountMismatch));
    let mut walk = Walk {
        until: if is_count { usize::MAX } else { reader.position() },
        count: 0,
        path: Vec::new(),
    };
    let mut cursor = data.clone();
    let is_array = cursor.kind() == Kind::Array;
    match walk.find(&mut cursor) {
        _ if is_count => {
            let found = walk.count;
            format!("its shape takes {} elements, {what} has {found}", expected.count)
        }
        // Readable data is refused because it is not in an array.
        _ if refused.is_ok() || (!is_array && what == "data") => {
            "data is an array, of one element too".to_owned()
        }
        Some(kind) => {
            let place: String = walk.path.iter().map(|index| format!("[{index}]")).collect();
            format!("{what}{place} is {}, {takes}", called(kind, expected.data_type))
        }
        None => takes,
    }
}

fn called(kind: Kind, expected: DataType) -> &'static str {
    match kind {
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::String => "a string",
        Kind::Number if matches!(expected, DataType::Bool | DataType::Bytes) => "a number",
        Kind::Number => "a number that does not fit",
        Kind::Bool => "true or false",
        Kind::Null => "null",
        Kind::Other => "no value",
    }
}

fn taken_elements(data_type: DataType) -> String {
    let unused = 64 - 8 * data_type.byte_size().unwrap_or(8);
    let (least, most) = match data_type {
        DataType::Bool => return "BOOL takes true and false".to_owned(),
        DataType::Bytes => return "BYTES takes strings".to_owned(),
        DataType::Fp16 | DataType::Bf16 | DataType::Fp32 | DataType::Fp64 => {
            return format!("{data_type} takes numbers");
        }
        DataType::Uint8 | DataType::Uint16 | DataType::Uint32 | DataType::Uint64 => {
            (0, u64::MAX >> unused)
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            (i64::MIN >> unused, i64::MAX.unsigned_abs() >> unused)
        }
    };
    format!("{data_type} takes whole numbers from {least} to {most}")
}

/// A walk over nested elements up to a position in the text.
struct Walk {
    until: usize,
    count: usize,
    /// The index of the element in each array around it.
    path: Vec<usize>,
}

impl Walk {
    /// Returns the kind of the element that ends after the position, and leaves its `path`. Returns `None` if there is none.
    fn find(&mut self, cursor: &mut JsonCursor<'_>) -> Option<Kind> {
        let kind = cursor.kind();
        if kind != Kind::Array {
            cursor.skip_value().ok()?;
            self.count += 1;
            return (self.until <= cursor.position()).then_some(kind);
        }
        check_depth(self.path.len() + 1).ok()?;
        cursor.open();
        let mut is_first = true;
        self.path.push(0);
        while cursor.next_element(&mut is_first).ok()? {
            if let Some(kind) = self.find(cursor) {
                return Some(kind);
            }
            *self.path.last_mut()? += 1;
        }
        self.path.pop();
        None
    }
}
