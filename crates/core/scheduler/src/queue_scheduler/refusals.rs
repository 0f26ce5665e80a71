//! The reasons why a request is not queued, for its client and the statistics.

use galatea_telemetry::RefusalReason;
use galatea_types::{CorrelationId, InferRequest, PreparedRequest};

use crate::{
    request_failure::RequestFailure,
    request_queue::Refusal,
    sequence::{SequenceInputs, SequenceRefusal},
};

/// Returns why a request cannot be part of any sequence of the model.
pub(super) fn unfit(
    sequences: &SequenceInputs,
    model: &str,
    request: &PreparedRequest,
) -> Option<RequestFailure> {
    let (id, model) = (&request.correlation_id, model.to_owned());
    if request.batch_size() > 1 {
        return Some(RequestFailure::SequenceBatchSize { model });
    }
    if *id == CorrelationId::None && !sequences.is_iterative() {
        return Some(RequestFailure::NoCorrelationId { model });
    }
    let data_type = sequences.unfit_for(id)?;
    Some(RequestFailure::CorrelationIdType { id: id.clone(), model, data_type })
}

/// Returns the reason in the server's state; `None` if the request itself is the reason.
pub(super) fn refusal_reason(refusal: &Refusal) -> Option<RefusalReason> {
    match refusal {
        Refusal::Closed => Some(RefusalReason::Unloading),
        Refusal::Full => Some(RefusalReason::QueueFull),
        Refusal::NoWorkingInstance(_) => Some(RefusalReason::NoInstance),
        Refusal::OfSequence(_) => None,
    }
}

pub(super) fn failure(model: &str, request: &InferRequest, refusal: Refusal) -> RequestFailure {
    let prefix = request.message_prefix();
    match refusal {
        Refusal::Closed => RequestFailure::Closed { prefix },
        Refusal::Full => RequestFailure::QueueFull { prefix },
        Refusal::NoWorkingInstance(reason) => {
            RequestFailure::NoWorkingInstance { prefix, model: model.to_owned(), reason }
        }
        Refusal::OfSequence(refusal) => {
            let (id, model) = (request.correlation_id.clone(), model.to_owned());
            match refusal {
                SequenceRefusal::NoSequence => RequestFailure::NoCorrelationId { model },
                SequenceRefusal::NotStarted => RequestFailure::SequenceNotStarted { id, model },
                SequenceRefusal::OfAnotherClient => {
                    RequestFailure::SequenceOfAnotherClient { id, model }
                }
                SequenceRefusal::GaveWay => RequestFailure::SequenceGaveWay { id, model },
                SequenceRefusal::Lost(reason) => RequestFailure::SequenceLost { id, model, reason },
            }
        }
    }
}
