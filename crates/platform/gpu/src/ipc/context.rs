//! The primary context of a GPU, which everything in this process shares, and a stream for copies.

use std::sync::Arc;

use super::{
    Library,
    functions::{CuContext, CuStream, NON_BLOCKING},
};
use crate::{driver::CuDevice, error::GpuError};

/// A context that is kept, and a stream of its own in it. The driver counts who keeps a context, models included, and frees
/// its memory after the last of them.
pub(super) struct Context {
    library: Arc<Library>,
    retained: RetainedContext,
    stream: CuStream,
}

impl Context {
    pub fn of_gpu(library: Arc<Library>, index: u32) -> Result<Self, GpuError> {
        let retained = RetainedContext::of_gpu(library.clone(), index)?;
        let mut stream = CuStream(0);
        let entered = retained.enter()?;
        // SAFETY: the out pointer is valid, and a context is current.
        let result = unsafe { (library.functions.create_stream)(&mut stream, NON_BLOCKING) };
        library.driver.check("cuStreamCreate", result)?;
        drop(entered);
        Ok(Self { library, retained, stream })
    }

    pub fn library(&self) -> &Library {
        &self.library
    }

    pub fn stream(&self) -> CuStream {
        self.stream
    }

    /// Makes the context that of this thread until the returned value is dropped. Others that the thread uses come back then.
    pub fn enter(&self) -> Result<EnteredContext<'_>, GpuError> {
        self.retained.enter()
    }

    /// Waits until all copies on the stream have ended.
    pub fn finish_copies(&self) -> Result<(), GpuError> {
        // SAFETY: the stream lives as long as `self`.
        let result = unsafe { (self.library.functions.synchronize_stream)(self.stream) };
        self.library.driver.check("cuStreamSynchronize", result)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let destroy = || {
            let _entered = self.retained.enter()?;
            // SAFETY: the stream was created here, and nobody uses it any more.
            let result = unsafe { (self.library.functions.destroy_stream)(self.stream) };
            self.library.driver.check("cuStreamDestroy", result)
        };
        log_failure(destroy());
    }
}

/// The part of a context that must be given back even if no stream can be created.
struct RetainedContext {
    library: Arc<Library>,
    device: CuDevice,
    context: CuContext,
}

impl RetainedContext {
    fn of_gpu(library: Arc<Library>, index: u32) -> Result<Self, GpuError> {
        let device = library.driver.device(index)?;
        let mut context = CuContext(0);
        // SAFETY: the out pointer is valid; the device came from the driver, which was started.
        let result = unsafe { (library.functions.retain_context)(&mut context, device) };
        library.driver.check("cuDevicePrimaryCtxRetain", result)?;
        Ok(Self { library, device, context })
    }

    fn enter(&self) -> Result<EnteredContext<'_>, GpuError> {
        // SAFETY: the context is kept, so it exists.
        let result = unsafe { (self.library.functions.push_context)(self.context) };
        self.library.driver.check("cuCtxPushCurrent", result)?;
        Ok(EnteredContext { library: &self.library, _thread: std::marker::PhantomData })
    }
}

impl Drop for RetainedContext {
    fn drop(&mut self) {
        // SAFETY: gives back what `of_gpu` has kept, once.
        let result = unsafe { (self.library.functions.release_context)(self.device) };
        log_failure(self.library.driver.check("cuDevicePrimaryCtxRelease", result));
    }
}

/// A context that is current on this thread.
pub(super) struct EnteredContext<'c> {
    library: &'c Library,
    /// Only the thread that has entered may leave.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Drop for EnteredContext<'_> {
    fn drop(&mut self) {
        let mut left = CuContext(0);
        // SAFETY: the out pointer is valid; this thread has entered the context before.
        let result = unsafe { (self.library.functions.pop_context)(&mut left) };
        log_failure(self.library.driver.check("cuCtxPopCurrent", result));
    }
}

/// Logs that something could not be given back. Nobody is left who could be told.
pub(super) fn log_failure(result: Result<(), GpuError>) {
    if let Err(error) = result {
        log::warn!("The memory of a GPU that a client shared was not given back entirely: {error}");
    }
}
