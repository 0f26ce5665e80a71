//! Numbers of the protocol: sizes, flags and kinds of messages. `PROTOCOL.md` describes each.

/// Longest packet, in bytes. Larger messages travel in a block of shared memory.
pub const PACKET_LIMIT: usize = 128 << 10;
/// Limit of the inline tensors of one message together, in bytes.
pub const INLINE_LIMIT: usize = 32 << 10;
/// Bytes of the header of a packet.
pub const HEADER_LENGTH: usize = 24;

/// Flags of a message.
pub mod flag {
    /// The last response of a request or call.
    pub const FINAL: u8 = 1;
    /// The message reports an error.
    pub const ERROR: u8 = 2;
    /// A response without a body.
    pub const EMPTY: u8 = 4;
    /// The caller takes several responses.
    pub const DECOUPLED: u8 = 8;
    /// The execution failed, and its requests get the errors as events.
    pub const RAISED: u8 = 16;
}

/// Kinds of messages.
#[allow(missing_docs, reason = "PROTOCOL.md describes each")]
pub mod kind {
    pub const HELLO: u8 = 1;
    pub const INIT: u8 = 2;
    pub const READY: u8 = 3;
    pub const COMPLETE: u8 = 4;
    pub const EXECUTE: u8 = 6;
    pub const EXECUTED: u8 = 7;
    pub const FINALIZE: u8 = 8;
    pub const FINALIZED: u8 = 9;

    pub const RESPONSE: u8 = 20;
    pub const INFER: u8 = 21;
    pub const CANCEL: u8 = 22;
    pub const LOG: u8 = 23;
    pub const CALL: u8 = 24;
    pub const NOTIFY: u8 = 25;
    pub const RELEASE_TO_SERVER: u8 = 26;
    pub const READINESS: u8 = 27;
    pub const TRIMMED: u8 = 28;

    pub const INFERRED: u8 = 40;
    pub const CALL_RESULT: u8 = 41;
    pub const RELEASE_TO_WORKER: u8 = 42;
    pub const READINESS_QUERY: u8 = 43;
    pub const TRIM: u8 = 44;
    pub const LOG_LEVEL: u8 = 45;
}
