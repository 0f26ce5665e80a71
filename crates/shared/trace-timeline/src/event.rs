//! Events of a trace: instants of one request in the server.

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// An instant of a request. HTTP and gRPC share the events of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The front end begins to read the request.
    ReceiveStart,
    /// The front end has read the request.
    ReceiveEnd,
    /// The model receives the request.
    RequestStart,
    /// The request enters the queue.
    QueueStart,
    /// An instance takes the request.
    ComputeStart,
    /// The inputs are ready.
    ComputeInputEnd,
    /// The model has computed.
    ComputeOutputStart,
    /// The outputs are ready.
    ComputeEnd,
    /// A response to the client is ready.
    ResponseComplete,
    /// The front end begins to send an answer.
    SendStart,
    /// The front end has sent an answer.
    SendEnd,
    /// The request ends.
    RequestEnd,
}

impl Event {
    /// All events, in the order in which they usually happen.
    pub const ALL: [Self; 12] = [
        Self::ReceiveStart,
        Self::ReceiveEnd,
        Self::RequestStart,
        Self::QueueStart,
        Self::ComputeStart,
        Self::ComputeInputEnd,
        Self::ComputeOutputStart,
        Self::ComputeEnd,
        Self::ResponseComplete,
        Self::SendStart,
        Self::SendEnd,
        Self::RequestEnd,
    ];

    /// Returns the name that people read.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReceiveStart => "receive start",
            Self::ReceiveEnd => "receive end",
            Self::RequestStart => "request start",
            Self::QueueStart => "queue start",
            Self::ComputeStart => "compute start",
            Self::ComputeInputEnd => "compute input end",
            Self::ComputeOutputStart => "compute output start",
            Self::ComputeEnd => "compute end",
            Self::ResponseComplete => "last response complete",
            Self::SendStart => "send start",
            Self::SendEnd => "send end",
            Self::RequestEnd => "request end",
        }
    }

    /// Returns true if the first of several is kept, and not the last.
    pub fn is_start(self) -> bool {
        matches!(
            self,
            Self::ReceiveStart
                | Self::RequestStart
                | Self::QueueStart
                | Self::ComputeStart
                | Self::ComputeOutputStart
                | Self::SendStart
        )
    }
}

/// The protocol by which a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// gRPC.
    Grpc,
}

impl Protocol {
    /// Returns the name that people read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Grpc => "gRPC",
        }
    }
}

/// The name of an event in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventName {
    /// `None` for events that are not shown.
    pub event: Option<Event>,
    /// The protocol, if the name has it.
    pub protocol: Option<Protocol>,
}

impl EventName {
    /// Reads the name of an event in a file. Unknown names have no event.
    pub fn read(name: &str) -> Self {
        let (protocol, rest) = match name.split_once('_') {
            Some(("HTTP", rest)) => (Some(Protocol::Http), rest),
            Some(("GRPC", rest)) => (Some(Protocol::Grpc), rest),
            _ => (None, name),
        };
        let event = match rest {
            "RECV_START" => Some(Event::ReceiveStart),
            // A gRPC handler begins to wait for a message at GRPC_WAITREAD_START: that may be long before the request.
            "RECV_END" | "WAITREAD_END" => Some(Event::ReceiveEnd),
            "REQUEST_START" => Some(Event::RequestStart),
            "QUEUE_START" => Some(Event::QueueStart),
            "COMPUTE_START" => Some(Event::ComputeStart),
            "COMPUTE_INPUT_END" => Some(Event::ComputeInputEnd),
            "COMPUTE_OUTPUT_START" => Some(Event::ComputeOutputStart),
            "COMPUTE_END" => Some(Event::ComputeEnd),
            "INFER_RESPONSE_COMPLETE" => Some(Event::ResponseComplete),
            "SEND_START" => Some(Event::SendStart),
            "SEND_END" => Some(Event::SendEnd),
            "REQUEST_END" => Some(Event::RequestEnd),
            _ => None,
        };
        Self { event, protocol }
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = EventName;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("the name of an event")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<EventName, E> {
                Ok(EventName::read(name))
            }
        }

        deserializer.deserialize_str(Name)
    }
}
