//! The two halves of a stream.

use galatea_types::Result;

use crate::{
    InferMark, Keep, PreparedInfer, StreamReply,
    grpc::{GrpcReceiver, GrpcSender},
};

/// The sending half of a `ModelStreamInfer` call. Dropped without [`finish`](Self::finish) while the receiver is
/// gone too, it cancels the stream.
pub struct StreamSender {
    pub(crate) inner: GrpcSender,
}

impl StreamSender {
    /// Hands the request to the connection; waits while the server takes no more.
    ///
    /// # Errors
    /// The stream or its connection has ended; the receiver has the reason.
    pub async fn send(&mut self, request: &PreparedInfer, mark: InferMark) -> Result<()> {
        self.inner.send(request, mark).await
    }

    /// Ends the request side of the stream: no more requests come. Its responses still do.
    pub fn finish(self) {
        self.inner.finish();
    }
}

/// The receiving half of a `ModelStreamInfer` call.
pub struct StreamReceiver {
    pub(crate) inner: GrpcReceiver,
}

impl StreamReceiver {
    /// The next response; `None` once the stream has ended well, or after an error.
    pub async fn next(&mut self, keep: Keep) -> Option<Result<StreamReply>> {
        self.inner.next(keep).await
    }
}
