//! Messages between server and worker on their two sockets.

mod channels;
mod packet;
mod socket;

pub use channels::Channels;
pub(crate) use channels::{Delivery, ReceiveError, WorkerEnds};
pub use packet::Message;
pub(crate) use socket::SocketRead;
