//! Says where in a request message the bytes are that cannot be read: field and byte.
//!
//! Only a message that was refused is read here again, so that a good one costs nothing.

use std::fmt;

use super::fields::{Fields, Value, packed_varints};

struct Field {
    number: u32,
    name: &'static str,
    form: Form,
}

enum Form {
    Text,
    Bytes,
    /// Numbers of any length, packed or not.
    Varints,
    /// Numbers of so many bytes, packed or not.
    Fixed(usize),
    Message(&'static [Field]),
}

const fn field(number: u32, name: &'static str, form: Form) -> Field {
    Field { number, name, form }
}

const REQUEST: &[Field] = &[
    field(1, "model_name", Form::Text),
    field(2, "model_version", Form::Text),
    field(3, "id", Form::Text),
    field(4, "parameters", Form::Message(PARAMETER)),
    field(5, "inputs", Form::Message(INPUT)),
    field(6, "outputs", Form::Message(OUTPUT)),
    field(7, "raw_input_contents", Form::Bytes),
];

const INPUT: &[Field] = &[
    field(1, "name", Form::Text),
    field(2, "datatype", Form::Text),
    field(3, "shape", Form::Varints),
    field(4, "parameters", Form::Message(PARAMETER)),
    field(5, "contents", Form::Message(CONTENTS)),
];

const OUTPUT: &[Field] =
    &[field(1, "name", Form::Text), field(2, "parameters", Form::Message(PARAMETER))];

const PARAMETER: &[Field] =
    &[field(1, "key", Form::Text), field(2, "value", Form::Message(PARAMETER_VALUE))];

const PARAMETER_VALUE: &[Field] = &[
    field(1, "bool_param", Form::Varints),
    field(2, "int64_param", Form::Varints),
    field(3, "string_param", Form::Text),
    field(4, "double_param", Form::Fixed(8)),
    field(5, "uint64_param", Form::Varints),
];

const CONTENTS: &[Field] = &[
    field(1, "bool_contents", Form::Varints),
    field(2, "int_contents", Form::Varints),
    field(3, "int64_contents", Form::Varints),
    field(4, "uint_contents", Form::Varints),
    field(5, "uint64_contents", Form::Varints),
    field(6, "fp32_contents", Form::Fixed(4)),
    field(7, "fp64_contents", Form::Fixed(8)),
    field(8, "bytes_contents", Form::Bytes),
];

/// A place in a request message whose bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// `inputs[0].datatype`; empty where no field is known.
    field: String,
    /// From the beginning of the message, from 0.
    byte: usize,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    NoField,
    Cut,
    NoText,
    OtherForm,
    OddNumbers,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Self::NoField => "no field begins here, or it is cut off",
            Self::Cut => "the field is longer than what follows",
            Self::NoText => "the field takes UTF-8 text, and this is none",
            Self::OtherForm => "the field takes a value of another kind",
            Self::OddNumbers => "the numbers of the field are cut off",
        }
    }
}

/// `inputs[0].datatype, byte 12: ...`
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}, ", self.field)?;
        }
        write!(f, "byte {}: {}", self.byte, self.reason.text())?;
        match self.field.contains(".contents") {
            true => f.write_str("; the raw bytes of a tensor belong into raw_input_contents"),
            false => Ok(()),
        }
    }
}

impl Fault {
    /// At byte `byte`, where no field of the request begins.
    pub fn without_field(byte: usize) -> Self {
        Self { field: String::new(), byte, reason: Reason::NoField }
    }

    /// In a field of the request whose value is not there as a whole, or is no sequence of bytes.
    pub fn of_form(number: u32, byte: usize, is_bytes: bool) -> Self {
        let known = REQUEST.iter().find(|field| field.number == number);
        let field = known.map_or("", |field| field.name).to_owned();
        Self { field, byte, reason: if is_bytes { Reason::Cut } else { Reason::OtherForm } }
    }

    /// In the value of a field of the request, which begins at `start` and is the `index`-th of its number.
    pub fn of_field(number: u32, index: usize, value: &[u8], start: usize) -> Self {
        let known = REQUEST.iter().find(|field| field.number == number);
        let name = known.map_or("", |field| field.name);
        let name = match number {
            4..=7 => format!("{name}[{index}]"),
            _ => name.to_owned(),
        };
        let found = known.and_then(|field| field.form.fault(Value::Bytes(value), start));
        let Some(mut found) = found else {
            return Self { field: name, byte: start, reason: Reason::OtherForm };
        };
        found.field = joined(&name, &found.field);
        found
    }
}

fn joined(outer: &str, inner: &str) -> String {
    if inner.is_empty() { outer.to_owned() } else { format!("{outer}.{inner}") }
}

impl Form {
    /// What cannot be read of a value whose bytes begin at `start`.
    fn fault(&self, value: Value<'_>, start: usize) -> Option<Fault> {
        let here = |reason| Some(Fault { field: String::new(), byte: start, reason });
        match (self, value) {
            (Self::Text, Value::Bytes(text)) => {
                let end = std::str::from_utf8(text).err()?.valid_up_to();
                Some(Fault { field: String::new(), byte: start + end, reason: Reason::NoText })
            }
            (Self::Message(fields), Value::Bytes(message)) => fault_in(message, fields, start),
            (Self::Bytes, Value::Bytes(_)) | (Self::Varints, Value::Varint(_)) => None,
            (Self::Varints, Value::Bytes(packed)) => match packed_varints(packed) {
                Ok(_) => None,
                Err(_) => here(Reason::OddNumbers),
            },
            (Self::Fixed(4), Value::Fixed32(_)) | (Self::Fixed(8), Value::Fixed64(_)) => None,
            (Self::Fixed(size), Value::Bytes(packed)) if packed.len().is_multiple_of(*size) => None,
            (Self::Fixed(_), Value::Bytes(_)) => here(Reason::OddNumbers),
            _ => here(Reason::OtherForm),
        }
    }
}

/// The first fault in a message that begins at `start`.
fn fault_in(message: &[u8], known: &[Field], start: usize) -> Option<Fault> {
    let mut fields = Fields::of(message);
    let mut counts = vec![0_usize; known.len()];
    loop {
        let at = start + (message.len() - fields.left());
        let Ok((number, value)) = fields.next()? else {
            return Some(Fault { field: String::new(), byte: at, reason: Reason::NoField });
        };
        let Some((field, count)) =
            known.iter().zip(&mut counts).find(|(field, _)| field.number == number)
        else {
            continue;
        };
        let length = match value {
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let begin = start + (message.len() - fields.left()) - length;
        if let Some(mut fault) = field.form.fault(value, begin) {
            let is_list = field.name == "parameters" || field.name == "bytes_contents";
            let name = match is_list {
                true => format!("{}[{count}]", field.name),
                false => field.name.to_owned(),
            };
            fault.field = joined(&name, &fault.field);
            return Some(fault);
        }
        *count += 1;
    }
}
