//! The path of a client's request to its model, the same for every protocol.
//!
//! A front end translates bytes. All other work on an inference call is done here, in this order, each step in its type:
//!
//! 1. [`FoundModel`]: the sender may use the model, and the model exists.
//! 2. [`InferCall`]: the sender's limits and the memory budget have room for the request.
//! 3. [`DecodedCall`]: the front end has decoded the request for the model; its forwarded headers are parameters. Now a
//!    version is chosen.
//! 4. [`RunningCall`]: the model has the request, which is cancelled when the call is dropped.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use galatea_config::ModelConfig;
use galatea_types::{
    CallRecord, CancelOnDrop, Cancellation, ClientShare, Error, InferRequest, InferResponse,
    MemoryReservation, Origin, Refused, Regions, RequestContext, Responder, Result, Sender,
    UnreadRequest,
};
use tokio::sync::oneshot;

use crate::{Engine, RegionTable, ServedModel};

/// The model that a client asks for.
pub struct FoundModel {
    model: Arc<ServedModel>,
    version: Option<i64>,
    regions: Arc<RegionTable>,
}

impl FoundModel {
    /// Finds a model that `sender` may use, in the requested version, which may be malformed, or the highest one. A sender
    /// without that right is refused before the model is looked up, so that no error reveals if the model exists.
    ///
    /// # Errors
    /// The sender may not use it, the version is malformed, or those of [`Engine::model`].
    pub fn find(
        engine: &Engine,
        name: &str,
        version: impl FnOnce() -> Result<Option<i64>>,
        sender: &impl Sender,
        record: &mut impl CallRecord,
    ) -> Result<Self> {
        let asked = sender.check(name).and_then(|()| version());
        let version = asked.inspect_err(|_| record.record_asked(name, None))?;
        let model = engine.model(name, version);
        let model = model.inspect_err(|_| record.record_asked(name, version))?;
        record.record_model(model.config().name(), model.version());
        Ok(Self { model, version, regions: engine.regions().clone() })
    }

    /// Returns the configuration that requests are decoded by.
    pub fn config(&self) -> &ModelConfig {
        self.model.config()
    }

    /// Returns `refusal` as the error for a model that may respond any number of times.
    ///
    /// # Errors
    /// `Unsupported` for a decoupled model.
    pub fn check_responds_once(&self, refusal: &'static str) -> Result<()> {
        if self.config().is_decoupled() { Err(Error::unsupported(refusal)) } else { Ok(()) }
    }

    /// Admits a request whose bytes have arrived and are held by `memory`: takes its share of the sender's limits, and memory
    /// for the `decoded` bytes that decoding it needs.
    ///
    /// # Errors
    /// The model has no time for the request, the sender has reached its limits, or the memory budget has no room.
    pub fn admit<S: Sender>(
        self,
        sender: &mut S,
        mut memory: MemoryReservation,
        decoded: usize,
    ) -> Result<InferCall> {
        let deadline = if self.model.has_admission() { sender.deadline() } else { None };
        self.model.check_admission(deadline)?;
        let share = sender.take_share(decoded)?;
        if decoded > 0 {
            memory.try_grow(decoded)?;
        }
        let mut context = RequestContext::new();
        context.origin = Origin::Client(S::PROTOCOL);
        context.identity = sender.identity().cloned();
        (context.share, context.memory) = (share, memory);
        context.deadline = deadline;
        Ok(InferCall { found: self, context })
    }
}

/// A call that was admitted and is not decoded yet.
pub struct InferCall {
    found: FoundModel,
    context: RequestContext,
}

/// The model that a request is decoded for.
pub struct DecodeFor<'a> {
    /// The model's configuration.
    pub config: &'a ModelConfig,
    /// The version that the client asks for.
    pub version: Option<i64>,
    /// The shared memory regions that the request may name.
    pub regions: &'a dyn Regions,
}

impl InferCall {
    /// Decodes the request with `decode`, whose second result is kept for the response.
    ///
    /// # Errors
    /// Those of `decode`.
    pub fn decode<R: Into<UnreadRequest>, P>(
        self,
        decode: impl FnOnce(&DecodeFor<'_>) -> Result<(R, P)>,
    ) -> Result<DecodedCall<P>> {
        let Self { found: FoundModel { model, version, regions }, context } = self;
        let (config, regions) = (model.config(), &*regions);
        let (request, plan) = decode(&DecodeFor { config, version, regions })?;
        let request = request.into();
        Ok(DecodedCall(Box::new(DecodedParts { model, context, request, plan })))
    }
}

/// A call whose request is decoded.
///
/// Boxed: it is 600 bytes long, and front ends pass it on through futures and results, which copy it each time.
pub struct DecodedCall<P>(Box<DecodedParts<P>>);

struct DecodedParts<P> {
    model: Arc<ServedModel>,
    context: RequestContext,
    request: UnreadRequest,
    plan: P,
}

impl<P> DecodedCall<P> {
    /// Returns the request. Its inputs in regions may have no data yet.
    pub fn request(&self) -> &InferRequest {
        self.0.request.request()
    }

