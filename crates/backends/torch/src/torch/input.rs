//! Arguments of `forward` in the form of the shim.

use std::{
    ffi::{CString, c_char, c_void},
    ptr,
};

use bytes::Bytes;
use galatea_backend::batching::{Content, JoinedInput};
use galatea_native_library::{check_over, no_fit};
use galatea_types::{AlignedBlock, DataType, Error, Result, Shape};

use super::{
    element::scalar_type_of,
    interface::{RawInput, STRINGS},
};

/// An argument of `forward`, or an entry of its dictionary.
pub(crate) struct Input {
    /// Key of the entry.
    name: CString,
    shape: Shape,
    content: OwnedInput,
}

enum OwnedInput {
    Elements { scalar_type: i32, data: Bytes },
    Texts(Texts),
}

/// Texts copied one after another, with their positions.
struct Texts {
    _bytes: Vec<u8>,
    pointers: Vec<*const c_char>,
    lengths: Vec<usize>,
}

impl Input {
    /// Makes an argument. Elements are copied only if the model may write to them and others may read them.
    pub fn new(
        name: &str,
        data_type: DataType,
        joined: JoinedInput<'_>,
        may_be_written: bool,
    ) -> Result<Self> {
        let elements = |data, is_shared| {
            let scalar_type = fixed(data_type, &joined.shape, &data)?;
            let data = if may_be_written && is_shared { copy(&data) } else { data };
            Ok::<_, Error>(OwnedInput::Elements { scalar_type, data })
        };
        let content = match joined.content {
            Content::Texts(texts) => OwnedInput::Texts(Texts::new(&texts)),
            Content::Elements(data) => elements(data, joined.is_shared)?,
            Content::OnDevice(data) => elements(data.to_host()?, false)?,
        };
        let name = CString::new(name).map_err(|_| Error::internal("a name holds a zero byte"))?;
        Ok(Self { name, shape: joined.shape, content })
    }

    /// Returns the form that the shim reads. The shim calls `release` once for the data.
    pub(super) fn lend(&mut self) -> RawInput {
        let mut raw = RawInput {
            name: self.name.as_ptr(),
            scalar_type: STRINGS,
            rank: self.shape.len(),
            shape: self.shape.as_ptr(),
            data: ptr::null_mut(),
            string_count: 0,
            strings: ptr::null(),
            lengths: ptr::null(),
            release: None,
            owner: ptr::null_mut(),
        };
        match &mut self.content {
            OwnedInput::Elements { scalar_type, data } => {
                let data = data.clone();
                raw.scalar_type = *scalar_type;
                raw.data = data.as_ptr().cast_mut().cast();
                raw.release = Some(release);
                raw.owner = Box::into_raw(Box::new(data)).cast();
            }
            OwnedInput::Texts(texts) => {
                raw.string_count = texts.pointers.len();
                raw.strings = texts.pointers.as_ptr();
                raw.lengths = texts.lengths.as_ptr();
            }
        }
        raw
    }
}

/// # Safety
/// `owner` must come from [`Input::lend`] and not have been released.
unsafe extern "C" fn release(owner: *mut c_void) {
    // SAFETY: made by `Box::into_raw` of a `Bytes`, given back once. Dropping it may run on any thread.
    drop(unsafe { Box::from_raw(owner.cast::<Bytes>()) });
}

/// Returns the type's number, if `data` has the size and alignment of its elements.
pub(crate) fn fixed(data_type: DataType, shape: &Shape, data: &Bytes) -> Result<i32> {
    let number = scalar_type_of(data_type).ok_or_else(|| no_fit(data, shape, data_type))?;
    check_over(data, shape, data_type).map(|()| number)
}

/// Makes a copy that a model may write to.
pub(crate) fn copy(data: &Bytes) -> Bytes {
    let mut block = AlignedBlock::with_capacity(data.len());
    block.extend_from_slice(data);
    block.into_bytes()
}

impl Texts {
    fn new(texts: &[&[u8]]) -> Self {
        let bytes = texts.concat();
        let mut pointers = Vec::with_capacity(texts.len());
        let mut rest = bytes.as_slice();
        for text in texts {
            pointers.push(rest.as_ptr().cast());
            rest = rest.get(text.len()..).unwrap_or_default();
        }
        Self { pointers, lengths: texts.iter().map(|t| t.len()).collect(), _bytes: bytes }
    }
}
