//! The instances that pull from one queue. They can be added and removed while it is open.

use std::{sync::Arc, time::Instant};

use galatea_backend::InstanceSpec;
use galatea_types::{Error, Result};

use super::in_place_execution::InPlaceExecution;
use crate::{
    instance::{self, Executors, InstanceSlot, ModelContext, Responses},
    open_streams::OpenStreams,
    request_queue::{NoInstances, RequestQueue},
    sync::{Builder, JoinHandle, LockExt, Mutex, mpsc},
};

/// The sender for instance threads, each of which reports once if its instance was started.
pub(super) type Outcomes = mpsc::Sender<Result<()>>;

/// A queue and the threads that pull from it, one for each instance.
pub(super) struct InstanceSet {
    pub queue: Arc<RequestQueue>,
    /// Answers the requests of the queue.
    pub responses: Responses,
    /// The executors of idle instances.
    executors: Arc<Executors>,
    starts_one_by_one: bool,
    members: Mutex<Vec<Member>>,
    /// The thread that answers requests that waited too long, if the configuration has time-outs.
    expiry: Mutex<Option<JoinHandle<()>>>,
}

struct Member {
    spec: InstanceSpec,
    /// The number of the instance in the queue.
    index: usize,
    thread: JoinHandle<()>,
}

impl InstanceSet {
    pub fn new(queue: Arc<RequestQueue>, responses: Responses, starts_one_by_one: bool) -> Self {
        let (members, expiry) = (Mutex::new(Vec::new()), Mutex::new(None));
        let executors = Arc::default();
        Self { queue, responses, executors, starts_one_by_one, members, expiry }
    }

    /// Returns the executor of requests on the threads that bring them.
    pub fn in_place(&self, context: Arc<ModelContext>) -> Arc<InPlaceExecution> {
        Arc::new(InPlaceExecution {
            queue: self.queue.clone(),
            responses: self.responses.clone(),
            executors: self.executors.clone(),
            context,
        })
    }

    pub fn specs(&self) -> Vec<InstanceSpec> {
        self.members.lock_unpoisoned().iter().map(|member| member.spec.clone()).collect()
    }

    /// Starts the threads of the queue's first instances, and the thread for requests that wait too long.
    ///
    /// # Errors
    /// When a thread cannot be started, or an instance if they start one by one; else `ready` reports errors of instances.
    pub fn start(
        &self,
        context: &Arc<ModelContext>,
        specs: Vec<InstanceSpec>,
        ready: &Outcomes,
    ) -> Result<()> {
        let register = |(index, spec)| self.queue.register(index, spec, &context.config);
        if let Err(error) = specs.iter().enumerate().try_for_each(register) {
            (0..specs.len()).for_each(|index| self.queue.thread_ended(index));
            return Err(error);
        }
        let mut specs = specs.into_iter().enumerate();
        while let Some((index, spec)) = specs.next() {
            if let Err(error) = self.start_one(context, index, spec, ready) {
                specs.for_each(|(index, _)| self.queue.thread_ended(index));
                return Err(error);
            }
        }
        self.watch_expiry(&context.name)
    }

    /// Adds instances and waits until all are ready. Each executes requests as soon as it is ready.
    ///
    /// # Errors
    /// The first error of an instance; then none is added.
    pub fn add(&self, context: &Arc<ModelContext>, specs: Vec<InstanceSpec>) -> Result<()> {
        let (ready, outcomes) = mpsc::channel();
        let mut added = Vec::with_capacity(specs.len());
        let mut start = |spec| {
            let index = self.queue.add_instance();
            added.push(index);
            if let Err(error) = self.queue.register(index, &spec, &context.config) {
                self.queue.thread_ended(index);
                return Err(error);
            }
            self.start_one(context, index, spec, &ready)
        };
        let all_started: Result<()> = specs.into_iter().try_for_each(&mut start);
        drop(ready);
        let all_ready: Result<()> = outcomes.iter().collect();
        let result = all_started.and(all_ready);
        if result.is_err() {
            self.end(|member| added.contains(&member.index), None);
        }
        result
    }

