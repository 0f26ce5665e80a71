//! Connections of the gRPC front end: HTTP/2, the framing of messages, every call.

use arbitrary::{Arbitrary, Unstructured};
use prost::Message as _;

use super::{
    frames::{self, PREFACE, flag, kind},
    request::Request,
};
use crate::{
    edits::{self, Edit},
    server::GRPC,
    session::{Ending, exchange},
};

const PATHS: [&str; 16] = [
    "/inference.GRPCInferenceService/ModelInfer",
    "/inference.GRPCInferenceService/ModelStreamInfer",
    "/inference.GRPCInferenceService/ServerLive",
    "/inference.GRPCInferenceService/ServerReady",
    "/inference.GRPCInferenceService/ModelReady",
    "/inference.GRPCInferenceService/ServerMetadata",
    "/inference.GRPCInferenceService/ModelMetadata",
    "/inference.GRPCInferenceService/ModelConfig",
    "/inference.GRPCInferenceService/ModelStatistics",
    "/inference.GRPCInferenceService/RepositoryIndex",
    "/inference.GRPCInferenceService/RepositoryModelLoad",
    "/inference.GRPCInferenceService/RepositoryModelUnload",
    "/inference.GRPCInferenceService/SystemSharedMemoryStatus",
    "/inference.GRPCInferenceService/TraceSetting",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
];

/// What a client sends on one connection, after the preface.
#[derive(Arbitrary, Debug)]
struct Client {
    parts: Vec<Part>,
    edits: Vec<Edit>,
    ending: Ending,
}

#[derive(Arbitrary, Debug)]
enum Part {
    Call(Call),
    Frame { kind: u8, flags: u8, stream: u8, payload: Vec<u8> },
    Message { stream: u8, message: Message, is_last: bool },
    Reset { stream: u8, code: u8 },
    Window { stream: u8, size: u32 },
    Setting { id: u8, value: u32 },
    Ping([u8; 8]),
    Priority { stream: u8, on: u8 },
    GoAway { stream: u8 },
}

/// Headers and messages of a call. The number of the stream is the next one where `stream` is `None`.
#[derive(Arbitrary, Debug)]
struct Call {
    stream: Option<u8>,
    path: u8,
    timeout: Option<u32>,
    encoding: Option<String>,
    headers: Vec<(String, String)>,
    messages: Vec<Message>,
    is_open: bool,
}

#[derive(Arbitrary, Debug)]
struct Message {
    content: Content,
    flag: Option<u8>,
    length: Option<u32>,
}

#[derive(Arbitrary, Debug)]
enum Content {
    Infer(Request),
    Bytes(Vec<u8>),
    /// Of most requests the first field is a model's name.
    Named,
    /// Two bytes again and again: an empty message of a field.
    Empty {
        field: u8,
        count: u16,
    },
}

/// Calls that are right, among frames that mean something else, and then changed.
pub fn run(data: &[u8]) {
    let Ok(client) = Unstructured::new(data).arbitrary::<Client>() else { return };
    let mut bytes = Vec::new();
    let mut next_stream = 1;
    client.parts.into_iter().for_each(|part| part.write(&mut bytes, &mut next_stream));
    edits::apply(&mut bytes, &client.edits);
    bytes.splice(0..0, PREFACE.iter().copied());
    exchange(&GRPC, &bytes, bytes.len(), client.ending);
}

impl Part {
    fn write(self, bytes: &mut Vec<u8>, next_stream: &mut u32) {
        let mut push = |kind, flags, stream: u8, payload: &[u8]| {
            frames::push(bytes, kind, flags, stream.into(), payload);
        };
        match self {
            Self::Call(call) => call.write(bytes, next_stream),
            Self::Frame { kind, flags, stream, payload } => push(kind, flags, stream, &payload),
            Self::Message { stream, message, is_last } => {
                push(kind::DATA, u8::from(is_last), stream, &message.framed());
            }
            Self::Reset { stream, code } => push(kind::RESET, 0, stream, &[0, 0, 0, code]),
            Self::Window { stream, size } => {
                push(kind::WINDOW_UPDATE, 0, stream, &size.to_be_bytes());
            }
            Self::Setting { id, value } => {
                let payload = [&[0, id][..], &value.to_be_bytes()].concat();
                push(kind::SETTINGS, 0, 0, &payload);
            }
            Self::Ping(payload) => push(kind::PING, 0, 0, &payload),
            Self::Priority { stream, on } => push(kind::PRIORITY, 0, stream, &[0, 0, 0, on, 1]),
            Self::GoAway { stream } => push(kind::GO_AWAY, 0, 0, &[0, 0, 0, stream, 0, 0, 0, 0]),
        }
    }
}

impl Call {
    fn write(self, bytes: &mut Vec<u8>, next_stream: &mut u32) {
        let stream = self.stream.map_or(*next_stream, u32::from);
        *next_stream += 2;
        let timeout = self.timeout.map(|timeout| format!("{timeout}u"));
        let fixed = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", PATHS[usize::from(self.path) % PATHS.len()]),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ];
        let optional = [("grpc-timeout", &timeout), ("grpc-encoding", &self.encoding)];
        let optional = optional.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let others = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let block = frames::headers(fixed.into_iter().chain(optional).chain(others));
        frames::push(bytes, kind::HEADERS, flag::END_HEADERS, stream, &block);
        for message in self.messages {
            frames::push(bytes, kind::DATA, 0, stream, &message.framed());
        }
        if !self.is_open {
            frames::push(bytes, kind::DATA, flag::END_STREAM, stream, &[]);
        }
    }
}

impl Message {
    /// With its prefix: the flag of compression, and the length.
    fn framed(self) -> Vec<u8> {
        let message = self.content.bytes();
        let length = self.length.unwrap_or(u32::try_from(message.len()).expect("short"));
        let mut framed = vec![self.flag.unwrap_or(0)];
        framed.extend(length.to_be_bytes());
        framed.extend(message);
        framed
    }
}

impl Content {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Infer(mut request) => request.message().encode_to_vec(),
            Self::Bytes(bytes) => bytes,
            Self::Named => b"\x0a\x01m".to_vec(),
            Self::Empty { field, count } => [field << 3 | 2, 0].repeat(count.into()),
        }
    }
}
