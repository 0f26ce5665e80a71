//! Locates the bytes of a request message that cannot be read: field and byte.
//!
//! Only a refused message is read again here, so that a good one costs nothing.

use std::fmt;

use super::fields::{Fields, Value, packed_varints};

struct Field {
    number: u32,
    name: &'static str,
    form: FieldForm,
}

enum FieldForm {
    Text,
    Bytes,
    /// Numbers of variable length, packed or not.
    Varints,
    /// Numbers of this many bytes, packed or not.
    Fixed(usize),
    Message(&'static [Field]),
}

const fn field(number: u32, name: &'static str, form: FieldForm) -> Field {
    Field { number, name, form }
}

const REQUEST: &[Field] = &[
    field(1, "model_name", FieldForm::Text),
    field(2, "model_version", FieldForm::Text),
    field(3, "id", FieldForm::Text),
    field(4, "parameters", FieldForm::Message(PARAMETER)),
    field(5, "inputs", FieldForm::Message(INPUT)),
    field(6, "outputs", FieldForm::Message(OUTPUT)),
    field(7, "raw_input_contents", FieldForm::Bytes),
];

const INPUT: &[Field] = &[
    field(1, "name", FieldForm::Text),
    field(2, "datatype", FieldForm::Text),
    field(3, "shape", FieldForm::Varints),
    field(4, "parameters", FieldForm::Message(PARAMETER)),
    field(5, "contents", FieldForm::Message(CONTENTS)),
];

const OUTPUT: &[Field] =
    &[field(1, "name", FieldForm::Text), field(2, "parameters", FieldForm::Message(PARAMETER))];

const PARAMETER: &[Field] =
    &[field(1, "key", FieldForm::Text), field(2, "value", FieldForm::Message(PARAMETER_VALUE))];

const PARAMETER_VALUE: &[Field] = &[
    field(1, "bool_param", FieldForm::Varints),
    field(2, "int64_param", FieldForm::Varints),
    field(3, "string_param", FieldForm::Text),
    field(4, "double_param", FieldForm::Fixed(8)),
    field(5, "uint64_param", FieldForm::Varints),
];

const CONTENTS: &[Field] = &[
    field(1, "bool_contents", FieldForm::Varints),
    field(2, "int_contents", FieldForm::Varints),
    field(3, "int64_contents", FieldForm::Varints),
    field(4, "uint_contents", FieldForm::Varints),
    field(5, "uint64_contents", FieldForm::Varints),
    field(6, "fp32_contents", FieldForm::Fixed(4)),
    field(7, "fp64_contents", FieldForm::Fixed(8)),
    field(8, "bytes_contents", FieldForm::Bytes),
];

/// A place in a request message whose bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireFault {
    /// The path of the field, such as `inputs[0].datatype`; empty if no field is known.
    field: String,
    /// The offset from the beginning of the message, from 0.
    byte: usize,
    reason: FaultReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultReason {
    NoField,
    Cut,
    NoText,
    OtherForm,
    OddNumbers,
}

impl FaultReason {
    fn text(self) -> &'static str {
        match self {
            Self::NoField => "no field begins here, or it is cut off",
            Self::Cut => "the field is longer than what follows",
            Self::NoText => "the field takes UTF-8 text, and this is not",
            Self::OtherForm => "the field takes a value of another kind",
            Self::OddNumbers => "the numbers of the field are cut off",
        }
    }
}

/// Writes `inputs[0].datatype, byte 12: ...`.
impl fmt::Display for WireFault {
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

impl WireFault {
    /// Returns the fault at byte `byte`, where no field of the request begins.
    pub fn without_field(byte: usize) -> Self {
        Self { field: String::new(), byte, reason: FaultReason::NoField }
    }

    /// Returns the fault in a field of the request whose value is incomplete or not a sequence of bytes.
    pub fn of_form(number: u32, byte: usize, is_bytes: bool) -> Self {
        let known = REQUEST.iter().find(|field| field.number == number);
        let field = known.map_or("", |field| field.name).to_owned();
        Self {
            field,
            byte,
            reason: if is_bytes { FaultReason::Cut } else { FaultReason::OtherForm },
        }
    }

    /// Returns the fault in the value of a request field. The value begins at `start` and is number `index` of its field.
    pub fn of_field(number: u32, index: usize, value: &[u8], start: usize) -> Self {
        let known = REQUEST.iter().find(|field| field.number == number);
        let name = known.map_or("", |field| field.name);
        let name = match number {
            4..=7 => format!("{name}[{index}]"),
            _ => name.to_owned(),
        };
        let found = known.and_then(|field| field.form.fault(Value::Bytes(value), start));
        let Some(mut found) = found else {
            return Self { field: name, byte: start, reason: FaultReason::OtherForm };
        };
        found.field = joined(&name, &found.field);
        found
    }
}

fn joined(outer: &str, inner: &str) -> String {
    if inner.is_empty() { outer.to_owned() } else { format!("{outer}.{inner}") }
}

impl FieldForm {
    /// Returns the fault in a value whose bytes begin at `start`, if it has one.
    fn fault(&self, value: Value<'_>, start: usize) -> Option<WireFault> {
        let here = |reason| Some(WireFault { field: String::new(), byte: start, reason });
        match (self, value) {
            (Self::Text, Value::Bytes(text)) => {
                let end = std::str::from_utf8(text).err()?.valid_up_to();
                Some(WireFault {
                    field: String::new(),
                    byte: start + end,
                    reason: FaultReason::NoText,
                })
            }
            (Self::Message(fields), Value::Bytes(message)) => fault_in(message, fields, start),
            (Self::Bytes, Value::Bytes(_)) | (Self::Varints, Value::Varint(_)) => None,
            (Self::Varints, Value::Bytes(packed)) => match packed_varints(packed) {
                Ok(_) => None,
                Err(_) => here(FaultReason::OddNumbers),
            },
            (Self::Fixed(4), Value::Fixed32(_)) | (Self::Fixed(8), Value::Fixed64(_)) => None,
            (Self::Fixed(size), Value::Bytes(packed)) if packed.len().is_multiple_of(*size) => None,
            (Self::Fixed(_), Value::Bytes(_)) => here(FaultReason::OddNumbers),
            _ => here(FaultReason::OtherForm),
        }
    }
}

/// Returns the first fault in a message that begins at `start`.
fn fault_in(message: &[u8], known: &[Field], start: usize) -> Option<WireFault> {
    let mut fields = Fields::of(message);
    let mut counts = vec![0_usize; known.len()];
    loop {
        let at = start + (message.len() - fields.left());
        let Ok((number, value)) = fields.next()? else {
            return Some(WireFault {
                field: String::new(),
                byte: at,
                reason: FaultReason::NoField,
            });
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
