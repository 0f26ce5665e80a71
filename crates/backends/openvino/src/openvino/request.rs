//! The infer request with which an instance runs a model.

use std::{ptr, sync::Arc};

use galatea_native_library::Owned;
use galatea_types::Result;

use super::{
    functions::InferRequest as RawRequest,
    library::{Library, owned},
    tensor::Tensor,
};

/// The inputs, the outputs and the run of one instance.
/// It keeps the tensors that it was given, and with a caller's memory an address that may be freed after the run. Only a run
/// reads it, and every caller of a run sets all inputs before.
pub(crate) struct InferRequest {
    library: Arc<Library>,
    request: Owned<RawRequest>,
}

// SAFETY: any thread may drive it, one at a time; it is not shared.
unsafe impl Send for InferRequest {}

impl InferRequest {
    /// # Safety
    /// `request` must be null or a request that nobody else uses.
    pub(super) unsafe fn adopt(library: &Arc<Library>, request: *mut RawRequest) -> Result<Self> {
        // SAFETY: the caller's word.
        let request = unsafe { owned(request, library.functions.free_request) }?;
        Ok(Self { library: library.clone(), request })
    }

    /// Sets the tensor from which later runs read an input.
    ///
    /// The memory of the tensor must outlive all later runs until the input is set again.
    pub fn set_input(&self, index: usize, tensor: &Tensor) -> Result<()> {
        let set = self.library.functions.set_input;
        // SAFETY: request and tensor are alive; a tensor of the library's own memory is shared.
        self.library.check(unsafe { set(self.request.as_ptr(), index, tensor.as_ptr()) })
    }

    /// Computes on this thread and those that help it. Handing a run over to another thread would cost more than a small
    /// model takes.
    ///
    /// # Errors
    /// Those of the library, and a division of integers without a result.
    pub fn infer(&self) -> Result<()> {
        // SAFETY: the request is alive and idle, and so is what its inputs lie over (see `set_input`).
        let infer = || unsafe { (self.library.functions.infer)(self.request.as_ptr()) };
        let status = self.library.faults.run(infer)?;
        self.library.check(status)
    }

    /// Sets the tensor into which later runs write an output.
    pub fn set_output(&self, index: usize, tensor: &Tensor) -> Result<()> {
        let set = self.library.functions.set_output;
        // SAFETY: request and tensor are alive; the request shares the tensor's memory.
        self.library.check(unsafe { set(self.request.as_ptr(), index, tensor.as_ptr()) })
    }

    /// Returns the tensor that the last run wrote. Read it before the inputs are freed: it may lie in their memory. The next
    /// run writes into the same.
    pub fn output(&self, index: usize) -> Result<Tensor> {
        let mut tensor = ptr::null_mut();
        let get = self.library.functions.get_output;
        // SAFETY: the request is alive, the place valid.
        self.library.check(unsafe { get(self.request.as_ptr(), index, &mut tensor) })?;
        // SAFETY: a new reference to a tensor of host memory, which is ours.
        unsafe { Tensor::adopt(&self.library, tensor) }
    }
}
