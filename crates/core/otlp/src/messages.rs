//! The messages of OTLP that are sent, as far as they are used: protobuf by `prost`, JSON by `serde`.
//!
//! JSON has names in camel case, ids as hexadecimal digits, 64-bit numbers as texts and enumerations as numbers.

use prost::{Message, Oneof};
use serde::{Serialize, Serializer};

/// A request to store spans.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// Spans of one resource.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// The sender of spans.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// Spans of one part of a program.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

/// A part of a program.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Work with a start and an end, in nanoseconds since 1970.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hexadecimal")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hexadecimal")]
    pub span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trace_state: String,
    /// Empty: the span begins its trace.
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "hexadecimal", skip_serializing_if = "Vec::is_empty")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "decimal")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "decimal")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SpanEvent>,
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The flags of the trace, in the lowest eight bits.
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
}

/// The kind of a span that answers a request.
pub(crate) const KIND_SERVER: i32 = 2;

/// An instant in a span.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpanEvent {
    #[prost(fixed64, tag = "1")]
    #[serde(serialize_with = "decimal")]
    pub time_unix_nano: u64,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// The outcome of a span.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// The code of a status that is an error.
pub(crate) const STATUS_ERROR: i32 = 2;

/// A value with a name.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// A value of one of several types.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(transparent)]
pub(crate) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    pub value: Option<Value>,
}

/// The types that are used.
#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Value {
    #[prost(string, tag = "1")]
    StringValue(String),
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "signed_decimal")]
    IntValue(i64),
}

impl KeyValue {
    /// Makes a text with a name.
    pub fn text(key: &str, value: &str) -> Self {
        Self::new(key, Value::StringValue(value.to_owned()))
    }

    /// Makes a number with a name.
    pub fn number(key: &str, value: i64) -> Self {
        Self::new(key, Value::IntValue(value))
    }

    fn new(key: &str, value: Value) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }
}

fn hexadecimal<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or('0');
    let text: String = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect();
    serializer.serialize_str(&text)
}

fn decimal<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

fn signed_decimal<S: Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_form_of_otlp() {
        let span = Span {
            trace_id: vec![0xab; 16],
            span_id: vec![1; 8],
            name: "compute".to_owned(),
            kind: KIND_SERVER,
            start_time_unix_nano: u64::MAX,
            end_time_unix_nano: 5,
            attributes: vec![KeyValue::number("n", -1), KeyValue::text("t", "é\"")],
            events: vec![SpanEvent { time_unix_nano: 7, name: "E".to_owned() }],
            status: Some(Status { message: "bad".to_owned(), code: STATUS_ERROR }),
            flags: 1,
            ..Span::default()
        };
        let expected = concat!(
            r#"{"traceId":"abababababababababababababababab","spanId":"0101010101010101","name":"compute","kind":2,"#,
            r#""startTimeUnixNano":"18446744073709551615","endTimeUnixNano":"5","#,
            r#""attributes":[{"key":"n","value":{"intValue":"-1"}},{"key":"t","value":{"stringValue":"é\""}}],"#,
            r#""events":[{"timeUnixNano":"7","name":"E"}],"status":{"message":"bad","code":2},"flags":1}"#,
        );
        assert_eq!(serde_json::to_string(&span).expect("JSON"), expected);
        assert_eq!(Span::decode(&*span.encode_to_vec()), Ok(span));
    }
}
