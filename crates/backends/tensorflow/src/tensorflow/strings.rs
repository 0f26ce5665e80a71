//! Texts in tensors. Each is an object of 24 bytes that may have memory of its own.

use std::{
    ffi::{c_char, c_void},
    slice,
    sync::Arc,
};

use galatea_native_library::{push_text, room_for};
use galatea_types::Result;

use super::{functions::RawString, library::Library};

/// The elements of a tensor of texts, until the library frees it.
pub(super) struct Texts {
    library: Arc<Library>,
    elements: Vec<RawString>,
}

impl Texts {
    /// Copies `texts`.
    pub fn new(library: &Arc<Library>, texts: &[&[u8]]) -> Result<Self> {
        let elements = room_for(texts.len(), "a tensor")?;
        let mut made = Self { library: library.clone(), elements };
        for text in texts {
            let mut element = RawString::ZEROED;
            // SAFETY: the element is made a text before its content is set; the content is copied. Moving it
            // is sound: a text holds its bytes or a pointer to the heap, and none to itself.
            unsafe {
                (library.functions.string_init)(&mut element);
                (library.functions.string_copy)(&mut element, text.as_ptr().cast(), text.len());
            }
            made.elements.push(element);
        }
        Ok(made)
    }

    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        self.elements.as_mut_ptr().cast()
    }

    pub fn byte_size(&self) -> usize {
        size_of_val(self.elements.as_slice())
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        for element in &mut self.elements {
            // SAFETY: each was made a text and is freed once.
            unsafe { (self.library.functions.string_free)(element) };
        }
    }
}

/// Returns the texts at `data` in the wire form: each has a `u32` length and its bytes.
///
/// # Safety
/// `data` must point to `count` texts that live.
pub(super) unsafe fn to_length_prefixed(
    library: &Library,
    data: *const RawString,
    count: usize,
) -> Result<Vec<u8>> {
    // SAFETY: as the caller says.
    let texts = unsafe { slice::from_raw_parts(data, count) };
    let functions = &library.functions;
    // SAFETY: each is a text that lives.
    let size = |text: &RawString| unsafe { (functions.string_size)(text) };
    let total = texts.iter().map(|text| size(text).saturating_add(4));
    let total = total.fold(0usize, usize::saturating_add);
    let mut wire = room_for(total, "a tensor")?;
    for text in texts {
        // SAFETY: a text has as many bytes as its size says, and lives.
        let bytes = unsafe {
            let start: *const c_char = (functions.string_data)(text);
            if start.is_null() { &[][..] } else { slice::from_raw_parts(start.cast(), size(text)) }
        };
        push_text(&mut wire, bytes)?;
    }
    Ok(wire)
}
