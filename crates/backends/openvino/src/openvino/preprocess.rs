//! Conversions before and behind a model, for clients that use other types than the model.

use std::{ffi::c_int, ptr};

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
        let processor = processor.as_ptr();
        // SAFETY: the processor is alive; the functions are those of its inputs, or of its outputs.
        unsafe {
            if retyping.is_input {
                let functions = TypeFunctions {
                    info: functions.input_info,
                    free_info: functions.free_input_info,
                    tensor: functions.input_tensor_info,
                    free_tensor: functions.free_input_tensor_info,
                    set_type: functions.set_input_type,
                };
                set_type(library, processor, retyping, &functions)?;
            } else {
                let functions = TypeFunctions {
                    info: functions.output_info,
                    free_info: functions.free_output_info,
                    tensor: functions.output_tensor_info,
                    free_tensor: functions.free_output_tensor_info,
                    set_type: functions.set_output_type,
                };
                set_type(library, processor, retyping, &functions)?;
            }
        }
    }
    let mut built = ptr::null_mut();
    // SAFETY: the processor is alive, the place valid.
    library.check(unsafe { (functions.build_preprocessor)(processor.as_ptr(), &mut built) })?;
    // SAFETY: returned just now, to nobody else.
    unsafe { Model::adopt(library, built) }
}

type Free<T> = unsafe extern "C" fn(*mut T);

/// The functions by which the type of an input, or of an output, is set.
struct TypeFunctions<Info, Tensor> {
    info: unsafe extern "C" fn(*const PreProcessor, usize, *mut *mut Info) -> Status,
    free_info: Free<Info>,
    tensor: unsafe extern "C" fn(*const Info, *mut *mut Tensor) -> Status,
    free_tensor: Free<Tensor>,
    set_type: unsafe extern "C" fn(*mut Tensor, c_int) -> Status,
}

/// Sets the type of an input or output by its number.
///
/// # Safety
/// The processor is alive, and the functions fit each other.
unsafe fn set_type<Info, Tensor>(
    library: &Library,
    processor: *const PreProcessor,
    retyping: &Retyping,
    functions: &TypeFunctions<Info, Tensor>,
) -> Result<()> {
    let (mut info, mut tensor) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the caller's word; each object is checked before it is used.
    unsafe {
        library.check((functions.info)(processor, retyping.index, &mut info))?;
        let info = owned(info, functions.free_info)?;
        library.check((functions.tensor)(info.as_ptr(), &mut tensor))?;
        let tensor = owned(tensor, functions.free_tensor)?;
        let number = element::number_of(retyping.data_type);
        library.check((functions.set_type)(tensor.as_ptr(), number))
    }
}
