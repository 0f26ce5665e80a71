//! The life of a connection: one request after another, each answered before the next is read.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use galatea_frontend::{Activity, Closing};
use galatea_http1::{Encoding, HeadError, RequestHead, ResponseHead, Version, names};
use galatea_types::LockExt;
use http::Method;

use crate::{
    io::{BodyRemainder, ConnectionError},
    request::route,
    response::{Response, body::Body},
    service::Service,
    state::Connection,
};

/// Serves one connection until its client ends it, sends an invalid request, or the front end closes.
pub(crate) async fn serve(
    service: &Service,
    connection: &Arc<Connection>,
    activity: &Arc<Activity>,
    mut closing: Closing,
) -> Result<(), ConnectionError> {
    let mut closing = pin!(async move { closing.wait().await });
    let mut history = ConnectionHistory::default();
    loop {
        match next_head(connection, &mut history, closing.as_mut()).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(ConnectionError::Head(error)) => {
                refuse(connection, history.version, error).await?;
                return Err(error.into());
            }
            Err(error) => return Err(error),
        }
        history.begin();
        let call = activity.begin_call();
        let response = {
            let answer = pin!(service.call(&history.head, activity, connection));
            answer_unless_gone(connection, answer).await?
        };
        let keeps_alive = send(connection, activity, &history, response).await?;
        drop(call);
        if !keeps_alive {
            break;
        }
    }
    poll_fn(|context| connection.io.lock_unpoisoned().poll_shutdown(context)).await?;
    Ok(())
}

/// The state of a connection from its requests so far.
#[derive(Debug)]
struct ConnectionHistory {
    /// The head that is read, or was read last.
    head: RequestHead,
    /// The HTTP version of the last request.
    version: Version,
    keeps_alive: bool,
    has_answered: bool,
    /// The front end closes.
    is_closing: bool,
}

impl Default for ConnectionHistory {
    fn default() -> Self {
        Self {
            head: RequestHead::default(),
            version: Version::Http11,
            keeps_alive: true,
            has_answered: false,
            is_closing: false,
        }
    }
}

impl ConnectionHistory {
    fn begin(&mut self) {
        self.version = self.head.version();
        self.keeps_alive &= self.head.keeps_alive() && !self.is_closing;
        self.has_answered = true;
    }

    /// Tells the client if the connection continues, where its version implies otherwise. Returns `true` if it
    /// continues.
    fn announce(&self, response: &mut ResponseHead) -> bool {
        const KEEPS: &str = "keep-alive";
        let closes = response.get(names::CONNECTION).is_some();
        match (self.version, self.keeps_alive) {
            (Version::Http11, false) if !closes => response.set(names::CONNECTION, "close"),
            (Version::Http10, true) if closes => {
                response.set(names::CONNECTION, "close, keep-alive");
            }
            (Version::Http10, true) => response.set(names::CONNECTION, KEEPS),
            _ => {}
        }
        self.keeps_alive && !closes
    }
}

/// Reads the next head. Returns `false` if there is none. When the front end closes, it only waits for a first head
/// that has begun.
async fn next_head(
    connection: &Connection,
    history: &mut ConnectionHistory,
    mut closing: Pin<&mut impl Future<Output = ()>>,
) -> Result<bool, ConnectionError> {
    poll_fn(|context| {
        let mut io = connection.io.lock_unpoisoned();
        if let Poll::Ready(read) = io.poll_head(context, &mut history.head) {
            if matches!(read, Ok(true)) {
                io.want_descriptor(|| route::takes_descriptor(history.head.path()));
            }
            return Poll::Ready(read);
        }
        if !history.is_closing {
            ready!(closing.as_mut().poll(context));
            history.is_closing = true;
        }
        match io.has_begun() && !history.has_answered {
            true => Poll::Pending,
            false => Poll::Ready(Ok(false)),
        }
    })
    .await
}

