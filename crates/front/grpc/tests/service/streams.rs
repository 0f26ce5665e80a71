//! ModelStreamInfer.

use crate::support::*;
use bytes::Bytes;
use galatea_proto::inference::{
    ModelInferRequest, ModelStreamInferResponse, infer_parameter::ParameterChoice,
};
use tokio::sync::mpsc;
use tonic::{Code, Request, Status, Streaming, codegen::tokio_stream::Stream};

/// The requests of a stream, as they are sent.
pub struct Requests(pub mpsc::UnboundedReceiver<ModelInferRequest>);

impl Stream for Requests {
    type Item = ModelInferRequest;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

pub struct Call {
    requests: mpsc::UnboundedSender<ModelInferRequest>,
    replies: Streaming<ModelStreamInferResponse>,
}

pub async fn open(client: &mut Client, is_strict: bool) -> Call {
    let (requests, receiver) = mpsc::unbounded_channel();
    let mut request = Request::new(Requests(receiver));
    if is_strict {
        request.metadata_mut().insert("triton_grpc_error", "true".parse().expect("metadata"));
    }
    let replies = client.model_stream_infer(request).await.expect("opens").into_inner();
    Call { requests, replies }
}

impl Call {
    pub fn send(&self, request: ModelInferRequest) {
        self.requests.send(request).expect("the stream is open");
    }

    pub async fn next(&mut self) -> Result<Option<ModelStreamInferResponse>, Status> {
        self.replies.message().await
    }

    /// Id and error text of the next reply, which must be the only one to its request.
    async fn brief(&mut self) -> (String, String) {
        let reply = self.reply().await;
        assert!(
            reply.is_final == Some(true) || (reply.model.is_empty() && reply.is_final.is_none())
        );
        (reply.id, reply.error)
    }

    pub async fn reply(&mut self) -> StreamReply {
        let reply = self.next().await.expect("no status").expect("a reply");
        StreamReply::from(reply)
    }

    /// No more requests; the server must end the stream well.
    pub async fn end(mut self) {
        drop(self.requests);
        let last = self.replies.message().await.expect("no status");
        assert!(last.is_none());
    }
}

/// What a reply has in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamReply {
    pub id: String,
    pub error: String,
    pub model: String,
    pub version: String,
    pub is_final: Option<bool>,
    pub outputs: Vec<Bytes>,
}

impl From<ModelStreamInferResponse> for StreamReply {
    fn from(reply: ModelStreamInferResponse) -> Self {
        let response = reply.infer_response.expect("always there");
        let marker = response.parameters.get("triton_final_response");
        let is_final = marker.map(|m| m.parameter_choice == Some(ParameterChoice::BoolParam(true)));
        assert_eq!(response.outputs.len(), response.raw_output_contents.len());
        Self {
            id: response.id,
            error: reply.error_message,
            model: response.model_name,
            version: response.model_version,
            is_final,
            outputs: response.raw_output_contents,
        }
    }
}

