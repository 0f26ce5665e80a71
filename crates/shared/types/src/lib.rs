//! The types that every layer shares: errors, data types, shapes, buffers, tensors, requests, responses.
//!
//! Nothing here knows a wire format, a socket or a runtime library, and nothing does I/O.

#![warn(missing_docs)]

mod buffer;
pub mod byte_strings;
mod call;
mod cancel;
mod client_share;
mod clock;
mod context;
mod data_type;
mod debug_events;
mod environment;
mod error;
mod held_place;
mod identity;
pub mod late_work;
mod lock;
mod memory_budget;
mod names;
mod observer;
mod origin;
mod output;
mod overloaded;
mod prepared_request;
pub mod product;
mod refused;
mod region;
mod request;
mod responder;
mod response;
mod shape;
mod stop;
pub mod suggest;
mod tensor;
mod timeline;
mod trace_context;

pub use buffer::{
    AlignedBlock, BUFFER_ALIGNMENT, Buffer, Device, DeviceAllocator, DeviceBlock, DeviceKind,
    DeviceMemory, Memory, NotInHostMemory,
};
pub use call::{CallRecord, Sender};
pub use cancel::{CancelOnDrop, Cancellation};
pub use client_share::{ClientAccount, ClientShare, OverShare, ShareLimits};
pub use clock::{Clock, ManualClock};
pub use context::RequestContext;
pub use data_type::DataType;
pub use debug_events::{DebugEvent, DebugEventReader, DebugEvents, InstanceName};
pub use environment::Environment;
pub use error::{Code, Error, MAX_ERROR_TEXT, Result, shortened};
pub use held_place::HeldPlace;
pub use identity::Identity;
pub use lock::{CondvarExt, LockExt, RwLockExt};
pub use memory_budget::{MemoryBudget, MemoryReservation, OverBudget};
pub use observer::{Cause, Observer, Observers, RequestStart};
pub use origin::{Origin, Protocol, StepTimes};
pub use output::{OutputAllocator, OutputMemory};
pub use overloaded::Overloaded;
pub use prepared_request::PreparedRequest;
pub use refused::Refused;
pub use region::{Region, RegionSpan, Regions, UnreadInput, UnreadRequest};
pub use request::{CorrelationId, InferRequest, ParameterValue, Parameters, RESERVED_PARAMETERS};
pub use responder::{Responder, Response, ResponseSink};
pub use response::InferResponse;
pub use shape::Shape;
pub use stop::{Stop, StopGuard};
pub use tensor::Tensor;
pub use timeline::Timeline;
pub use trace_context::TraceContext;