/// Returns the answer. If the client disconnects first, the work on the answer stops.
async fn answer_unless_gone(
    connection: &Connection,
    mut answer: Pin<&mut impl Future<Output = Response>>,
) -> Result<Response, ConnectionError> {
    poll_fn(|context| match answer.as_mut().poll(context) {
        Poll::Ready(response) => Poll::Ready(Ok(response)),
        Poll::Pending => connection.io.lock_unpoisoned().poll_gone(context).map(Err),
    })
    .await
}

async fn refuse(
    connection: &Connection,
    version: Version,
    error: HeadError,
) -> Result<(), ConnectionError> {
    let Some(status) = error.status() else { return Ok(()) };
    let mut response = ResponseHead::new(status);
    ConnectionHistory { version, keeps_alive: false, ..ConnectionHistory::default() }
        .announce(&mut response);
    response.write(version, &Method::GET, Some(0), connection.io.lock_unpoisoned().output.text());
    poll_fn(|context| connection.io.lock_unpoisoned().poll_shutdown(context)).await?;
    Ok(())
}

/// Sends the response and meanwhile reads and drops the unread rest of the body. Some clients read their answer at
/// once, others after they have sent everything. Returns `true` if the connection continues.
async fn send(
    connection: &Connection,
    activity: &Arc<Activity>,
    history: &ConnectionHistory,
    mut response: Response,
) -> Result<bool, ConnectionError> {
    let ConnectionHistory { head, version, .. } = history;
    let keeps_alive = history.announce(&mut response.head);
    let (method, length) = (head.method(), response.body.known_length());
    let encoding = Encoding::of(*version, method, response.head.status, length);
    let mut body = (encoding != Encoding::Nothing).then_some(response.body);
    let mut rest = {
        let mut io = connection.io.lock_unpoisoned();
        response.head.write(*version, method, length, io.output.text());
        BodyRemainder::of(&io, head)
    };
    let _receiving = matches!(rest, BodyRemainder::Discarded(_)).then(|| activity.receive());
    let mut is_sent = false;
    poll_fn(|context| {
        if !is_sent {
            is_sent = poll_send(connection, context, &mut body, encoding)?.is_ready();
        }
        let mut io = connection.io.lock_unpoisoned();
        let is_done = rest.poll(context, &mut io, is_sent).is_ready();
        match (is_sent, is_done) {
            (true, true) => Poll::Ready(Ok(())),
            (true, false) => Poll::Pending,
            (false, _) => io.poll_gone(context).map(Err),
        }
    })
    .await?;
    if let Some(sending) = response.sending {
        sending.finish();
    }
    let mut io = connection.io.lock_unpoisoned();
    io.want_descriptor(|| false);
    Ok(keeps_alive && !io.is_broken && encoding != Encoding::UntilClose)
}

fn poll_send(
    connection: &Connection,
    context: &mut Context<'_>,
    body: &mut Option<Body>,
    encoding: Encoding,
) -> Poll<Result<(), ConnectionError>> {
    loop {
        let is_waiting = take_pieces(connection, context, body, encoding);
        ready!(connection.io.lock_unpoisoned().poll_flush(context))?;
        if body.is_none() {
            return Poll::Ready(Ok(()));
        }
        if is_waiting {
            return Poll::Pending;
        }
    }
}

/// Appends available pieces of the body to the output, as much as is written at once. Returns `true` if more of the
/// body must be waited for.
fn take_pieces(
    connection: &Connection,
    context: &mut Context<'_>,
    body: &mut Option<Body>,
    encoding: Encoding,
) -> bool {
    while let Some(open) = body {
        let has_room = connection.io.lock_unpoisoned().output.has_room();
        if !has_room {
            return false;
        }
        let Poll::Ready(piece) = open.poll_piece(context) else { return true };
        let is_last = piece.is_none() || open.is_ended();
        let mut io = connection.io.lock_unpoisoned();
        io.output.push(piece.unwrap_or_default(), encoding);
        if is_last {
            io.output.end(encoding);
            *body = None;
        }
    }
    false
}
