//! The side of the old server: a thread that waits for the new one.

use std::{
    io,
    os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    },
    sync::{Arc, Mutex},
    thread,
};

use anyhow::{Context, Result};
use galatea_types::LockExt;
use rustix::event::{PollFd, PollFlags, poll};

use super::{
    ControlSocket, OfferedSocket,
    channel::{Channel, ChannelError, Message, VERSION, unexpected},
    sockets::SocketName,
};
use crate::{
    socket_file::SocketFile,
    stop::{Event, StopHandle},
};

/// An offer of the sockets to a new server, until it is ended or accepted.
pub struct Offer {
    /// Dropping it ends the thread.
    _stop: UnixStream,
    stage: Arc<Mutex<Stage>>,
    file: SocketFile,
}

/// The owner of the sockets. The thread holds the lock while it passes them, so that a stop waits for the outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// This server serves.
    Here,
    /// This server stops.
    Stopping,
    /// The new server serves.
    Given,
}

impl Offer {
    pub(super) fn start(
        control: ControlSocket,
        sockets: Vec<OfferedSocket>,
        stop: StopHandle,
    ) -> Result<Self> {
        const NO_OFFER: &str = "failed to wait for servers that take over";
        let ControlSocket { listener, file } = control;
        let path = file.path().to_owned();
        let mut sockets = sockets;
        sockets.push(OfferedSocket {
            name: SocketName::of_control(&path),
            socket: listener.try_clone().context(NO_OFFER)?.into(),
            lock: Some(file.try_clone_lock().context(NO_OFFER)?),
        });
        let (end, stopped) = UnixStream::pair().context(NO_OFFER)?;
        // Another server may accept the connection that was seen here.
        listener.set_nonblocking(true).context(NO_OFFER)?;
        let stage = Arc::new(Mutex::new(Stage::Here));
        let waiting = Waiting { listener, stopped, sockets, stage: stage.clone(), stop };
        let thread = thread::Builder::new().name("takeover".to_owned());
        thread.spawn(move || waiting.run()).context(NO_OFFER)?;
        Ok(Self { _stop: end, stage, file })
    }

    /// Ends the offer. Returns true if a new server has the sockets.
    pub(super) fn end(mut self) -> bool {
        let mut stage = self.stage.lock_unpoisoned();
        let is_given = *stage == Stage::Given;
        if !is_given {
            *stage = Stage::Stopping;
        }
        drop(stage);
        self.file.set_own(!is_given);
        is_given
    }
}

/// The thread's own.
struct Waiting {
    listener: UnixListener,
    stopped: UnixStream,
    sockets: Vec<OfferedSocket>,
    stage: Arc<Mutex<Stage>>,
    stop: StopHandle,
}

impl Waiting {
    fn run(self) {
        let mut taker = None;
        loop {
            let ready = match self.wait(taker.as_ref()) {
                Ok(ready) => ready,
                Err(error) => return log::error!("--takeover: no server can take over: {error}"),
            };
            if ready.is_stopped {
                return;
            }
            if ready.has_message
                && let Some(channel) = taker.take()
            {
                match self.give(&channel) {
                    Ok(()) => return self.stop.send(Event::HandedOver),
                    Err(error) => tell(&channel, &error),
                }
            }
            if ready.has_client {
                self.greet(&mut taker);
            }
        }
    }

    /// Waits for a new server, a message of the one that is connected, or the end.
    fn wait(&self, taker: Option<&Channel>) -> io::Result<Ready> {
        let watched = |socket| PollFd::from_borrowed_fd(socket, PollFlags::IN);
        let mut sockets = vec![watched(self.stopped.as_fd()), watched(self.listener.as_fd())];
        sockets.extend(taker.map(|taker| watched(taker.as_fd())));
        loop {
            match poll(&mut sockets, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let is_ready =
            |index: usize| sockets.get(index).is_some_and(|one| !one.revents().is_empty());
        Ok(Ready { is_stopped: is_ready(0), has_client: is_ready(1), has_message: is_ready(2) })
    }

    /// Accepts a new server, and makes it the one that takes over unless there is one already.
    fn greet(&self, taker: &mut Option<Channel>) {
        let accepted = match self.listener.accept() {
            Ok((stream, _)) => stream.set_nonblocking(false).map(|()| stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => Err(error),
        };
        let channel = match accepted.map_err(ChannelError::from).and_then(Channel::new) {
            Ok(channel) => channel,
            Err(error) => return log::warn!("--takeover: refused a server: {error}"),
        };
        match self.offer(&channel, taker.is_some()) {
            Ok(()) => {
                log::info!("A new server will take over once it has loaded its models");
                *taker = Some(channel);
            }
            // Somebody only looked whether a server listens.
            Err(ChannelError::Gone) => {}
            Err(error) => tell(&channel, &error),
        }
    }

    fn offer(&self, channel: &Channel, is_taken: bool) -> Result<(), ChannelError> {
        match channel.receive()? {
            Message::Hello { version: VERSION } => {}
            Message::Hello { version } => {
                let reason =
                    format!("it needs version {VERSION} of the messages and got {version}");
                return Err(ChannelError::Refused(reason));
            }
            other => return Err(unexpected(&other)),
        }
        if is_taken {
            let reason = "another server is taking over; wait until it has, or stop it";
            return Err(ChannelError::Refused(reason.to_owned()));
        }
        let sockets = self.sockets.iter().map(|one| one.name.clone()).collect();
        channel.send(&Message::Offer { sockets })
    }

    /// Passes the sockets to the connected server, and waits until it serves.
    fn give(&self, channel: &Channel) -> Result<(), ChannelError> {
        match channel.receive()? {
            Message::Take => {}
            other => return Err(unexpected(&other)),
        }
        let mut stage = self.stage.lock_unpoisoned();
        if *stage == Stage::Stopping {
            return Err(ChannelError::Gone);
        }
        let entries = self.sockets.iter().map(OfferedSocket::entry).collect();
        channel.send(&Message::Sockets { sockets: entries })?;
        let descriptors: Vec<_> =
            self.sockets.iter().flat_map(OfferedSocket::descriptors).collect();
        channel.pass(&descriptors)?;
        match channel.receive()? {
            Message::Serving => {}
            other => return Err(unexpected(&other)),
        }
        *stage = Stage::Given;
        // The new server serves, whether this reaches it or not.
        let _ = channel.send(&Message::Leaving);
        Ok(())
    }
}

/// The sockets on which something happened.
struct Ready {
    is_stopped: bool,
    has_client: bool,
    has_message: bool,
}

/// Tells both servers that this one serves on.
fn tell(channel: &Channel, error: &ChannelError) {
    let reason = match error {
        ChannelError::Gone => {
            return log::warn!("A new server ended before it took over: this one serves on");
        }
        ChannelError::Refused(reason) => reason.clone(),
        other => other.to_string(),
    };
    log::warn!("A new server did not take over, and this one serves on: {reason}");
    let _ = channel.send(&Message::Refused { reason });
}
