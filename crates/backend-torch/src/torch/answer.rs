//! What `forward` returned, in the form of the shim.

use std::{ffi::CStr, ptr::NonNull, slice, sync::Arc};

use galatea_types::{Buffer, DataType, Shape, byte_strings};

use super::{
    element::data_type_of,
    interface::{RawAnswer, RawOutput, STRINGS},
    library::Library,
};

/// What a run returned; freed when the last output's buffer goes.
pub(super) struct Answer {
    library: Arc<Library>,
    answer: NonNull<RawAnswer>,
}

// SAFETY: nothing is written after the run; libtorch frees memory on any thread.
unsafe impl Send for Answer {}
// SAFETY: as above.
unsafe impl Sync for Answer {}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: made by a run and freed here alone.
        unsafe { (self.library.interface.free_answer)(self.answer.as_ptr()) };
    }
}

/// One value that the model returned.
pub(crate) struct Output {
    /// Key in the dictionary it came in.
    pub name: Option<String>,
    /// `None`: a type that no request can carry.
    pub data_type: Option<DataType>,
    pub shape: Shape,
    /// The model's own memory; of texts their wire form.
    pub data: Buffer,
}

/// Part of an answer's memory, as the owner of a buffer.
struct Elements {
    _answer: Arc<Answer>,
    data: *const u8,
    size: usize,
}

// SAFETY: the memory is only read, and lives as long as the answer.
unsafe impl Send for Elements {}

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `data` has `size` readable bytes as long as the answer lives; see `elements_of`.
        unsafe { slice::from_raw_parts(self.data, self.size) }
    }
}

impl Answer {
    /// # Safety
    /// `answer` must come from a run of `library` and be owned by nobody else.
    pub unsafe fn adopt(library: Arc<Library>, answer: *mut RawAnswer) -> Option<Arc<Self>> {
        Some(Arc::new(Self { library, answer: NonNull::new(answer)? }))
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
        if raw.byte_size == 0 || raw.data.is_null() {
            return Buffer::default();
        }
        // The shim promises `byte_size` bytes that nobody writes to.
        let data = raw.data.cast();
        Buffer::from_owner(Elements { _answer: self.clone(), data, size: raw.byte_size })
    }
}

/// Texts are few and scattered: copied into their wire form. One too long for it leaves the rest out, and the
/// number of elements then no longer fits the shape.
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
