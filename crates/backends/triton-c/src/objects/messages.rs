//! Messages: JSON texts that both sides pass (`TRITONSERVER_Message`).

use std::{
    ffi::{CString, c_char},
    sync::Arc,
};

use galatea_types::{Error, Result};
use serde::de::IgnoredAny;

use crate::{Kind, Table, abi, call, text};

const KIND: Kind = Kind { number: 2, name: "TRITONSERVER_Message" };
static MESSAGES: Table<abi::Message, CString> = Table::new(KIND, 1 << 16);
/// Most bytes of a message.
const MOST_BYTES: usize = 64 << 20;

/// Makes a message of a JSON text. Whoever gets the handle deletes it, by [`take`] or `TRITONSERVER_MessageDelete`.
///
/// # Errors
/// `Unavailable` if libraries hold too many.
pub fn give(json: &str) -> Result<*mut abi::Message> {
    MESSAGES.insert(Arc::new(text::to_c(json)))
}

/// Deletes a message and returns its text.
///
/// # Errors
/// The handle is no message.
pub fn take(handle: *const abi::Message) -> Result<String> {
    Ok(MESSAGES.remove(handle)?.to_string_lossy().into_owned())
}

/// Returns the text of a message that its holder keeps.
///
/// # Errors
/// The handle is no message.
pub fn read(handle: *const abi::Message) -> Result<String> {
    Ok(MESSAGES.get(handle)?.to_string_lossy().into_owned())
}

/// A message of the server's own, which lives as long as this. Libraries read it and must not delete it; one that does is told
/// by an error when it uses it again.
#[derive(Debug)]
pub struct OwnMessage(*mut abi::Message);

// SAFETY: the pointer is a number of a table, which all threads may use.
unsafe impl Send for OwnMessage {}
// SAFETY: as above.
unsafe impl Sync for OwnMessage {}

impl OwnMessage {
    /// Makes a message of a JSON text.
    ///
    /// # Errors
    /// Those of [`give`].
    pub fn new(json: &str) -> Result<Self> {
        give(json).map(Self)
    }

    /// Returns its handle.
    pub fn handle(&self) -> *mut abi::Message {
        self.0
    }
}

impl Drop for OwnMessage {
    fn drop(&mut self) {
        let _ = MESSAGES.remove(self.0);
    }
}

pub(super) unsafe extern "C" fn message_new(
    message: *mut *mut abi::Message,
    base: *const c_char,
    byte_size: usize,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_MessageNewFromSerializedJson", || {
        let size = u64::try_from(byte_size).unwrap_or(u64::MAX);
        // SAFETY: the caller gives that many bytes.
        let bytes = unsafe { call::list(base.cast::<u8>(), size, MOST_BYTES, "bytes") }?;
        let json = std::str::from_utf8(bytes).map_err(|error| not_json(&error))?;
        let json = json.trim_end_matches('\0');
        serde_json::from_str::<IgnoredAny>(json).map_err(|error| not_json(&error))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(message, give(json)?, "the message") }
    })
}

fn not_json(error: &impl std::fmt::Display) -> Error {
    Error::invalid_arg(format!("failed to parse JSON of a message: {error}"))
}

pub(super) unsafe extern "C" fn message_delete(message: *mut abi::Message) -> *mut abi::Error {
    call::answer("TRITONSERVER_MessageDelete", || MESSAGES.delete(message))
}

/// Returns a text that lives until the message is deleted.
pub(super) unsafe extern "C" fn message_to_json(
    message: *mut abi::Message,
    base: *mut *const c_char,
    byte_size: *mut usize,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_MessageSerializeToJson", || {
        let held = MESSAGES.get(message)?;
        // SAFETY: the caller gives places for the results; the text lives with the message.
        unsafe {
            call::put(base, held.as_ptr(), "the text")?;
            call::put(byte_size, held.count_bytes(), "the size")
        }
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::objects::errors;

    #[test]
    fn a_message_is_checked_and_read_back() {
        let (mut message, mut base, mut size) = (ptr::null_mut(), ptr::null(), 0);
        let text = br#"{"a":[1,"b"]}"#;
        // SAFETY: valid texts and places.
        unsafe {
            let made = message_new(&mut message, text.as_ptr().cast(), text.len());
            assert!(errors::take(made).is_none());
            assert!(errors::take(message_to_json(message, &mut base, &mut size)).is_none());
            assert_eq!(std::slice::from_raw_parts(base.cast::<u8>(), size), text);
            assert!(errors::take(message_delete(message)).is_none());
            let twice = errors::take(message_delete(message)).expect("an error");
            let expected =
                "TRITONSERVER_MessageDelete: the TRITONSERVER_Message was released before";
            assert_eq!(twice.message(), expected);
            let bad = errors::take(message_new(&mut message, c"{".as_ptr(), 1)).expect("an error");
            assert!(bad.message().starts_with("failed to parse JSON"), "{bad}");
        }
    }
}
