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
    sockets::{SocketName, TakenSockets},
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

/// The owner of the sockets.
enum Stage {
    /// This server serves.
    Here,
    /// Both have the sockets, and the new server has not said yet that it serves.
    Passing,
    /// This server stops.
    Stopping,
    /// The new server serves.
    Given(TakenSockets),
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

    /// Ends the offer. Returns the sockets that a new server has, if there is one. Files of sockets in doubt stay: a server that
    /// starts there later replaces them.
    pub(super) fn end(mut self) -> Option<TakenSockets> {
        let stage = std::mem::replace(&mut *self.stage.lock_unpoisoned(), Stage::Stopping);
        let taken = match stage {
            Stage::Here | Stage::Stopping => None,
            Stage::Passing => Some(TakenSockets::Unknown),
            Stage::Given(taken) => Some(taken),
        };
        self.file.set_own(taken.is_none());
        taken
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
        if !self.advance(Stage::Passing) {
            return Err(ChannelError::Gone);
        }
        match self.pass(channel) {
            Ok(taken) => {
                self.advance(Stage::Given(TakenSockets::Named(taken)));
                // The new server serves, whether this reaches it or not.
                let _ = channel.send(&Message::Leaving);
                Ok(())
            }
            Err(error) => {
                self.advance(Stage::Here);
                Err(error)
            }
        }
    }

    /// Sets the stage, and returns true, unless this server stops.
    fn advance(&self, next: Stage) -> bool {
        let mut stage = self.stage.lock_unpoisoned();
        let is_stopping = matches!(*stage, Stage::Stopping);
        if !is_stopping {
            *stage = next;
        }
        !is_stopping
    }

    /// Passes the sockets, and waits until the new server says which of them it serves.
    fn pass(&self, channel: &Channel) -> Result<Vec<SocketName>, ChannelError> {
        let entries = self.sockets.iter().map(OfferedSocket::entry).collect();
        channel.send(&Message::Sockets { sockets: entries })?;
        let descriptors: Vec<_> =
            self.sockets.iter().flat_map(OfferedSocket::descriptors).collect();
        channel.pass(&descriptors)?;
        match channel.receive()? {
            Message::Serving { taken } => Ok(taken),
            other => Err(unexpected(&other)),
        }
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
