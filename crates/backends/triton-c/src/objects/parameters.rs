//! Parameters that libraries make: `TRITONSERVER_Parameter`.

use std::{
    ffi::{c_char, c_void},
    ptr, slice,
    sync::Arc,
};

use galatea_types::{Error, ParameterValue, Result};

use crate::{Kind, Table, abi, call, text};

/// A parameter: its name and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A value that requests may have too.
    Plain(ParameterValue),
    /// Bytes, such as the content of a file.
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns the value as text, for a label of a metric.
    ///
    /// # Errors
    /// It is no text.
    pub fn text(&self) -> Result<&str> {
        match self {
            Self::Plain(ParameterValue::String(text)) => Ok(text),
            _ => Err(Error::invalid_arg("the value of a label must be text")),
        }
    }
}

const KIND: Kind = Kind { number: 3, name: "TRITONSERVER_Parameter" };
static PARAMETERS: Table<abi::Parameter, Parameter> = Table::new(KIND, 1 << 18);
/// Most parameters in one list, and most bytes of one value.
const MOST_LISTED: usize = 1 << 16;
const MOST_BYTES: usize = 1 << 30;

/// Returns the parameters of a list.
///
/// # Errors
/// A handle is no parameter, or the list is null or too long.
///
/// # Safety
/// `count` handles that do not change meanwhile.
pub unsafe fn read(list: *const *const abi::Parameter, count: u64) -> Result<Vec<Arc<Parameter>>> {
    // SAFETY: the caller's word.
    let handles = unsafe { call::list(list, count, MOST_LISTED, "parameters") }?;
    handles.iter().map(|&handle| PARAMETERS.get(handle)).collect()
}

/// # Safety
/// `value` is what the kind says: a terminated text, an `int64_t`, a `bool` or a `double`.
unsafe fn value_of(kind: u32, value: *const c_void) -> Result<ParameterValue> {
    use abi::parameter::{BOOL, DOUBLE, INT, STRING};
    if value.is_null() {
        return Err(Error::invalid_arg("the value of a parameter is null"));
    }
    // SAFETY: the caller's word.
    unsafe {
        Ok(match kind {
            STRING => ParameterValue::String(text::read(value.cast(), "the value")?.into_owned()),
            INT => ParameterValue::Int(value.cast::<i64>().read_unaligned()),
            BOOL => ParameterValue::Bool(value.cast::<u8>().read() != 0),
            DOUBLE => ParameterValue::Double(value.cast::<f64>().read_unaligned()),
            other => {
                return Err(Error::invalid_arg(format!(
                    "a parameter of kind {other} has no value"
                )));
            }
        })
    }
}

pub(super) unsafe extern "C" fn parameter_new(
    name: *const c_char,
    kind: u32,
    value: *const c_void,
) -> *mut abi::Parameter {
    call::value("TRITONSERVER_ParameterNew", ptr::null_mut(), || {
        // SAFETY: the caller gives a terminated text, and a value of this kind.
        let (name, value) = unsafe { (text::read(name, "the name")?, value_of(kind, value)?) };
        let name = name.into_owned();
        PARAMETERS.insert(Arc::new(Parameter { name, value: Value::Plain(value) }))
    })
}

/// Copies the bytes: the caller need not keep them.
pub(super) unsafe extern "C" fn parameter_bytes_new(
    name: *const c_char,
    bytes: *const c_void,
    size: u64,
) -> *mut abi::Parameter {
    call::value("TRITONSERVER_ParameterBytesNew", ptr::null_mut(), || {
        // SAFETY: the caller gives a terminated text, and that many bytes.
        let (name, bytes): (_, &[u8]) = unsafe {
            (text::read(name, "the name")?, call::list(bytes.cast(), size, MOST_BYTES, "bytes")?)
        };
        let name = name.into_owned();
        PARAMETERS.insert(Arc::new(Parameter { name, value: Value::Bytes(bytes.to_vec()) }))
    })
}

pub(super) unsafe extern "C" fn parameter_delete(parameter: *mut abi::Parameter) {
    call::value("TRITONSERVER_ParameterDelete", (), || PARAMETERS.delete(parameter));
}

/// A parameter in the form that libraries read it: pointers to it live as long as it.
#[derive(Debug)]
pub struct ReadParameter {
    name: std::ffi::CString,
    value: ReadValue,
}

#[derive(Debug)]
enum ReadValue {
    Text(std::ffi::CString),
    Int(Box<i64>),
    Bool(Box<u8>),
    Double(Box<f64>),
}

