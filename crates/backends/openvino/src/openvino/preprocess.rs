//! Conversions before and behind a model, for clients that use other types than the model.

use std::ptr;

use galatea_types::Result;

use super::{
    element,
    functions::{PreProcessor, Status},
    library::{Library, owned},
    model::{Model, Retyping},
};

/// Returns the model with conversions before and behind it for types that are not its own.
pub(crate) fn retyped(model: Model, retypings: &[Retyping]) -> Result<Model> {
    if retypings.is_empty() {
        return Ok(model);
    }
    let library = &model.library;
    let functions = &library.functions;
    let mut processor = ptr::null_mut();
    // SAFETY: the model is alive, the place valid.
    library.check(unsafe { (functions.create_preprocessor)(model.as_ptr(), &mut processor) })?;
    // SAFETY: made just now.
    let processor = unsafe { owned(processor, functions.free_preprocessor) }?;
    for retyping in retypings {
        let place = (processor.as_ptr().cast_const(), retyping.index);
        let number = element::number_of(retyping.data_type);
        // SAFETY: the processor is alive; the functions are those of its inputs, or of its outputs.
        unsafe {
            match retyping.is_input {
                true => set_type(
                    library,
                    place,
                    (functions.input_info, functions.free_input_info),
                    (functions.input_tensor_info, functions.free_input_tensor_info),
                    |tensor| (functions.set_input_type)(tensor, number),
                )?,
                false => set_type(
                    library,
                    place,
                    (functions.output_info, functions.free_output_info),
                    (functions.output_tensor_info, functions.free_output_tensor_info),
                    |tensor| (functions.set_output_type)(tensor, number),
                )?,
            }
        }
    }
    let mut built = ptr::null_mut();
    // SAFETY: the processor is alive, the place valid.
    library.check(unsafe { (functions.build_preprocessor)(processor.as_ptr(), &mut built) })?;
    // SAFETY: returned just now, to nobody else.
    unsafe { Model::adopt(library, built) }
}

type Get<From, To> = unsafe extern "C" fn(*const From, *mut *mut To) -> Status;
type GetAt<From, To> = unsafe extern "C" fn(*const From, usize, *mut *mut To) -> Status;
type Free<T> = unsafe extern "C" fn(*mut T);

/// Sets the type of an input or output by its number.
///
/// # Safety
/// The processor is alive, and the functions fit each other.
unsafe fn set_type<Info, Tensor>(
    library: &Library,
    (processor, index): (*const PreProcessor, usize),
    (info_at, free_info): (GetAt<PreProcessor, Info>, Free<Info>),
    (tensor_of, free_tensor): (Get<Info, Tensor>, Free<Tensor>),
    set: impl FnOnce(*mut Tensor) -> Status,
) -> Result<()> {
    let (mut info, mut tensor) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the caller's word; each object is checked before it is used.
    unsafe {
        library.check(info_at(processor, index, &mut info))?;
        let info = owned(info, free_info)?;
        library.check(tensor_of(info.as_ptr(), &mut tensor))?;
        library.check(set(owned(tensor, free_tensor)?.as_ptr()))
    }
}
