//! Texts in tensors. The C interface takes texts and does not return them. They are read in the form of GCC's C++ library,
//! after a check that the library uses it.

use std::{
    ffi::CString,
    ptr::{self, NonNull},
    slice,
};

use galatea_native_library::push_text;
use galatea_types::{Error, Result};

use super::functions::{Functions, OK, RawShape, Tensor as RawTensor};

/// The memory of a `std::string`: address, length, and room for short ones.
#[repr(C)]
struct StdString {
    data: *const u8,
    length: usize,
    room: [u8; 16],
}

/// Bytes of an element.
pub(super) const SIZE: usize = size_of::<StdString>();

/// A text short enough to lie in the element itself, and one that is too long.
const PROBES: [&std::ffi::CStr; 2] =
    [c"short", c"a text that is longer than the room in the element"];

/// Returns true if a tensor of known texts holds them in the expected form.
pub(super) fn have_known_form(functions: &Functions) -> bool {
    let pointers = PROBES.map(|text| text.as_ptr());
    let mut dims = [2];
    let shape = RawShape { rank: 1, dims: dims.as_mut_ptr() };
    let mut tensor: *mut RawTensor = ptr::null_mut();
    // SAFETY: two terminated texts, a shape of two elements, a valid place; the tensor is freed once. Elements are
    // looked at only where they have the size of the known form, and their texts only where the lengths are right.
    unsafe {
        if (functions.tensor_of_texts)(pointers.as_ptr(), 2, shape, &mut tensor) != OK {
            return false;
        }
        let (mut size, mut data) = (0, ptr::null_mut());
        let is_known = (functions.tensor_byte_size)(tensor, &mut size) == OK
            && size == 2 * SIZE
            && (functions.tensor_data)(tensor, &mut data) == OK
            && NonNull::new(data.cast::<StdString>())
                .is_some_and(|elements| holds_probes(elements));
        (functions.free_tensor)(tensor);
        is_known
    }
}

/// # Safety
/// There must be two elements of [`SIZE`] bytes.
unsafe fn holds_probes(elements: NonNull<StdString>) -> bool {
    // SAFETY: as above.
    let elements = unsafe { slice::from_raw_parts(elements.as_ptr(), 2) };
    elements.iter().zip(PROBES).all(|(element, probe)| {
        let probe = probe.to_bytes();
        let is_inside = element.data == element.room.as_ptr();
        element.length == probe.len()
            && !element.data.is_null()
            && is_inside == (probe.len() < element.room.len())
            // SAFETY: the length is right, and the address is in the element or the library's own.
            && unsafe { slice::from_raw_parts(element.data, element.length) } == probe
    })
}

/// Copies texts as the library takes them.
pub(super) fn terminated(texts: &[&[u8]]) -> Result<Vec<CString>> {
    let terminated = |text: &&[u8]| {
        CString::new(*text).map_err(|_| {
            Error::invalid_arg(
                "a text holds a zero byte: OpenVINO's C interface takes texts only up to the first one",
            )
        })
    };
    texts.iter().map(terminated).collect()
}

/// # Safety
/// At `data` there must be `count` texts of the known form, alive and not written to.
pub(super) unsafe fn to_length_prefixed(data: NonNull<u8>, count: usize) -> Result<Vec<u8>> {
    // SAFETY: as above; the form is known.
    let elements = unsafe { slice::from_raw_parts(data.cast::<StdString>().as_ptr(), count) };
    let mut wire = Vec::new();
    for element in elements {
        let text = match element.length {
            0 => &[][..],
            // SAFETY: as above.
            length => unsafe { slice::from_raw_parts(element.data, length) },
        };
        push_text(&mut wire, text)?;
    }
    Ok(wire)
}