    /// Removes the instances with these numbers in the model. Waits until `deadline` for the end of their requests in
    /// progress, which continue after that without anybody waiting.
    pub fn remove(&self, numbers: &[usize], deadline: Instant) {
        self.end(|member| numbers.contains(&member.spec.index), Some(deadline));
    }

    fn end(&self, is_chosen: impl Fn(&Member) -> bool, deadline: Option<Instant>) {
        let chosen: Vec<Member> = {
            let mut members = self.members.lock_unpoisoned();
            let (chosen, rest) = std::mem::take(&mut *members).into_iter().partition(is_chosen);
            *members = rest;
            chosen
        };
        let indices: Vec<usize> = chosen.iter().map(|member| member.index).collect();
        if let Some(NoInstances { reason, unserved }) = self.queue.retire_instances(&indices) {
            let count = unserved.len();
            self.responses.answer_outage(unserved, &reason);
            self.queue.finish(count);
        }
        for Member { index, thread, .. } in chosen {
            // A thread that takes longer ends on its own; until then the queue counts it.
            if deadline.is_none_or(|deadline| self.queue.wait_until_gone(index, deadline)) {
                // Panics of the thread are caught and logged there.
                let _ = thread.join();
            }
        }
    }

    /// Waits until every thread has ended. The queue must be closed.
    pub fn join(&self) {
        let members = std::mem::take(&mut *self.members.lock_unpoisoned());
        for Member { thread, .. } in members {
            // Panics of the thread are caught and logged there.
            let _ = thread.join();
        }
        let expiry = self.expiry.lock_unpoisoned().take();
        let _ = expiry.map(JoinHandle::join);
    }

    fn watch_expiry(&self, model: &str) -> Result<()> {
        if !self.queue.has_expiry() {
            return Ok(());
        }
        let (queue, responses) = (self.queue.clone(), self.responses.clone());
        let watch = move || {
            while let Some(expired) = queue.next_expired() {
                let count = expired.len();
                responses.answer_dropped(expired);
                queue.finish(count);
            }
        };
        let thread = Builder::new().name(format!("time-outs {model}"));
        let thread = thread.spawn(watch).map_err(|error| {
            let text = "cannot start the thread for the time-outs of model";
            Error::internal(format!("{text} '{model}': {error}")).with_source(error)
        })?;
        *self.expiry.lock_unpoisoned() = Some(thread);
        Ok(())
    }

    fn start_one(
        &self,
        context: &Arc<ModelContext>,
        index: usize,
        spec: InstanceSpec,
        ready: &Outcomes,
    ) -> Result<()> {
        if !self.starts_one_by_one {
            return self.spawn(context, index, spec, ready.clone());
        }
        let (ready, outcomes) = mpsc::channel();
        self.spawn(context, index, spec, ready)?;
        outcomes.iter().collect()
    }

    fn spawn(
        &self,
        context: &Arc<ModelContext>,
        index: usize,
        spec: InstanceSpec,
        ready: Outcomes,
    ) -> Result<()> {
        let busy = context.load.add_instance(context.clock.now());
        let slot = InstanceSlot {
            queue: self.queue.clone(),
            responses: self.responses.clone(),
            index,
            spec: spec.clone(),
            streams: Arc::new(OpenStreams::new(busy.clone(), context.clock.clone())),
            busy,
        };
        let (context, executors) = (context.clone(), self.executors.clone());
        let thread = Builder::new().name(spec.name.clone());
        match thread.spawn(move || instance::run(context, slot, &executors, ready)) {
            Ok(thread) => {
                self.members.lock_unpoisoned().push(Member { spec, index, thread });
                Ok(())
            }
            Err(error) => {
                self.queue.thread_ended(index);
                let text = format!("cannot start the thread of instance '{}': {error}", spec.name);
                Err(Error::internal(text).with_source(error))
            }
        }
    }
}
