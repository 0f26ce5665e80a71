//! What one instance runs a model with.

use std::{
    ptr::{self, NonNull},
    sync::Arc,
};

use galatea_types::Result;

use super::{
    functions::InferRequest as RawRequest,
    library::{Library, non_null},
    tensor::Tensor,
};

/// The inputs, the outputs and the run of one instance.
///
/// It keeps the tensors that it was given, and with those of the caller's memory an address that may be gone after the
/// run: nothing but a run reads it, and whoever runs sets every input before.
pub(crate) struct InferRequest {
    library: Arc<Library>,
    request: NonNull<RawRequest>,
}

// SAFETY: any thread may drive it, one at a time; it is not shared.
unsafe impl Send for InferRequest {}

impl Drop for InferRequest {
    fn drop(&mut self) {
        // SAFETY: adopted once, freed here alone.
        unsafe { (self.library.functions.free_request)(self.request.as_ptr()) };
    }
}

impl InferRequest {
    /// # Safety
    /// `request` must be null or a request that nobody else uses.
    pub(super) unsafe fn adopt(library: &Arc<Library>, request: *mut RawRequest) -> Result<Self> {
        Ok(Self { library: library.clone(), request: non_null(request)? })
    }

    /// Computes. `inputs`: one tensor for each input of the model, in its order.
    ///
    /// # Errors
    /// Those of the library; a division of integers that has no result.
    pub fn infer(&self, inputs: &[Tensor]) -> Result<()> {
        for (index, tensor) in inputs.iter().enumerate() {
            // SAFETY: the request is alive and idle, the tensor alive for the run that follows.
            let status = unsafe {
                (self.library.functions.set_input)(self.request.as_ptr(), index, tensor.as_ptr())
            };
            self.library.check(status)?;
        }
        // SAFETY: as above; what the inputs lie over lives as long as `inputs`, and is only read.
        let infer = || unsafe { (self.library.functions.infer)(self.request.as_ptr()) };
        let status = self.library.faults().run(infer)?;
        self.library.check(status)
    }

    /// Where runs write an output from now on.
    pub fn set_output(&self, index: usize, tensor: &Tensor) -> Result<()> {
        let set = self.library.functions.set_output;
        // SAFETY: request and tensor are alive; the request shares the tensor's memory.
        self.library.check(unsafe { set(self.request.as_ptr(), index, tensor.as_ptr()) })
    }

    /// What the last run wrote. The next one writes into the same memory.
    pub fn output(&self, index: usize) -> Result<Tensor> {
        let mut tensor = ptr::null_mut();
        let get = self.library.functions.get_output;
        // SAFETY: the request is alive, the place valid.
        self.library.check(unsafe { get(self.request.as_ptr(), index, &mut tensor) })?;
        // SAFETY: a new reference to a tensor of host memory, which is ours.
        unsafe { Tensor::adopt(&self.library, tensor) }
    }
}