fn failing(id: &str) -> ModelInferRequest {
    let choice = ParameterChoice::StringParam("execute".into());
    with_parameter(vector("failing", id, &[1.0]), "fail", choice)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn responses_have_the_order_of_requests() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let mut call = open(&mut client, false).await;
    f.gate.set(true);
    call.send(vector("gated", "slow", &[1.0]));
    for i in 0..50 {
        call.send(vector("identity_fp32", &i.to_string(), &[2.0]));
    }
    // Read ahead: the quick ones are done while the slow one still holds the first place in the order.
    eventually("all quick ones are answered", || {
        let statistics = f.engine.statistics(Some("identity_fp32"), None).expect("loaded");
        statistics[0].statistics.success.count == 50
    });
    f.gate.set(false);
    assert_eq!(call.brief().await, ("slow".into(), String::new()));
    for i in 0..50 {
        assert_eq!(call.brief().await, (i.to_string(), String::new()));
    }
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn errors_leave_the_stream_open() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let mut call = open(&mut client, false).await;
    call.send(vector("nope", "1", &[1.0]));
    call.send(ModelInferRequest {
        raw_input_contents: vec![],
        ..vector("identity_fp32", "2", &[1.0])
    });
    call.send(ModelInferRequest {
        raw_input_contents: vec!["a".into()],
        ..vector("identity_fp32", "3", &[1.0])
    });
    call.send(failing("4"));
    call.send(vector("nope", "", &[1.0]));
    call.send(vector("identity_fp32", "7", &[1.0]));
    for (id, text) in [
        ("1", "Request for unknown model: 'nope' is not found"),
        (
            "2",
            "unable to find data for input tensor 'INPUT0' for model 'identity_fp32' in request.",
        ),
        (
            "3",
            "[request id: 3] input byte size mismatch for input 'INPUT0' for model 'identity_fp32'. Expected 4, got 1",
        ),
        ("4", "model 'failing' was told to fail"),
        ("", "Request for unknown model: 'nope' is not found"),
        ("7", ""),
    ] {
        assert_eq!(call.brief().await, (id.to_owned(), text.to_owned()));
    }
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_strict_stream_ends_with_the_models_error() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let mut call = open(&mut client, true).await;
    call.send(vector("nope", "1", &[1.0]));
    call.send(ModelInferRequest {
        raw_input_contents: vec!["a".into()],
        ..vector("identity_fp32", "2", &[1.0])
    });
    call.send(failing("3"));
    // The stream may have ended by now, and with it the channel.
    let _ = call.requests.send(vector("identity_fp32", "4", &[1.0]));
    // Refused before the model saw them: answered, and the stream goes on.
    assert_eq!(call.brief().await.0, "1");
    assert!(call.brief().await.1.contains("byte size mismatch"));
    let status = call.next().await.expect_err("ends with a status");
    assert_eq!(
        (status.code(), status.message()),
        (Code::Internal, "model 'failing' was told to fail")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_strict_stream_survives_a_full_queue() {
    let f = Fixture::start();
    let mut call = open(&mut f.client().await, true).await;
    f.gate.set(true);
    let mut request = vector("narrow", "runs", &[0.0; 4]);
    request.inputs[0].shape = vec![1, 4];
    call.send(request.clone());
    assert_eq!(f.arrival().0, "runs");
    for id in ["waits", "refused", "refused too"] {
        call.send(ModelInferRequest { id: id.into(), ..request.clone() });
    }
    call.send(vector("nope", "last", &[1.0]));
    eventually("all are read", || {
        let statistics = f.engine.statistics(Some("narrow"), None).expect("loaded");
        statistics[0].statistics.failures.iter().sum::<u64>() == 2
    });
    f.gate.set(false);
    assert_eq!(call.brief().await, ("runs".into(), String::new()));
    assert_eq!(call.brief().await, ("waits".into(), String::new()));
    for id in ["refused", "refused too"] {
        let text = format!("[request id: {id}] Exceeds maximum queue size");
        assert_eq!(call.brief().await, (id.to_owned(), text));
    }
    assert_eq!(call.brief().await.0, "last");
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_shuts_down_answers_accepted_requests_only() {
    let f = Fixture::start();
    let mut call = open(&mut f.client().await, false).await;
    f.gate.set(true);
    call.send(vector("gated", "has", &[1.0]));
    assert_eq!(f.arrival().0, "has");
    f.server.as_ref().expect("running").refuse_new_requests();
    call.send(vector("identity_fp32", "more", &[1.0]));
    f.gate.set(false);
    assert_eq!(call.brief().await, ("has".into(), String::new()));
    let text = "GRPC server is shutting down and has stopped accepting new requests.";
    assert_eq!(call.brief().await, ("more".into(), text.into()));
    call.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_empty_stream_ends_without_an_error() {
    let f = Fixture::start();
    let mut client = f.client().await;
    open(&mut client, false).await.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dropped_stream_cancels_all_its_requests() {
    let f = Fixture::start();
    let mut client = f.client().await;
    let call = open(&mut client, false).await;
    f.gate.set(true);
    call.send(vector("gated", "s", &[1.0]));
    let (id, cancellation) = f.arrival();
    assert_eq!((id.as_str(), cancellation.is_cancelled()), ("s", false));
    drop(call);
    eventually("the request is cancelled", || cancellation.is_cancelled());
    f.gate.set(false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_a_stream_with_requests_delays_the_exit() {
    let mut f = Fixture::start();
    let mut client = f.client().await;
    let mut idle = open(&mut client, false).await;
    idle.send(vector("identity_fp32", "a", &[1.0]));
    assert_eq!(idle.brief().await, ("a".to_owned(), String::new()));
    let busy = open(&mut client, false).await;
    f.gate.set(true);
    busy.send(vector("gated", "b", &[1.0]));
    f.arrival();
    let server = f.server.take().expect("running");
    let gate = f.gate.clone();
    let ended = std::thread::spawn(move || {
        server.refuse_new_requests();
        gate.set(false);
        server.shut_down(std::time::Duration::from_secs(20))
    });
    let left = tokio::task::spawn_blocking(|| ended.join().expect("no panic")).await;
    assert_eq!(left.expect("no panic"), 0, "only the request was waited for");
    drop((idle, busy));
}