impl ReadParameter {
    /// Makes it from a parameter of a request or a response.
    pub fn new(name: &str, value: &ParameterValue) -> Self {
        let value = match value {
            ParameterValue::Bool(value) => ReadValue::Bool(Box::new(u8::from(*value))),
            ParameterValue::Int(value) => ReadValue::Int(Box::new(*value)),
            // The interface has no unsigned numbers.
            ParameterValue::Uint(value) => {
                ReadValue::Int(Box::new(i64::try_from(*value).unwrap_or(i64::MAX)))
            }
            ParameterValue::Double(value) => ReadValue::Double(Box::new(*value)),
            ParameterValue::String(value) => ReadValue::Text(text::to_c(value)),
        };
        Self { name: text::to_c(name), value }
    }

    /// Writes name, kind and address of the value to the places that a library gives.
    ///
    /// # Errors
    /// A place is null.
    ///
    /// # Safety
    /// Null, or places that may be written.
    pub unsafe fn put(
        &self,
        name: *mut *const c_char,
        kind: *mut u32,
        value: *mut *const c_void,
    ) -> Result<()> {
        use abi::parameter::{BOOL, DOUBLE, INT, STRING};
        let (number, address) = match &self.value {
            ReadValue::Text(text) => (STRING, text.as_ptr().cast()),
            ReadValue::Int(value) => (INT, slice::from_ref(&**value).as_ptr().cast()),
            ReadValue::Bool(value) => (BOOL, slice::from_ref(&**value).as_ptr().cast()),
            ReadValue::Double(value) => (DOUBLE, slice::from_ref(&**value).as_ptr().cast()),
        };
        // SAFETY: the caller's word.
        unsafe {
            call::put(name, self.name.as_ptr(), "the name")?;
            call::put(kind, number, "the kind")?;
            call::put(value, address, "the value")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_each_kind_are_read_back() {
        let (number, flag, double) = (-5_i64, 1_u8, 2.5_f64);
        // SAFETY: values of their kinds.
        let handles = unsafe {
            [
                parameter_new(c"s".as_ptr(), 0, c"text".as_ptr().cast()),
                parameter_new(c"i".as_ptr(), 1, (&raw const number).cast()),
                parameter_new(c"b".as_ptr(), 2, (&raw const flag).cast()),
                parameter_new(c"d".as_ptr(), 4, (&raw const double).cast()),
                parameter_bytes_new(c"f".as_ptr(), b"\0\x01".as_ptr().cast(), 2),
            ]
        };
        let list = handles.map(<*mut _>::cast_const);
        // SAFETY: a list of five.
        let read = unsafe { read(list.as_ptr(), 5) }.expect("live");
        let plain = |value| Value::Plain(value);
        let expected = [
            plain(ParameterValue::String("text".to_owned())),
            plain(ParameterValue::Int(-5)),
            plain(ParameterValue::Bool(true)),
            plain(ParameterValue::Double(2.5)),
            Value::Bytes(vec![0, 1]),
        ];
        let values: Vec<_> = read.iter().map(|parameter| parameter.value.clone()).collect();
        assert_eq!(values, expected);
        assert_eq!(read[0].value.text().expect("text"), "text");
        read[1].value.text().expect_err("a number");
        for handle in handles {
            // SAFETY: the handle is checked.
            unsafe { parameter_delete(handle) };
        }
        // SAFETY: a list of five.
        unsafe { super::read(list.as_ptr(), 5) }.expect_err("deleted");
        // SAFETY: a kind without a value, and null.
        let refused = unsafe {
            [
                parameter_new(c"x".as_ptr(), 9, (&raw const number).cast()),
                parameter_new(c"x".as_ptr(), 1, ptr::null()),
            ]
        };
        assert!(refused.iter().all(|handle| handle.is_null()));
    }

    #[test]
    fn a_read_parameter_has_its_value_at_its_address() {
        let parameter = ReadParameter::new("n", &ParameterValue::Uint(u64::MAX));
        let (mut name, mut kind, mut value) = (ptr::null(), 9, ptr::null());
        // SAFETY: valid places; the value is an `int64_t` by its kind.
        unsafe {
            parameter.put(&mut name, &mut kind, &mut value).expect("written");
            assert_eq!((kind, value.cast::<i64>().read()), (abi::parameter::INT, i64::MAX));
            assert_eq!(text::read(name, "the name").expect("a text"), "n");
        }
    }
}
