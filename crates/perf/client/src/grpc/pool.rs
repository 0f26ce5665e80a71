//! Connections and the callers that share them.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    rc::{Rc, Weak},
};

use bytes::Bytes;
use galatea_types::{Error, Result};
use h2::client::{Builder, SendRequest};
use http::Request;
use tokio::sync::Mutex;

use super::metadata;
use crate::transport::Route;

/// Callers per connection, the same as in Triton's client.
const SHARED_BY: usize = 6;
/// Flow-control windows: large enough that no response to a small request waits for an update.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
const MAX_FRAME: u32 = 1 << 20;
/// Statuses carry their text in headers; the library's own bound of 16 KiB is less than servers may send.
const MAX_HEADERS: u32 = 1 << 20;

/// All connections to one target.
pub(crate) struct GrpcPool {
    route: Rc<Route>,
    infer: Rc<Request<()>>,
    channels: RefCell<Vec<Weak<Channel>>>,
}

impl GrpcPool {
    pub fn new(route: Rc<Route>) -> Result<Self> {
        let infer = Rc::new(metadata::head(&route.target, "ModelInfer")?);
        Ok(Self { route, infer, channels: RefCell::default() })
    }

    pub async fn caller(&self) -> Result<GrpcCaller> {
        let channel = self.channel();
        let link = channel.link(0).await?;
        Ok(GrpcCaller { infer: Rc::clone(&self.infer), channel, link })
    }

    /// Returns a channel that has room. It takes the place at once, before anything is awaited.
    fn channel(&self) -> Rc<Channel> {
        let mut channels = self.channels.borrow_mut();
        channels.retain(|channel| channel.strong_count() > 0);
        let open = channels.iter().find(|channel| channel.strong_count() < SHARED_BY);
        if let Some(channel) = open.and_then(Weak::upgrade) {
            return channel;
        }
        let channel = Rc::new(Channel {
            route: Rc::clone(&self.route),
            link: Mutex::default(),
            answered: Cell::new(false),
        });
        channels.push(Rc::downgrade(&channel));
        channel
    }
}

/// A connection that is opened again after it has ended.
pub(super) struct Channel {
    pub(super) route: Rc<Route>,
    link: Mutex<Option<ConnectionLink>>,
    /// A response has come over any of its connections.
    pub(super) answered: Cell<bool>,
}

/// A caller's reference to a connection. Connections of one channel count up from 1.
#[derive(Clone)]
pub(super) struct ConnectionLink {
    pub(super) send: SendRequest<Bytes>,
    generation: u64,
}

impl Channel {
    /// Returns the present connection if it came after `ended`, otherwise a new one. While one caller connects, the others wait.
    async fn link(&self, ended: u64) -> Result<ConnectionLink> {
        let mut present = self.link.lock().await;
        if let Some(link) = present.as_ref().filter(|link| link.generation > ended) {
            return Ok(link.clone());
        }
        let io = self.route.connect().await?;
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(MAX_FRAME)
            .max_header_list_size(MAX_HEADERS)
            .enable_push(false)
            .handshake(io)
            .await;
        let (send, connection) = handshake.map_err(|error| self.broken(error))?;
        // Its error reaches every call in flight; it ends when the last caller is gone.
        drop(tokio::task::spawn_local(connection));
        let link = ConnectionLink { send, generation: ended + 1 };
        *present = Some(link.clone());
        Ok(link)
    }

    pub fn broken(&self, error: h2::Error) -> Error {
        super::status::broken(&self.route.target, error, self.answered.get())
    }
}

/// A caller that shares a connection with others.
pub(crate) struct GrpcCaller {
    pub(super) infer: Rc<Request<()>>,
    pub(super) channel: Rc<Channel>,
    pub(super) link: ConnectionLink,
}

impl GrpcCaller {
    /// Waits until a call is possible, over a new connection if the present one has ended.
    pub async fn ready(&mut self) -> Result<()> {
        let send = &mut self.link.send;
        if poll_fn(|context| send.poll_ready(context)).await.is_err() {
            self.reconnect().await?;
        }
        Ok(())
    }

    pub async fn reconnect(&mut self) -> Result<()> {
        self.link = self.channel.link(self.link.generation).await?;
        Ok(())
    }
}
