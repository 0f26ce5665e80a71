//! The functions that a backend's library defines for the server.

use galatea_triton_c::{Library, abi, objects::errors};
use galatea_types::{Error, Result};

type BackendHook = unsafe extern "C" fn(*mut abi::Backend) -> *mut abi::Error;
type AttributeHook =
    unsafe extern "C" fn(*mut abi::Backend, *mut abi::BackendAttribute) -> *mut abi::Error;
type ModelHook = unsafe extern "C" fn(*mut abi::Model) -> *mut abi::Error;
type InstanceHook = unsafe extern "C" fn(*mut abi::ModelInstance) -> *mut abi::Error;
type ExecuteHook =
    unsafe extern "C" fn(*mut abi::ModelInstance, *mut *mut abi::Request, u32) -> *mut abi::Error;

/// The one function that every backend must define.
pub(crate) const EXECUTE: &str = "TRITONBACKEND_ModelInstanceExecute";

/// The hooks of a library. All but one are optional.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    initialize: Option<BackendHook>,
    finalize: Option<BackendHook>,
    attribute: Option<AttributeHook>,
    model_initialize: Option<ModelHook>,
    model_finalize: Option<ModelHook>,
    instance_initialize: Option<InstanceHook>,
    instance_finalize: Option<InstanceHook>,
    instance_ready: Option<InstanceHook>,
    execute: ExecuteHook,
}

impl Hooks {
    pub fn find(library: &Library) -> Result<Self> {
        // SAFETY: the names belong to the interface, which gives these functions their types.
        unsafe {
            Ok(Self {
                initialize: library.function("TRITONBACKEND_Initialize"),
                finalize: library.function("TRITONBACKEND_Finalize"),
                attribute: library.function("TRITONBACKEND_GetBackendAttribute"),
                model_initialize: library.function("TRITONBACKEND_ModelInitialize"),
                model_finalize: library.function("TRITONBACKEND_ModelFinalize"),
                instance_initialize: library.function("TRITONBACKEND_ModelInstanceInitialize"),
                instance_finalize: library.function("TRITONBACKEND_ModelInstanceFinalize"),
                instance_ready: library.function("TRITONBACKEND_ModelInstanceReady"),
                execute: library.function(EXECUTE).ok_or_else(|| {
                    Error::invalid_arg(format!("the library does not define {EXECUTE}"))
                })?,
            })
        }
    }

    pub fn initialize(&self, backend: *mut abi::Backend) -> Result<()> {
        // SAFETY: a live handle.
        self.initialize.map_or(Ok(()), |hook| errors::result(unsafe { hook(backend) }))
    }

    pub fn finalize(&self, backend: *mut abi::Backend) -> Result<()> {
        // SAFETY: a live handle, and nothing of the backend is used any more.
        self.finalize.map_or(Ok(()), |hook| errors::result(unsafe { hook(backend) }))
    }

    pub fn read_attributes(
        &self,
        backend: *mut abi::Backend,
        attributes: *mut abi::BackendAttribute,
    ) -> Result<()> {
        // SAFETY: live handles.
        self.attribute.map_or(Ok(()), |hook| errors::result(unsafe { hook(backend, attributes) }))
    }

    pub fn initialize_model(&self, model: *mut abi::Model) -> Result<()> {
        // SAFETY: a live handle.
        self.model_initialize.map_or(Ok(()), |hook| errors::result(unsafe { hook(model) }))
    }

    pub fn finalize_model(&self, model: *mut abi::Model) -> Result<()> {
        // SAFETY: a live handle, and no instance of the model is left.
        self.model_finalize.map_or(Ok(()), |hook| errors::result(unsafe { hook(model) }))
    }

    pub fn initialize_instance(&self, instance: *mut abi::ModelInstance) -> Result<()> {
        // SAFETY: a live handle.
        self.instance_initialize.map_or(Ok(()), |hook| errors::result(unsafe { hook(instance) }))
    }

    pub fn finalize_instance(&self, instance: *mut abi::ModelInstance) -> Result<()> {
        // SAFETY: a live handle of an instance that does not execute.
        self.instance_finalize.map_or(Ok(()), |hook| errors::result(unsafe { hook(instance) }))
    }

    pub fn has_readiness_check(&self) -> bool {
        self.instance_ready.is_some()
    }

    pub fn check_readiness(&self, instance: *mut abi::ModelInstance) -> Result<()> {
        // SAFETY: a live handle.
        self.instance_ready.map_or(Ok(()), |hook| errors::result(unsafe { hook(instance) }))
    }

    /// Executes requests. The list is only used during the call.
    pub fn execute(
        &self,
        instance: *mut abi::ModelInstance,
        requests: &mut [*mut abi::Request],
    ) -> Result<()> {
        let count = u32::try_from(requests.len()).unwrap_or(u32::MAX);
        // SAFETY: live handles, as many as counted, and no other execution of the instance.
        errors::result(unsafe { (self.execute)(instance, requests.as_mut_ptr(), count) })
    }
}
