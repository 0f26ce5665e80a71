//! An instance whose library executes requests.

use std::sync::{Arc, Weak};

use galatea_backend::{Batch, InstanceSpec, ModelInstance, TakenRequest};
use galatea_config::ModelConfig;
use galatea_triton_c::{Registered, abi};
use galatea_types::{Error, LockExt as _, Result, late_work};
use smallvec::SmallVec;

use crate::{
    instance_object::{INSTANCES, InstanceObject},
    model_object::LoadedModel,
    outlet::{Outlet, OutletParts},
    request::{REQUESTS, RequestObject, inputs_for_model},
    response,
};

/// Most requests of a batch that are listed without memory of their own.
const MOST_INLINE: usize = 4;

/// An instance. Its library is told to end it when this is dropped, and requests that the library still has are failed.
pub(crate) struct CInstance {
    config: Arc<ModelConfig>,
    /// True if `execute` returns only when every request is answered.
    waits: bool,
    object: Arc<InstanceObject>,
    registered: Registered<abi::ModelInstance, InstanceObject>,
    /// Dropped last: the library ends instances before their model.
    model: Arc<LoadedModel>,
}

/// A request that the library executes, at its place in the batch.
struct ExecutingRequest {
    index: usize,
    handle: *mut abi::Request,
    request: Arc<RequestObject>,
    is_taken: bool,
}

impl CInstance {
    /// Lets the library make an instance.
    ///
    /// # Errors
    /// Those of the library.
    pub fn new(
        model: &Arc<LoadedModel>,
        config: &Arc<ModelConfig>,
        spec: &InstanceSpec,
        waits: bool,
    ) -> Result<Self> {
        let object = Arc::new(InstanceObject::new(spec, model.handle())?);
        let registered = INSTANCES.register(object.clone())?;
        model.backend.hooks.initialize_instance(registered.handle())?;
        Ok(Self { config: config.clone(), waits, object, registered, model: model.clone() })
    }

    pub fn handle(&self) -> *mut abi::ModelInstance {
        self.registered.handle()
    }

    /// Returns its data, for a check that it still lives.
    pub fn object(&self) -> Weak<InstanceObject> {
        Arc::downgrade(&self.object)
    }

    fn number(&self) -> usize {
        self.handle().addr()
    }

    /// Gives one request to the library; answers one whose inputs cannot be read.
    fn prepare(&self, batch: &mut Batch, index: usize) -> Option<ExecutingRequest> {
        let request = batch.request(index)?;
        let inputs = match inputs_for_model(request, &self.config) {
            Ok(inputs) => inputs,
            Err(error) => {
                batch.respond(index, Err(error));
                return None;
            }
        };
        let cancellation = batch.pending_at(index)?.context.cancellation.clone();
        let is_taken = self.config.is_decoupled();
        let (head, sender) = match is_taken {
            true => {
                let TakenRequest { mut request, responder } = batch.take(index)?;
                // The library gets them as tensors of the model.
                request.take_inputs();
                (request, Some(responder))
            }
            false => (batch.request(index)?.without_inputs(), None),
        };
        let outlet = Outlet::new(OutletParts {
            head,
            model: self.model.object().clone(),
            config: self.config.clone(),
            instance: self.number(),
            cancellation,
            sender,
        });
        let request = Arc::new(RequestObject::new(inputs, Arc::new(outlet)));
        match REQUESTS.insert(request.clone()) {
            Ok(handle) => Some(ExecutingRequest { index, handle, request, is_taken }),
            Err(error) => {
                request.outlet.fail(&error);
                if !is_taken {
                    request.outlet.leave(batch, index);
                }
                None
            }
        }
    }

    /// Ends the execution for one request: it is answered, or taken out of the batch to be answered later.
    fn finish(&self, batch: &mut Batch, executed: &ExecutingRequest, result: &Result<()>) {
        let outlet = &executed.request.outlet;
        if let Err(error) = result {
            // The library has given the requests back.
            let _ = REQUESTS.remove(executed.handle);
            outlet.fail(error);
        }
        if self.waits {
            outlet.wait();
        }
        match executed.is_taken {
            true => outlet.put_back(batch, executed.index, &executed.request.inputs),
            false => outlet.leave(batch, executed.index),
        }
    }
}

impl ModelInstance for CInstance {
    fn execute(&mut self, batch: &mut Batch) {
        let mut executed = SmallVec::<[_; MOST_INLINE]>::new();
        for index in 0..batch.len() {
            executed.extend(self.prepare(batch, index));
        }
        if executed.is_empty() {
            return;
        }
        let handles = executed.iter().map(|request: &ExecutingRequest| request.handle);
        let mut handles: SmallVec<[_; MOST_INLINE]> = handles.collect();
        *self.object.times.lock_unpoisoned() = None;
        // A library may wait for a model that it calls by ways that its file does not show.
        let result =
            late_work::without(|| self.model.backend.hooks.execute(self.handle(), &mut handles));
        let times = self.object.times.lock_unpoisoned().take();
        if let Some(times) = times {
            batch.set_compute_times(times.input_done, times.output_start);
        }
        for request in &executed {
            self.finish(batch, request, &result);
        }
    }
}

impl Drop for CInstance {
    fn drop(&mut self) {
        if let Err(error) = self.model.backend.hooks.finalize_instance(self.handle()) {
            log::error!(
                "an instance of model '{}' did not end cleanly: {error}",
                self.config.name()
            );
        }
        let number = self.number();
        let ended = Error::internal(format!(
            "an instance of model '{}' ended before it answered the request",
            self.config.name()
        ));
        for request in REQUESTS.remove_all(|request| request.outlet.instance == number) {
            request.outlet.fail(&ended);
        }
        response::forget_instance(number);
    }
}
