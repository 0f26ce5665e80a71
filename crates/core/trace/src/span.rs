//! A trace in the making, and its observers.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Instant,
};

use galatea_types::{
    Cause, Error, LockExt as _, Observer, RequestStart, Response, Tensor, Timeline, TraceContext,
};

use crate::{
    level::Levels,
    recorder::Recorder,
    request_trace::{Event, FEW_EVENTS, RequestTrace, TensorPlace, TracePlace, TracedTensor},
    setting::Setting,
    sink::FinishedTrace,
    tensor_text,
    trace_memory::MemoryShare,
};

/// The most bytes of a tensor in a trace: the thread that takes the request writes them as text.
const MOST_DATA: usize = 1 << 20;
/// The most bytes of text for one byte: a control character, escaped twice.
const MOST_GROWTH: usize = 7;

/// The most bytes of an error's text in a trace.
const MOST_ERROR: usize = 1 << 10;

/// A trace that is not finished: a client's request, and the requests that it caused so far. It is finished when nobody works on
/// any of them.
struct OpenTrace {
    recorder: Arc<Recorder>,
    setting: Arc<Setting>,
    levels: Levels,
    /// The setting chose the request by its rate, and not because it belongs to a client's trace.
    is_chosen: bool,
    place: Option<TracePlace>,
    /// The model that the client asked for, which a refused request does not reach.
    asked_model: Box<str>,
    requests: Mutex<Requests>,
}

struct Requests {
    list: Vec<RequestTrace>,
    /// The reason why the front end answered with an error.
    failure: Option<Box<str>>,
    held: MemoryShare,
}

impl Requests {
    /// Makes room for one request more. Returns `false` when there is no memory for it. All memory that is taken is counted:
    /// most traces have one request, and a list that grows by itself begins with room for four.
    fn make_room(&mut self) -> bool {
        if self.list.len() < self.list.capacity() {
            return true;
        }
        let more = self.list.len().max(1);
        let has_room = self.held.try_grow(more * size_of::<RequestTrace>());
        if has_room {
            self.list.reserve_exact(more);
        }
        has_room
    }
}

impl Drop for OpenTrace {
    fn drop(&mut self) {
        let (setting, recorder) = (&self.setting, &self.recorder);
        let requests = self.requests.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut list = std::mem::take(&mut requests.list);
        list.retain(|request| request.id != 0);
        let is_last_of_count = self.is_chosen && setting.finish();
        if let Some(recent) = &recorder.recent {
            recent.keep(&self.asked_model, &list, recorder.memory.hold());
        }
        let settings = setting.first_settings();
        setting.sink().finished(FinishedTrace {
            setting: setting.number(),
            log_frequency: settings.log_frequency,
            is_counted: settings.count > 0 && settings.rate == 1,
            is_last_of_count,
            requests: list,
            place: self.place.take(),
            has_timestamps: self.levels.timestamps,
            failure: requests.failure.take(),
            held: std::mem::replace(&mut requests.held, recorder.memory.hold()),
        });
    }
}

