//! The body of a response, limited in length and time.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use crate::failure::{HttpFailure, Problem, broken};

/// Least bytes of a body in a period. Less ends it with an error, so that a server cannot hold a download up for ever by
/// single bytes.
const LEAST_BYTES: u64 = 16 << 10;

/// The body of a response. It ends with an error if it is too slow or too long.
#[derive(Debug)]
pub struct HttpBody {
    inner: Incoming,
    period: Pin<Box<Sleep>>,
    /// Bytes received in this period. The next field is its length.
    came: u64,
    limit: Duration,
    left: u64,
    most: u64,
}

impl HttpBody {
    #[expect(
        clippy::disallowed_methods,
        reason = "the time of a body is tokio's time, which tests can move"
    )]
    pub(crate) fn new(inner: Incoming, most: u64, limit: Duration) -> Self {
        let period = Box::pin(tokio::time::sleep(limit));
        Self { inner, period, came: 0, limit, left: most, most }
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// When it is too slow or too long.
    pub async fn all(self) -> Result<Bytes, HttpFailure> {
        Ok(self.collect().await?.to_bytes())
    }

    /// Returns further bytes, and the rest of the body. `None`: the body is complete.
    ///
    /// # Errors
    /// When it is too slow or too long.
    pub async fn next(mut self) -> Result<Option<(Bytes, Self)>, HttpFailure> {
        loop {
            match self.frame().await.transpose()?.map(Frame::into_data) {
                Some(Ok(bytes)) => return Ok(Some((bytes, self))),
                // Trailers.
                Some(Err(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// Counts received bytes.
    fn take(&mut self, frame: &Frame<Bytes>) -> Result<(), HttpFailure> {
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        self.came += length;
        match self.left.checked_sub(length) {
            Some(left) => self.left = left,
            None => {
                let text = format!("the response is longer than {} bytes", self.most);
                return Err(HttpFailure::new(Problem::TooLong, text));
            }
        }
        Ok(())
    }

    /// Becomes ready when a period is over in which too few bytes came.
    fn poll_too_slow(&mut self, context: &mut Context<'_>) -> Poll<HttpFailure> {
        loop {
            ready!(self.period.as_mut().poll(context));
            if self.came < LEAST_BYTES {
                let seconds = self.limit.as_secs();
                let text = format!("the server sent less of the body than 16 KiB for {seconds} s");
                return Poll::Ready(HttpFailure::new(Problem::TooSlow, text));
            }
            self.came = 0;
            let next = Instant::now() + self.limit;
            self.period.as_mut().reset(next);
        }
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = HttpFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpFailure>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(self.take(&frame).map(|()| frame))),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(broken(&error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.poll_too_slow(context).map(|failure| Some(Err(failure))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
