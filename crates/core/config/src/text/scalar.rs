//! Reads values of scalar fields.

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, Value};

use super::{
    error::TextError,
    lexer::{Token, TokenKind},
    number, string, suggest,
};
use crate::schema;

type Result<T> = std::result::Result<T, TextError>;

/// Returns the value of `token` in `field`. The parser reads strings, which may be several literals.
pub(crate) fn parse(field: &FieldDescriptor, kind: &Kind, token: &Token<'_>) -> Result<Value> {
    match kind {
        Kind::Bool => parse_bool(token).ok_or_else(|| mismatch(field, kind, token)),
        Kind::Float => Ok(Value::F32(parse_float(field, kind, token)? as f32)),
        Kind::Double => Ok(Value::F64(parse_float(field, kind, token)?)),
        Kind::Enum(descriptor) => parse_enum(descriptor, token),
        Kind::String | Kind::Bytes | Kind::Message(_) => Err(mismatch(field, kind, token)),
        _ => parse_integer(field, kind, token),
    }
}

/// Returns the bytes of a string literal.
pub(crate) fn parse_literal(token: &Token<'_>) -> Result<Vec<u8>> {
    let quote = token.text.chars().next().unwrap_or('"');
    let body = token.text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
    let Some(body) = body else {
        let error = TextError::new(token.position, "the string is not closed");
        return Err(error.with_hint(format!("end it with {quote} on the same line")));
    };
    string::unescape(body).map_err(|reason| {
        TextError::new(token.position, format!("wrong escape in a string: {reason}"))
    })
}

fn parse_bool(token: &Token<'_>) -> Option<Value> {
    match token.text {
        "true" | "t" | "1" | "True" => Some(Value::Bool(true)),
        "false" | "f" | "0" | "False" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn parse_float(field: &FieldDescriptor, kind: &Kind, token: &Token<'_>) -> Result<f64> {
    number::parse_float(token.text).ok_or_else(|| mismatch(field, kind, token))
}

fn parse_integer(field: &FieldDescriptor, kind: &Kind, token: &Token<'_>) -> Result<Value> {
    let number = number::parse_integer(token.text).ok_or_else(|| mismatch(field, kind, token))?;
    schema::integer(kind, number).ok_or_else(|| {
        let name = field.name();
        let message = format!("{} is out of range for `{name}`", token.describe());
        TextError::new(token.position, message)
            .with_hint(format!("`{name}` is {}", type_name(kind)))
    })
}

/// Reads an enum by name, or by any number that fits: proto3 enums are open.
fn parse_enum(descriptor: &EnumDescriptor, token: &Token<'_>) -> Result<Value> {
    if let Some(value) = descriptor.get_value_by_name(token.text) {
        return Ok(Value::EnumNumber(value.number()));
    }
    let number = number::parse_enum_number(token.text).and_then(|n| i32::try_from(n).ok());
    if let Some(number) = number {
        return Ok(Value::EnumNumber(number));
    }
    let message = format!("{} is not a value of {}", token.describe(), descriptor.name());
    let mut error = TextError::new(token.position, message);
    error.hint = suggest::enum_hint(token.text, descriptor);
    Err(error)
}

fn mismatch(field: &FieldDescriptor, kind: &Kind, token: &Token<'_>) -> TextError {
    let (name, found) = (field.name(), token.describe());
    let message = format!("expected {} for `{name}`, found {found}", type_name(kind));
    let error = TextError::new(token.position, message);
    match (kind, token.kind) {
        (Kind::String, TokenKind::Word | TokenKind::Number) => {
            error.with_hint(format!("put quotes around it: `{name}: \"{}\"`", token.text))
        }
        _ if suggest::is_curly_quote(token.text) => error.with_hint(suggest::CURLY_QUOTES),
        (Kind::String, _) | (_, TokenKind::End) => error,

        (_, TokenKind::Quoted) => error.with_hint("remove the quotes"),
        (_, _) if token.is("[") => error.with_hint(format!("`{name}` takes one value, not a list")),
        (Kind::Bool, _) => error.with_hint("write `true` or `false`"),
        _ if token.is("(") => error.with_hint("write a list in brackets: `[ 1, 2 ]`"),
        (_, TokenKind::Word | TokenKind::Symbol) if matches!(name, "dims" | "shape") => {
            error.with_hint("write -1 for a dimension of any size")
        }
        (Kind::Float | Kind::Double, _) => error,
        (_, TokenKind::Word | TokenKind::Number) => error.with_hint("write a whole number"),
        _ => error,
    }
}

pub(crate) fn type_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "true or false",
        Kind::Float | Kind::Double => "a number",
        Kind::String | Kind::Bytes => "a string",
        Kind::Enum(_) => "an enum name",
        Kind::Message(_) => "a message",
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => "a 32-bit integer",
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "a 64-bit integer",
        Kind::Uint32 | Kind::Fixed32 => "a non-negative 32-bit integer",
        Kind::Uint64 | Kind::Fixed64 => "a non-negative 64-bit integer",
    }
}
