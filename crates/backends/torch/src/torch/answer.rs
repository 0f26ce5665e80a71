//! The result of `forward`, in the form of the shim.

use std::{ffi::CStr, ptr::NonNull, slice, sync::Arc};

use galatea_native_library::{Owned, buffer_over};
use galatea_types::{Buffer, DataType, Shape, byte_strings};

use super::{
    element::data_type_of,
    interface::{RawAnswer, RawOutput, STRINGS},
    library::Library,
};

/// The result of a run. It is freed when the last output's buffer is dropped.
pub(super) struct RunResult {
    library: Arc<Library>,
    answer: Owned<RawAnswer>,
}

// SAFETY: nothing is written after the run; libtorch frees memory on any thread.
unsafe impl Send for RunResult {}
// SAFETY: as above.
unsafe impl Sync for RunResult {}

/// One value that the model returned.
pub(crate) struct Output {
    /// Key in the dictionary that contained it.
    pub name: Option<String>,
    /// Data type. `None`: no request can carry it.
    pub data_type: Option<DataType>,
    pub shape: Shape,
    /// The model's own memory, or the wire form of texts.
    pub data: Buffer,
}

impl RunResult {
    /// # Safety
    /// `answer` must come from a run of `library` and be owned by nobody else.
    pub unsafe fn adopt(library: Arc<Library>, answer: *mut RawAnswer) -> Option<Arc<Self>> {
        // SAFETY: the caller's word.
        let answer = unsafe { Owned::new(answer, library.interface.free_answer) }?;
        Some(Arc::new(Self { library, answer }))
    }

    pub fn outputs(self: &Arc<Self>) -> Vec<Output> {
        let interface = &self.library.interface;
        let answer = self.answer.as_ptr();
        // SAFETY: the answer is alive.
        let count = unsafe { (interface.output_count)(answer) };
        (0..count)
            .map(|index| {
                // SAFETY: the index is in range; what is returned lives as long as the answer.
                self.output(unsafe { &*(interface.output_at)(answer, index) })
            })
            .collect()
    }

    fn output(self: &Arc<Self>, raw: &RawOutput) -> Output {
        // SAFETY: `rank` dimensions, or none; see `slice_of`.
        let shape = Shape::from(unsafe { slice_of(raw.shape, raw.rank) });
        let (data_type, data) = if raw.scalar_type == STRINGS {
            (Some(DataType::Bytes), texts_of(raw, &shape))
        } else {
            (data_type_of(raw.scalar_type), self.elements_of(raw))
        };
        // SAFETY: null, or a terminated text that lives as long as the answer.
        let name = (!raw.name.is_null())
            .then(|| unsafe { CStr::from_ptr(raw.name) }.to_string_lossy().into_owned());
        Output { name, data_type, shape, data }
    }

    fn elements_of(self: &Arc<Self>, raw: &RawOutput) -> Buffer {
        match NonNull::new(raw.data.cast_mut().cast()) {
            // SAFETY: the shim promises `byte_size` bytes that nobody writes to, as long as the answer lives.
            Some(data) if raw.byte_size > 0 => unsafe {
                buffer_over(self.clone(), data, raw.byte_size)
            },
            _ => Buffer::default(),
        }
    }
}

/// Copies texts into their wire form, as they are few and scattered. If one is too long, the rest is left out, and the
/// number of elements then does not fit the shape.
fn texts_of(raw: &RawOutput, shape: &Shape) -> Buffer {
    let count = shape.element_count().unwrap_or(0);
    // SAFETY: as many texts and lengths as the shape says.
    let (texts, lengths) = unsafe { (slice_of(raw.strings, count), slice_of(raw.lengths, count)) };
    let mut data = Vec::with_capacity(lengths.iter().map(|n| n + 4).sum());
    for (&text, &length) in texts.iter().zip(lengths) {
        // SAFETY: each text has its length in bytes, as long as the answer lives.
        if byte_strings::push(&mut data, unsafe { slice_of(text.cast(), length) }).is_err() {
            break;
        }
    }
    Buffer::from(data)
}

/// # Safety
/// Unless `count` is 0, `data` must lead to as many elements that live as long as the result is used.
unsafe fn slice_of<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the caller's word.
    unsafe { slice::from_raw_parts(data, count) }
}
