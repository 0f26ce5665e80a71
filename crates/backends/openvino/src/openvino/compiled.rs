//! A compiled model, which all instances share.

use std::{ptr, sync::Arc};

use galatea_native_library::Owned;
use galatea_types::Result;

use super::{
    functions::CompiledModel as RawCompiledModel,
    library::{Library, c_text, owned},
    request::InferRequest,
};

/// A compiled model. Its infer requests run independently of each other.
pub(crate) struct CompiledModel {
    library: Arc<Library>,
    compiled: Owned<RawCompiledModel>,
}

// SAFETY: compiled models are constant; making requests and reading properties is allowed from any thread at once.
unsafe impl Send for CompiledModel {}
// SAFETY: as above.
unsafe impl Sync for CompiledModel {}

impl CompiledModel {
    /// # Safety
    /// `compiled` must be null or a compiled model that nobody else frees. Infer requests keep what they need of it.
    pub(super) unsafe fn adopt(
        library: &Arc<Library>,
        compiled: *mut RawCompiledModel,
    ) -> Result<Self> {
        // SAFETY: the caller's word.
        let compiled = unsafe { owned(compiled, library.functions.free_compiled) }?;
        Ok(Self { library: library.clone(), compiled })
    }

    /// Returns a property that it was compiled with, as the library writes it.
    pub fn property(&self, key: &str) -> Result<String> {
        let key = c_text(key)?;
        let mut value = ptr::null_mut();
        let get = self.library.functions.compiled_property;
        // SAFETY: the model is alive, the key terminated, the place valid.
        let status = unsafe { get(self.compiled.as_ptr(), key.as_ptr(), &mut value) };
        self.library.check(status)?;
        self.library.take_text(value)
    }

    pub fn new_request(&self) -> Result<InferRequest> {
        let mut request = ptr::null_mut();
        let create = self.library.functions.create_request;
        // SAFETY: the model is alive, the place valid.
        self.library.check(unsafe { create(self.compiled.as_ptr(), &mut request) })?;
        // SAFETY: returned just now, to nobody else.
        unsafe { InferRequest::adopt(&self.library, request) }
    }
}