/// The trace of one request: it observes the request.
pub(crate) struct Span {
    trace: Arc<OpenTrace>,
    /// The place in the list; `None`: there was no room for it.
    index: Option<usize>,
    /// The id of the model's span in a distributed trace; 0: none.
    span_id: u64,
    /// The request is that of the client.
    is_root: bool,
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Span {
    /// Begins a trace with the request of a client.
    pub fn root(
        recorder: &Arc<Recorder>,
        setting: Arc<Setting>,
        model: &str,
        is_chosen: bool,
        place: Option<TracePlace>,
    ) -> Self {
        let levels = setting.first_settings().levels;
        let requests = Requests { list: Vec::new(), failure: None, held: recorder.memory.hold() };
        let (recorder, requests) = (recorder.clone(), Mutex::new(requests));
        let asked_model = model.into();
        let trace =
            OpenTrace { recorder, setting, levels, is_chosen, place, asked_model, requests };
        let trace = Arc::new(trace);
        let id = trace.recorder.next_id();
        Self::of(trace, RequestTrace { id, ..RequestTrace::default() }, true)
    }

    fn of(trace: Arc<OpenTrace>, request: RequestTrace, is_root: bool) -> Self {
        let mut requests = trace.requests.lock_unpoisoned();
        let has_room = requests.make_room();
        let span_id = match &trace.place {
            None => 0,
            Some(_) if has_room && trace.levels.timestamps => fastrand::u64(1..),
            // The model gets no span of its own.
            Some(place) => place.request.span_id(),
        };
        let request = RequestTrace { span_id, ..request };
        let index = has_room.then(|| {
            requests.list.push(request);
            requests.list.len() - 1
        });
        drop(requests);
        if index.is_none() {
            trace.recorder.lose();
        }
        Self { trace, index, span_id, is_root }
    }

    /// Records that the front end answers with an error.
    pub fn record_failure(&self, reason: &str) {
        self.change(|recording| recording.request.is_failed = true);
        if self.trace.place.is_none() {
            return;
        }
        let mut requests = self.trace.requests.lock_unpoisoned();
        requests.failure = kept_text(reason, &mut requests.held);
    }

    fn change(&self, change: impl FnOnce(&mut Recording<'_>)) {
        let Some(index) = self.index else { return };
        let mut requests = self.trace.requests.lock_unpoisoned();
        let Requests { list, held, .. } = &mut *requests;
        if let Some(request) = list.get_mut(index) {
            change(&mut Recording { trace: &self.trace, request, held });
        }
    }

    /// Records an event that happens now.
    pub fn record(&self, name: &'static str) {
        self.record_all(&[(name, Some(self.trace.recorder.now()))]);
    }

    /// Records events, those that happened.
    pub fn record_all(&self, events: &[(&'static str, Option<Instant>)]) {
        self.change(|recording| {
            for (name, at) in events {
                if let Some(at) = *at {
                    recording.record(name, at);
                }
            }
        });
    }

    fn record_tensors(&self, place: TensorPlace, tensors: &[Tensor]) {
        // Tensors are not exported.
        if self.trace.levels.tensors && self.index.is_some() && self.trace.place.is_none() {
            // As in Triton, an empty input is left out.
            let is_shown =
                |tensor: &&Tensor| place != TensorPlace::QueueInput || !tensor.data.is_empty();
            tensors.iter().filter(is_shown).for_each(|tensor| self.record_tensor(place, tensor));
        }
    }

    fn record_tensor(&self, place: TensorPlace, tensor: &Tensor) {
        let mut held = self.trace.recorder.memory.hold();
        let (length, most) = (tensor.data.len(), tensor.data.len() * MOST_GROWTH);
        // The room is taken before the text is written: many requests may write at once.
        let has_room = length <= MOST_DATA && held.try_grow(most + size_of::<TracedTensor>());
        let text = has_room.then(|| tensor_text::elements(tensor, most).ok()).flatten();
        let Some(data) = text else { return self.trace.recorder.lose() };
        held.shrink_to(data.len() + size_of::<TracedTensor>());
        let shape = tensor.shape.iter().map(|dim| dim.to_string()).collect::<Vec<_>>().join(",");
        let (name, data_type) = (tensor.name.clone(), tensor.data_type);
        self.change(|recording| {
            recording.request.tensors.push(TracedTensor { place, name, data_type, shape, data });
            recording.held.join(held);
        });
    }
}

/// One request of a trace, while it is changed.
struct Recording<'a> {
    trace: &'a OpenTrace,
    request: &'a mut RequestTrace,
    held: &'a mut MemoryShare,
}

impl Recording<'_> {
    fn record(&mut self, name: &'static str, at: Instant) {
        self.add(self.trace.recorder.event(name, at));
    }

    fn add(&mut self, event: Event) {
        // A span needs its times in any case.
        if !self.trace.levels.timestamps && self.trace.place.is_none() {
            return;
        }
        let events = &mut self.request.events;
        match events.len() < FEW_EVENTS || self.held.try_grow(size_of::<Event>()) {
            true => events.push(event),
            false => self.trace.recorder.lose(),
        }
    }

    fn record_start(&mut self, start: &RequestStart<'_>, at: Instant) {
        let recorder = &self.trace.recorder;
        if self.request.id == 0 {
            self.request.id = recorder.next_id();
        }
        self.request.model = Some(start.request.model_name.clone());
        self.request.version = start.version;
        match self.held.try_grow(start.request.id.len()) {
            true => self.request.request_id.clone_from(&start.request.id),
            false => recorder.lose(),
        }
        self.request.events_before_model = self.request.events.len();
        self.record("REQUEST_START", at);
    }

    /// Records that a model answers. A request that is answered without a queue of its own, by an ensemble or the response cache,
    /// counts as queued at its start, as in Triton.
    fn record_response(&mut self) {
        let ns = |name| self.request.events.iter().find(|e| e.name == name).map(|e| e.ns);
        if ns("REQUEST_END").is_none() || ns("QUEUE_START").is_some() {
            return;
        }
        if let Some(ns) = ns("REQUEST_START") {
            self.add(Event { name: "QUEUE_START", ns });
        }
    }

    fn record_error(&mut self, error: &Error) {
        self.request.is_failed = true;
        if self.trace.place.is_some() {
            self.request.error = kept_text(error.message(), self.held);
        }
    }
}

impl Observer for Span {
    fn start(&self, start: &RequestStart<'_>) {
        let now = self.trace.recorder.now();
        self.change(|recording| recording.record_start(start, now));
        self.record_tensors(TensorPlace::QueueInput, &start.request.inputs);
    }

    fn finish(&self, timeline: &Timeline) {
        // A model that fails reports neither of the instants between.
        let (start, end) = (timeline.compute_start, timeline.compute_start.and(timeline.end));
        self.record_all(&[
            ("QUEUE_START", timeline.queued),
            ("COMPUTE_START", start),
            ("COMPUTE_INPUT_END", timeline.input_done.or(start)),
            ("COMPUTE_OUTPUT_START", timeline.output_start.or(end)),
            ("COMPUTE_END", end),
            ("REQUEST_END", timeline.end),
        ]);
    }

    fn wants_responses(&self) -> bool {
        true
    }

    fn respond(&self, response: &Response) {
        let Some(result) = &response.result else { return };
        if let Ok(response) = result {
            self.record_tensors(TensorPlace::BackendOutput, &response.outputs);
        }
        let now = self.trace.recorder.now();
        self.change(|recording| {
            match result {
                Ok(_) => recording.record_response(),
                Err(error) => recording.record_error(error),
            }
            // As in Triton, only the responses to the client have this event.
            if self.is_root {
                recording.record("INFER_RESPONSE_COMPLETE", now);
            }
        });
    }

    fn trace_context(&self) -> Option<TraceContext> {
        Some(self.trace.place.as_ref()?.request.sibling(self.span_id))
    }

    fn child(self: Arc<Self>, _: &str, cause: Cause) -> Option<Arc<dyn Observer>> {
        let is_traced = match cause {
            Cause::Step => true,
            Cause::ModelCall { passes_trace } => {
                passes_trace || self.trace.recorder.traces_all_calls
            }
        };
        if !is_traced {
            return None;
        }
        let mut parent_id = 0;
        self.change(|recording| parent_id = recording.request.id);
        let child = RequestTrace { parent_id, ..RequestTrace::default() };
        Some(Arc::new(Self::of(self.trace.clone(), child, false)))
    }
}

/// Returns the beginning of an error's text, if there is room for it.
fn kept_text(text: &str, held: &mut MemoryShare) -> Option<Box<str>> {
    let text = &text[..text.floor_char_boundary(MOST_ERROR)];
    // An error is an error also without its text.
    Some(if held.try_grow(text.len()) { text.into() } else { Box::default() })
}
