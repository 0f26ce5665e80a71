//! Messages between server and worker on their two sockets.

mod channels;
mod packet;
mod socket;

pub(crate) use channels::{Channels, Delivery, ReceiveError, WorkerEnds};
pub(crate) use packet::Message;
pub(crate) use socket::Received;
