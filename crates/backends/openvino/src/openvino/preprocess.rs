//! Conversions before and behind a model, for clients that send and want other types than it has.

use std::{
    ptr::{self, NonNull},
    sync::Arc,
};

use galatea_types::Result;

use super::{
    element,
    functions::PreProcessor as RawPreProcessor,
    library::{Library, non_null},
    model::{Model, Retyping},
};

struct PreProcessor<'l> {
    library: &'l Arc<Library>,
    processor: NonNull<RawPreProcessor>,
}

impl Drop for PreProcessor<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `retyped`, freed here alone.
        unsafe { (self.library.functions.free_preprocessor)(self.processor.as_ptr()) };
    }
}

/// The model with a conversion before and behind it, where the types asked for are not its own.
pub(crate) fn retyped(model: Model, retypings: &[Retyping]) -> Result<Model> {
    if retypings.is_empty() {
        return Ok(model);
    }
    let library = model.library();
    let functions = &library.functions;
    let mut processor = ptr::null_mut();
    // SAFETY: the model is alive, the place valid.
    library.check(unsafe { (functions.create_preprocessor)(model.as_ptr(), &mut processor) })?;
    let processor = PreProcessor { library, processor: non_null(processor)? };
    for retyping in retypings {
        match retyping.is_input {
            true => processor.set_input_type(retyping)?,
            false => processor.set_output_type(retyping)?,
        }
    }
    let mut built = ptr::null_mut();
    // SAFETY: the processor is alive, the place valid.
    let status =
        unsafe { (functions.build_preprocessor)(processor.processor.as_ptr(), &mut built) };
    library.check(status)?;
    // SAFETY: returned just now, to nobody else.
    unsafe { Model::adopt(library, built) }
}

impl PreProcessor<'_> {
    fn set_input_type(&self, retyping: &Retyping) -> Result<()> {
        let functions = &self.library.functions;
        let (mut info, mut tensor) = (ptr::null_mut(), ptr::null_mut());
        let number = element::number_of(retyping.data_type);
        // SAFETY: the processor is alive; each object is checked before it is used, and freed once, after its last use.
        unsafe {
            let processor = self.processor.as_ptr();
            self.library.check((functions.input_info)(processor, retyping.index, &mut info))?;
            let found = self.library.check((functions.input_tensor_info)(info, &mut tensor));
            let set = found.and_then(|()| {
                let set = self.library.check((functions.set_input_type)(tensor, number));
                (functions.free_input_tensor_info)(tensor);
                set
            });
            (functions.free_input_info)(info);
            set
        }
    }

    fn set_output_type(&self, retyping: &Retyping) -> Result<()> {
        let functions = &self.library.functions;
        let (mut info, mut tensor) = (ptr::null_mut(), ptr::null_mut());
        let number = element::number_of(retyping.data_type);
        // SAFETY: as in `set_input_type`.
        unsafe {
            let processor = self.processor.as_ptr();
            self.library.check((functions.output_info)(processor, retyping.index, &mut info))?;
            let found = self.library.check((functions.output_tensor_info)(info, &mut tensor));
            let set = found.and_then(|()| {
                let set = self.library.check((functions.set_output_type)(tensor, number));
                (functions.free_output_tensor_info)(tensor);
                set
            });
            (functions.free_output_info)(info);
            set
        }
    }
}
