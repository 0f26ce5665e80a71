//! Models that take every request out of its batch and answer it from another thread.

use std::{
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use galatea_config::ConfigDraft;
use galatea_types::{DataType, Error, InferRequest, RequestContext, Responder, Result};

use crate::{
    Backend, Batch, CompletionContext, InstanceSpec, LoadContext, Model, ModelInstance, Outcome,
    PendingRequest, TakenRequest,
    testing::{Clause, Fixture, Subject},
};

/// A subject, backend or model whose instances take every request out of its batch. A thread of each instance executes them
/// and answers, possibly after `execute` has returned.
pub struct LateAnswers<T>(pub T);

impl<S: Subject> Subject for LateAnswers<S> {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(LateAnswers(self.0.backend()))
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        self.0.identity(data_type)
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        self.0.add_sub(data_type)
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        self.0.broken()
    }

    fn tolerance(&self) -> f64 {
        self.0.tolerance()
    }

    fn ignores(&self) -> &[Clause] {
        self.0.ignores()
    }

    fn spoil(&self, request: &mut InferRequest) {
        self.0.spoil(request);
    }
}

impl Backend for LateAnswers<Arc<dyn Backend>> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        self.0.complete_config(config, context)
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(LateAnswers(self.0.load(context)?)))
    }
}

impl Model for LateAnswers<Box<dyn Model>> {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let mut instance = self.0.new_instance(spec)?;
        let (batches, taken) = mpsc::channel();
        let answer = move || taken.iter().for_each(|taken| answer(&mut *instance, taken));
        let thread = thread::Builder::new().spawn(answer);
        let thread = thread.map_err(|error| Error::internal(error.to_string()))?;
        Ok(Box::new(Instance { batches: Some(batches), thread: Some(thread) }))
    }

    fn may_answer_later(&self) -> bool {
        true
    }

    fn computes_on_any_thread(&self) -> bool {
        self.0.computes_on_any_thread()
    }
}

struct Instance {
    batches: Option<mpsc::Sender<Vec<TakenRequest>>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelInstance for Instance {
    fn execute(&mut self, batch: &mut Batch) {
        let taken = (0..batch.len()).filter_map(|index| batch.take(index)).collect();
        // Without the thread they are dropped, which answers them with errors.
        let _ = self.batches.as_ref().map(|batches| batches.send(taken));
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.batches.take());
        // A panic in the thread has dropped its requests, which answered them.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer(instance: &mut dyn ModelInstance, taken: Vec<TakenRequest>) {
    let Some(model) = taken.first().map(|taken| taken.request.model_name.clone()) else { return };
    let split = taken.into_iter().map(|TakenRequest { request, responder }| {
        (PendingRequest::new(request, RequestContext::new(), Responder::spent()), responder)
    });
    let (pending, responders): (Vec<_>, Vec<_>) = split.unzip();
    let mut batch = Batch::new(model, 1, pending);
    instance.execute(&mut batch);
    for (responder, (_, outcome)) in responders.into_iter().zip(batch.into_outcomes()) {
        // Any other outcome is no response: dropping the responder reports that.
        if let Outcome::Answered(result) = outcome {
            responder.finish(Some(result.map(|response| (response.outputs, response.parameters))));
        }
    }
}
