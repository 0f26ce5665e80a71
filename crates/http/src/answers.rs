//! The responses to one request, on their way from the thread that makes them to the connection that writes
//! them.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use galatea_engine::ServedModel;
use galatea_frontend::CancelOnDrop;
use galatea_types::{
    Cancellation, Error, InferRequest, InferResponse, Refused, Responder, Response, ResponseSink,
    Result,
};
use tokio::sync::mpsc;

/// How much may wait for a client that does not read. The thread that makes the responses must not be made
/// to wait, for it works for other clients too; so a request whose responses pile up higher is cut off.
const MAX_BACKLOG: usize = 256 << 20;
/// What a response takes beside its tensors, roughly.
const RESPONSE_OVERHEAD: usize = 256;

pub(crate) struct Answers {
    incoming: mpsc::UnboundedReceiver<Response>,
    shared: Arc<Shared>,
    cancel: Option<CancelOnDrop>,
}

/// What the two ends know of each other.
#[derive(Default)]
struct Shared {
    /// The backlog was too high: nothing more goes in.
    is_cut_off: AtomicBool,
    /// Bytes of the responses that wait.
    backlog: AtomicUsize,
}

impl Shared {
    /// Makes room for a response. One of any size goes into an empty backlog.
    fn admit(&self, response: &Response) -> bool {
        let size = size_of(response);
        let before = self.backlog.fetch_add(size, Ordering::Relaxed);
        before == 0 || before.saturating_add(size) <= MAX_BACKLOG
    }

    fn release(&self, response: &Response) {
        self.backlog.fetch_sub(size_of(response), Ordering::Relaxed);
    }
}

impl Answers {
    /// Hands the request to the model. Fails where it is refused at once, before any inference.
    pub fn to(request: InferRequest, model: &ServedModel) -> Result<Self> {
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let shared = Arc::<Shared>::default();
        let cancellation = request.cancellation.clone();
        let sink = Sink { outgoing, shared: shared.clone(), cancellation: cancellation.clone() };
        model.infer(request, Responder::calling(sink)).map_err(Refused::into_error)?;
        Ok(Self { incoming, shared, cancel: Some(CancelOnDrop::new(cancellation)) })
    }

    pub async fn next(&mut self) -> Option<Response> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The next response; `None` when all were taken.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Response>> {
        let next = ready!(self.incoming.poll_recv(context));
        match &next {
            Some(response) => {
                self.shared.release(response);
                if response.is_final {
                    self.disarm();
                }
            }
            None => self.disarm(),
        }
        Poll::Ready(next)
    }

    fn disarm(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.disarm();
        }
    }
}

/// The end that the model's thread holds.
struct Sink {
    outgoing: mpsc::UnboundedSender<Response>,
    shared: Arc<Shared>,
    cancellation: Cancellation,
}

impl Sink {
    fn cut_off(&self) -> Response {
        self.shared.is_cut_off.store(true, Ordering::Relaxed);
        self.cancellation.cancel();
        let error = Error::unavailable(format!(
            "more than {MAX_BACKLOG} bytes of responses wait for a client that does not read them"
        ));
        Response { result: Some(Err(error)), is_final: true }
    }
}

impl ResponseSink for Sink {
    fn respond(&mut self, mut response: Response) {
        if self.is_closed() {
            return;
        }
        if !self.shared.admit(&response) {
            self.shared.release(&response);
            response = self.cut_off();
            self.shared.admit(&response);
        }
        // A receiver that is gone has no use for the response.
        let _ = self.outgoing.send(response);
    }

    fn is_closed(&self) -> bool {
        self.outgoing.is_closed() || self.shared.is_cut_off.load(Ordering::Relaxed)
    }
}

fn size_of(response: &Response) -> usize {
    let tensors = |r: &InferResponse| r.outputs.iter().map(|t| t.data.len()).sum::<usize>();
    let outputs = response.result.as_ref().and_then(|r| r.as_ref().ok()).map_or(0, tensors);
    RESPONSE_OVERHEAD + outputs
}

#[cfg(test)]
mod tests {
    use galatea_types::{Buffer, DataType, Shape, Tensor};

    use super::*;

    fn channel() -> (Responder, Answers) {
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let shared = Arc::<Shared>::default();
        let cancellation = Cancellation::default();
        let sink = Sink { outgoing, shared: shared.clone(), cancellation: cancellation.clone() };
        let cancel = Some(CancelOnDrop::new(cancellation));
        (Responder::calling(sink), Answers { incoming, shared, cancel })
    }

    fn response(data: &Buffer) -> Result<InferResponse> {
        let shape = Shape::from([i64::try_from(data.len()).expect("small")]);
        Ok(InferResponse {
            model_name: "m".into(),
            model_version: 1,
            id: String::new(),
            parameters: Vec::new(),
            outputs: vec![Tensor::new("OUT", DataType::Uint8, shape, data.clone())],
        })
    }

    #[test]
    fn what_nobody_reads_is_cut_off_at_the_limit() {
        let (mut responder, mut answers) = channel();
        // All responses share this memory; what counts is what they would take.
        let data = Buffer::from(vec![0; MAX_BACKLOG / 4]);
        let sent = (0..10).take_while(|_| responder.send(response(&data))).count();
        assert_eq!(sent, 3);
        drop(responder);
        let mut errors = 0;
        for _ in 0..3 {
            assert!(matches!(answers.incoming.try_recv(), Ok(r) if !r.is_final));
        }
        while let Ok(last) = answers.incoming.try_recv() {
            assert!(last.is_final && matches!(last.result, Some(Err(_))));
            errors += 1;
        }
        assert_eq!(errors, 1);
    }

    #[test]
    fn one_response_may_be_larger_than_the_limit() {
        let (mut responder, _answers) = channel();
        let data = Buffer::from(vec![0; MAX_BACKLOG + 1]);
        assert!(responder.send(response(&data)));
        assert!(!responder.send(response(&data)));
    }

    #[test]
    fn nobody_left_to_read_is_told_to_the_model() {
        let (mut responder, answers) = channel();
        assert!(responder.send(response(&Buffer::default())));
        drop(answers);
        assert!(responder.is_closed());
    }
}
