//! Connections to one target.

use std::rc::Rc;

use galatea_types::{Code, Error, Result};

use crate::{
    Admin, InferMark, InferTemplate, KeepResponse, OutputTensor, PreparedInfer, Protocol, Reply,
    StreamReceiver, StreamReply, StreamSender, Target, TensorMetadata,
    admin::AdminKind,
    grpc::{GrpcAdmin, GrpcCaller, GrpcPool},
    http::{HttpAdmin, HttpConnection, HttpEvents},
    prepared_infer::WireForm,
    transport::Route,
};

/// Makes callers, streams and admins for one target, all on this thread.
///
/// Its methods run on a tokio `current_thread` runtime with I/O and time enabled, inside a `LocalSet`. A gRPC connection is
/// a local task of that set, so the runtime takes no extra turn between a response and the next request.
pub struct Connector {
    route: Rc<Route>,
    pool: GrpcPool,
}

impl Connector {
    /// Reads the certificates; opens no connection.
    ///
    /// # Errors
    /// If certificates cannot be read or used, or headers cannot be sent.
    pub fn new(target: Target) -> Result<Self> {
        Self::with_response_limit(target, usize::MAX)
    }

    /// Like [`new`](Self::new), for a server that is not trusted: a response with more bytes than the limit is an error of its
    /// call. The limit includes the head over HTTP, and counts decompressed bytes over gRPC.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_response_limit(target: Target, response_limit: usize) -> Result<Self> {
        let route = Route::new(target, response_limit)?;
        let pool = GrpcPool::new(Rc::clone(&route))?;
        Ok(Self { route, pool })
    }

    /// Connects. Over HTTP a caller has a connection of its own; over gRPC up to six share one.
    pub async fn caller(&self) -> Result<Caller> {
        let kind = match self.route.target.protocol {
            Protocol::Http => {
                let mut connection = self.http();
                connection.connect().await?;
                CallerKind::Http(Box::new(connection))
            }
            Protocol::Grpc => CallerKind::Grpc(self.pool.caller().await?),
        };
        Ok(Caller { kind })
    }

    /// Opens a `ModelStreamInfer` call.
    ///
    /// # Errors
    /// Those of connecting, or the target's protocol is not gRPC.
    pub async fn stream(&self) -> Result<(StreamSender, StreamReceiver)> {
        match self.route.target.protocol {
            Protocol::Http => Err(Error::unsupported("streams need the gRPC protocol")),
            Protocol::Grpc => self.pool.caller().await?.stream().await,
        }
    }

    /// Sends a request whose responses are read one by one: over gRPC as a `ModelStreamInfer` call, over HTTP with
    /// `generate_stream`, which carries inputs as plain JSON. `outputs`: the model's outputs.
    ///
    /// # Errors
    /// Those of connecting, or over HTTP, JSON cannot carry the inputs.
    pub async fn responses(
        &self,
        template: &InferTemplate,
        id: Option<&str>,
        outputs: &[TensorMetadata],
    ) -> Result<Responses> {
        let kind = match self.route.target.protocol {
            Protocol::Http => {
                let events = self.http().events(template, id).await?;
                ResponsesKind::Http(Box::new(events), outputs.to_vec())
            }
            Protocol::Grpc => {
                let request = PreparedInfer::with_id(&self.route.target, template, id)?;
                let (mut sender, receiver) = self.stream().await?;
                // If sending fails, the receiver has the reason.
                let _ = sender.send(&request, InferMark::default()).await;
                sender.finish();
                ResponsesKind::Grpc(Box::new(receiver))
            }
        };
        Ok(Responses { kind })
    }

    /// Connects for calls other than inference.
    pub async fn admin(&self) -> Result<Admin> {
        let kind = match self.route.target.protocol {
            Protocol::Http => {
                let mut connection = self.http();
                connection.connect().await?;
                AdminKind::Http(Box::new(HttpAdmin::new(connection)))
            }
            Protocol::Grpc => AdminKind::Grpc(GrpcAdmin::new(self.pool.caller().await?)),
        };
        Ok(Admin { kind })
    }

    fn http(&self) -> HttpConnection {
        HttpConnection::new(Rc::clone(&self.route))
    }
}

/// The responses to one request, in any number.
pub struct Responses {
    kind: ResponsesKind,
}

enum ResponsesKind {
    Http(Box<HttpEvents>, Vec<TensorMetadata>),
    Grpc(Box<StreamReceiver>),
}

impl Responses {
    /// Returns the outputs of the next response, `None` after the last one.
    ///
    /// # Errors
    /// Those of the server, with its text; connection errors name the server and the cause.
    pub async fn next(&mut self) -> Result<Option<Vec<OutputTensor>>> {
        match &mut self.kind {
            ResponsesKind::Http(events, outputs) => events.next(outputs).await,
            ResponsesKind::Grpc(receiver) => loop {
                match receiver.next(KeepResponse::Outputs).await.transpose()? {
                    None => return Ok(None),
                    Some(StreamReply { error: Some(error), .. }) => {
                        return Err(Error::new(Code::Unknown, error));
                    }
                    // This response only marks the end.
                    Some(reply) if reply.is_empty && reply.is_final => {}
                    Some(reply) => return Ok(Some(reply.outputs)),
                }
            },
        }
    }
}

/// Sends one request at a time and waits for its response.
pub struct Caller {
    kind: CallerKind,
}

enum CallerKind {
    Http(Box<HttpConnection>),
    Grpc(GrpcCaller),
}

impl Caller {
    /// Sends the request and reads its response. If the server closed the idle connection, opens it again.
    ///
    /// # Errors
    /// Those of the server, with its text; connection errors name the server and the cause.
    pub async fn infer(
        &mut self,
        request: &PreparedInfer,
        mark: InferMark,
        keep: KeepResponse,
    ) -> Result<Reply> {
        match (&mut self.kind, &request.form) {
            (CallerKind::Http(connection), WireForm::Http(form)) => {
                connection.infer(form, mark, keep).await
            }
            (CallerKind::Grpc(caller), WireForm::Grpc(form)) => {
                caller.infer(form, mark, keep).await
            }
            _ => Err(Error::invalid_arg("the request was prepared for another protocol")),
        }
    }
}
