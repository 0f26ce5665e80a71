//! The functions that a backend's library defines for the server.

use galatea_triton_c::{Hook, Library, abi};
use galatea_types::{Error, Result};

type BackendHook = Hook<(*mut abi::Backend,)>;
type AttributeHook = Hook<(*mut abi::Backend, *mut abi::BackendAttribute)>;
type ModelHook = Hook<(*mut abi::Model,)>;
type InstanceHook = Hook<(*mut abi::ModelInstance,)>;
type ExecuteHook = Hook<(*mut abi::ModelInstance, *mut *mut abi::Request, u32)>;

/// The one function that every backend must define.
pub(crate) const EXECUTE: &str = "TRITONBACKEND_ModelInstanceExecute";

/// The hooks of a library. All but one are optional.
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
                initialize: Hook::find(library, "TRITONBACKEND_Initialize"),
                finalize: Hook::find(library, "TRITONBACKEND_Finalize"),
                attribute: Hook::find(library, "TRITONBACKEND_GetBackendAttribute"),
                model_initialize: Hook::find(library, "TRITONBACKEND_ModelInitialize"),
                model_finalize: Hook::find(library, "TRITONBACKEND_ModelFinalize"),
                instance_initialize: Hook::find(library, "TRITONBACKEND_ModelInstanceInitialize"),
                instance_finalize: Hook::find(library, "TRITONBACKEND_ModelInstanceFinalize"),
                instance_ready: Hook::find(library, "TRITONBACKEND_ModelInstanceReady"),
                execute: Hook::find(library, EXECUTE).ok_or_else(|| {
                    Error::invalid_arg(format!("the library does not define {EXECUTE}"))
                })?,
            })
        }
    }

    pub fn initialize(&self, backend: *mut abi::Backend) -> Result<()> {
        // SAFETY: a live handle.
        self.initialize.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((backend,)) })
    }

    pub fn finalize(&self, backend: *mut abi::Backend) -> Result<()> {
        // SAFETY: a live handle, and nothing of the backend is used any more.
        self.finalize.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((backend,)) })
    }

    pub fn read_attributes(
        &self,
        backend: *mut abi::Backend,
        attributes: *mut abi::BackendAttribute,
    ) -> Result<()> {
        // SAFETY: live handles.
        self.attribute.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((backend, attributes)) })
    }

    pub fn initialize_model(&self, model: *mut abi::Model) -> Result<()> {
        // SAFETY: a live handle.
        self.model_initialize.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((model,)) })
    }

    pub fn finalize_model(&self, model: *mut abi::Model) -> Result<()> {
        // SAFETY: a live handle, and no instance of the model is left.
        self.model_finalize.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((model,)) })
    }

    pub fn initialize_instance(&self, instance: *mut abi::ModelInstance) -> Result<()> {
        // SAFETY: a live handle.
        self.instance_initialize.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((instance,)) })
    }

    pub fn finalize_instance(&self, instance: *mut abi::ModelInstance) -> Result<()> {
        // SAFETY: a live handle of an instance that does not execute.
        self.instance_finalize.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((instance,)) })
    }

    pub fn has_readiness_check(&self) -> bool {
        self.instance_ready.is_some()
    }

    pub fn check_readiness(&self, instance: *mut abi::ModelInstance) -> Result<()> {
        // SAFETY: a live handle.
        self.instance_ready.as_ref().map_or(Ok(()), |hook| unsafe { hook.call((instance,)) })
    }

    /// Executes requests. The list is only used during the call.
    pub fn execute(
        &self,
        instance: *mut abi::ModelInstance,
        requests: &mut [*mut abi::Request],
    ) -> Result<()> {
        let count = u32::try_from(requests.len()).unwrap_or(u32::MAX);
        // SAFETY: live handles, as many as counted, and no other execution of the instance.
        unsafe { self.execute.call((instance, requests.as_mut_ptr(), count)) }
    }
}
