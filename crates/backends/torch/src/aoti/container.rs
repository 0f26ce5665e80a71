//! The compiled model of a package: its weights, executions and runs.

use std::{
    ffi::{CStr, CString},
    path::Path,
    ptr,
    sync::Arc,
    thread,
};

use bytes::Bytes;

use super::{
    call_spec::CallSpec,
    functions::{BUFFER, ContainerHandle, ModelFunctions},
    object::{Object, Runtime},
    tensor::{Device, Operand, Origin, StableCallError, Tensor},
};
use crate::torch::Output;

/// Constants of a compiled model on one device, with the executions that may use them at the same time.
pub(super) struct Container {
    handle: ContainerHandle,
    object: Arc<Object>,
    runtime: Runtime,
    /// Number of the GPU. `None`: the CPU.
    gpu: Option<u32>,
    pub input_count: usize,
    pub output_count: usize,
    /// True if an execution may leave data for the next ones. The code does not say if it does.
    pub has_state: bool,
}

// SAFETY: the container hands its executions out under a lock of its own, to any thread.
unsafe impl Send for Container {}
// SAFETY: as above.
unsafe impl Sync for Container {}

impl Drop for Container {
    fn drop(&mut self) {
        let (functions, handle) = (self.object.functions, SendPointer(self.handle));
        on_own_thread(move || {
            // SAFETY: made by `create`, deleted here alone; whatever uses it holds it. Failures say so on stderr.
            let _ = unsafe { (functions.delete)(handle.get()) };
        });
    }
}

struct SendPointer(ContainerHandle);

// SAFETY: used by one thread after the other.
unsafe impl Send for SendPointer {}

impl SendPointer {
    fn get(&self) -> ContainerHandle {
        self.0
    }
}

/// Runs `work` on a thread of its own. Compiled code leaves data on each thread that calls it, and stays mapped as long as
/// such a thread lives. So threads that outlive a model do not call it.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

impl Container {
    /// Creates a container. `runs`: number of simultaneous executions. `folder` contains files that the code opens when it
    /// needs them.
    pub fn create(
        object: &Arc<Object>,
        runtime: &Runtime,
        folder: &Path,
        gpu: Option<u32>,
        runs: usize,
    ) -> Result<Self, String> {
        on_own_thread(|| {
            let device = gpu.map_or_else(|| "cpu".to_owned(), |index| format!("cuda:{index}"));
            let device = CString::new(device).map_err(|e| e.to_string())?;
            let folder = CString::new(folder.as_os_str().as_encoded_bytes())
                .map_err(|_| "the path of the temporary folder holds a zero byte".to_owned())?;
            let mut handle = ptr::null_mut();
            // SAFETY: terminated texts, a valid place for the result.
            let status = unsafe {
                (object.functions.create)(&mut handle, runs, device.as_ptr(), folder.as_ptr())
            };
            object.check(runtime, status)?;
            let mut container = Self {
                handle,
                object: object.clone(),
                runtime: runtime.clone(),
                gpu,
                input_count: 0,
                output_count: 0,
                has_state: false,
            };
            container.input_count = container.count(|functions| functions.input_count)?;
            container.output_count = container.count(|functions| functions.output_count)?;
            container.has_state = container.has_buffers()?;
            Ok(container)
        })
    }

    pub fn is_on_cpu(&self) -> bool {
        self.gpu.is_none()
    }

    fn count(
        &self,
        get: impl Fn(&ModelFunctions) -> unsafe extern "C" fn(ContainerHandle, *mut usize) -> i32,
    ) -> Result<usize, String> {
        let mut count = 0;
        // SAFETY: the container is alive, the place for the result valid.
        let status = unsafe { get(&self.object.functions)(self.handle, &mut count) };
        self.object.check(&self.runtime, status)?;
        Ok(count)
    }

    fn has_buffers(&self) -> Result<bool, String> {
        for index in 0..self.count(|functions| functions.constant_count)? {
            let mut kind = 0;
            // SAFETY: the index is in range, the place for the result valid.
            let status =
                unsafe { (self.object.functions.constant_type)(self.handle, index, &mut kind) };
            self.object.check(&self.runtime, status)?;
            if kind == BUFFER {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn call_spec(&self) -> Result<CallSpec, String> {
        on_own_thread(|| {
            let (mut takes, mut returns) = (ptr::null(), ptr::null());
            // SAFETY: the container is alive, the places for results valid; texts live as long as it.
            let texts = unsafe {
                let status =
                    (self.object.functions.call_spec)(self.handle, &mut takes, &mut returns);
                self.object.check(&self.runtime, status)?;
                [takes, returns].map(|text| match text.is_null() {
                    true => String::new(),
                    false => CStr::from_ptr(text).to_string_lossy().into_owned(),
                })
            };
            let [takes, returns] = texts;
            Ok(CallSpec::read(&takes, &returns, self.input_count, self.output_count))
        })
    }

    /// Runs the model. Waits if all executions are in use. There must be as many operands as inputs.
    pub fn run(self: &Arc<Self>, operands: Vec<Operand>) -> Result<Vec<Output>, String> {
        if operands.len() != self.input_count {
            return Err(format!(
                "{} inputs for a model that takes {}",
                operands.len(),
                self.input_count
            ));
        }
        let inputs = operands.iter().map(|operand| self.input(operand)).collect::<Result<_, _>>();
        let outputs = self.call(inputs.map_err(|e| self.explain(e))?)?;
        let inputs: Vec<Bytes> = operands.into_iter().map(|operand| operand.data).collect();
        let origin = Arc::new(Origin { _inputs: inputs, _container: self.clone() });
        let outputs: Result<_, _> =
            outputs.into_iter().map(|t| t.into_output(&origin, self.has_state)).collect();
        outputs.map_err(|e| self.explain(e))
    }

    fn input(&self, operand: &Operand) -> Result<Tensor, StableCallError> {
        // SAFETY: operands live until the outputs have been made, and then as their origin.
        let tensor = unsafe { Tensor::over(self.runtime.tensors, operand) }?;
        let Some(gpu) = self.gpu else { return Ok(tensor) };
        // SAFETY: takes nothing.
        let kind = unsafe { (self.runtime.tensors.cuda)() };
        let index = i32::try_from(gpu).map_err(|_| StableCallError)?;
        tensor.copy_to(Device { kind, index })
    }

    fn call(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
        let mut inputs: Vec<_> = inputs.into_iter().map(Tensor::into_handle).collect();
        let mut outputs = vec![ptr::null_mut(); self.output_count];
        // SAFETY: as many handles as the model takes, given away, and places for as many as it returns. The code
        // runs on the stream that is the device's own, and calls nothing that needs an executor (see `archive`).
        let status = unsafe {
            (self.object.functions.run)(
                self.handle,
                inputs.as_mut_ptr(),
                inputs.len(),
                outputs.as_mut_ptr(),
                outputs.len(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let tensors = self.runtime.tensors;
        // SAFETY: handles that the call left are the caller's, whether it succeeded or not.
        let outputs: Vec<_> =
            outputs.into_iter().map(|handle| unsafe { Tensor::adopt(tensors, handle) }).collect();
        // After a failure the state of the inputs is unknown: losing them is better than freeing them twice.
        self.object.check(&self.runtime, status)?;
        let outputs: Option<Vec<Tensor>> = outputs.into_iter().collect();
        outputs.ok_or_else(|| "the compiled code left out an output".to_owned())
    }

    fn explain(&self, _: StableCallError) -> String {
        let said = self.runtime.last_exception();
        said.unwrap_or_else(|| "a tensor could not be made or read".to_owned())
    }
}
