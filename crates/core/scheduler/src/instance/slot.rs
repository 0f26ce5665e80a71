//! The place of one instance in its queue. Each restart puts a new instance in the same place.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use galatea_backend::{InstanceAlarm, InstanceSpec, Model, ModelInstance};
use galatea_types::{Error, Result};

use super::responses::Responses;
use crate::{load::BusyTime, open_streams::OpenStreams, request_queue::RequestQueue};

/// The specification of the instance on one thread, and the queue that it takes requests from.
pub(crate) struct InstanceSlot {
    pub queue: Arc<RequestQueue>,
    pub responses: Responses,
    /// The number of the instance in the queue.
    pub index: usize,
    pub spec: InstanceSpec,
    /// Executions that still answer requests after `execute` has returned.
    pub streams: Arc<OpenStreams>,
    /// The time that the instance has been busy.
    pub busy: Arc<BusyTime>,
}

impl InstanceSlot {
    /// Creates an instance with its own alarm.
    pub fn new_instance(
        &self,
        model_name: &Arc<str>,
        model: &dyn Model,
    ) -> Result<Box<dyn ModelInstance>> {
        let generation = self.queue.instance_begins(self.index);
        let alarm = self.alarm(model_name.clone(), generation);
        let spec = InstanceSpec { alarm, ..self.spec.clone() };
        let started = catch_unwind(AssertUnwindSafe(|| model.new_instance(&spec)));
        started.unwrap_or_else(|panic| {
            let (instance, reason) = (&spec.name, panic_message(&*panic));
            Err(Error::internal(format!(
                "starting instance '{instance}' of model '{model_name}' panicked: {reason}"
            )))
        })
    }

    fn alarm(&self, model_name: Arc<str>, generation: u64) -> InstanceAlarm {
        // Weak, because a backend may keep the alarm for any time.
        let queue = Arc::downgrade(&self.queue);
        let (index, name) = (self.index, self.spec.name.clone());
        InstanceAlarm::new(move |reason| {
            let Some(queue) = queue.upgrade() else { return };
            let text = format!("instance {name} of model '{model_name}' stopped working: {reason}");
            if queue.break_instance(index, generation, reason) {
                log::error!("{text}");
            }
        })
    }
}

/// Drops an instance and logs a panic of its backend.
pub(super) fn discard(instance: Box<dyn ModelInstance>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(instance))) {
        log::error!("dropping an instance panicked: {}", panic_message(&*panic));
    }
}

pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