    /// Returns the bytes of its inputs in regions that are not read yet.
    pub fn unread_bytes(&self) -> usize {
        self.0.request.unread_bytes()
    }

    /// Returns the work of reading them, as [`UnreadRequest::reading_work`] does.
    pub fn reading_work(&self) -> usize {
        self.0.request.reading_work()
    }

    /// Returns the request's share of its client's limits, if it has one, for front ends that know its size only after decoding.
    pub fn share(&mut self) -> Option<&mut ClientShare> {
        self.0.context.share.as_deref_mut()
    }

    /// Reads the inputs in regions. A front end calls this on a thread for long work if they are long, or on a device.
    ///
    /// # Errors
    /// A client has shortened its region, or the memory budget has no room.
    pub fn read_regions(mut self) -> Result<Self> {
        self.0.request.read_regions()?;
        Ok(self)
    }

    /// Returns the model that answers.
    pub fn model(&self) -> &Arc<ServedModel> {
        &self.0.model
    }

    /// Returns the memory that the request holds, for front ends that know its size only after decoding.
    pub fn memory(&mut self) -> &mut MemoryReservation {
        &mut self.0.context.memory
    }

    /// Adds the headers that the operator allows to the parameters of the request.
    ///
    /// # Errors
    /// Those of [`Sender::forward_headers`].
    pub fn forward_headers(&mut self, sender: &impl Sender) -> Result<()> {
        sender.forward_headers(self.0.request.request_mut())
    }

    /// Passes the request to its model, whose responses go to the responder that `respond` creates. First reads the inputs in
    /// regions that are not read yet.
    ///
    /// # Errors
    /// Those of [`DecodedCall::read_regions`]; the model refuses the request. The responder was not used then.
    pub fn submit(
        self,
        record: &mut impl CallRecord,
        respond: impl FnOnce(&Cancellation) -> Responder,
    ) -> Result<RunningCall<P>> {
        let DecodedParts { model, mut context, request, plan } = *self.0;
        let request = request.read()?;
        let model = choose_version(model, &request, &context);
        record.record_submitted(&request, &mut context);
        let cancellation = context.cancellation.clone();
        let responder = respond(&cancellation);
        model.infer(request, context, responder).map_err(Refused::into_error)?;
        Ok(RunningCall { model, plan, cancel: CancelOnDrop::new(cancellation) })
    }

    /// Passes the request to its model, for exactly one response.
    ///
    /// # Errors
    /// Those of [`DecodedCall::submit`].
    pub fn submit_unary(
        self,
        record: &mut impl CallRecord,
    ) -> Result<(RunningCall<P>, UnaryAnswer)> {
        let (responder, answer) = Responder::unary();
        let running = self.submit(record, |_| responder)?;
        Ok((running, UnaryAnswer(answer)))
    }
}

/// Chooses the version that executes a request, once everything that a choice may depend on is known: the sender, the
/// forwarded headers among the parameters, and the sequence. So far it is always the version of the `found` model: the
/// one asked for, else the highest.
fn choose_version(
    found: Arc<ServedModel>,
    _: &InferRequest,
    _: &RequestContext,
) -> Arc<ServedModel> {
    found
}

/// A call whose model has the request, with the plan by which its responses are encoded.
///
/// If it is dropped before [`RunningCall::end`], the request is cancelled: the client hung up, or its deadline passed.
pub struct RunningCall<P> {
    model: Arc<ServedModel>,
    plan: P,
    cancel: CancelOnDrop,
}

impl<P> RunningCall<P> {
    /// Returns the model that answers.
    pub fn model(&self) -> &Arc<ServedModel> {
        &self.model
    }

    /// Returns the plan by which the responses are encoded.
    pub fn plan(&self) -> &P {
        &self.plan
    }

    /// Ends the call after its last response.
    pub fn end(&mut self) {
        self.cancel.disarm();
    }

    /// Separates the plan from the call.
    pub fn split(self) -> (RunningCall<()>, P) {
        let Self { model, plan, cancel } = self;
        (RunningCall { model, plan: (), cancel }, plan)
    }
}

/// The response to a call that has exactly one.
pub struct UnaryAnswer(oneshot::Receiver<Result<InferResponse>>);

impl Future for UnaryAnswer {
    type Output = Result<InferResponse>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A responder also answers when it is dropped, so the channel never closes empty.
        let answer = Pin::new(&mut self.0).poll(cx);
        answer.map(|answer| answer.unwrap_or_else(|_| Err(Error::unanswered())))
    }
}
