//! The server's services for a Python worker while its model runs.

mod bls;
mod readiness;
mod server_calls;

use std::sync::Arc;

use galatea_backend::ServerAccess;
use galatea_worker::{
    Connection, Message, Services,
    wire::{Failure, ProtocolError, flag, kind},
};

use self::bls::BlsCalls;
pub(crate) use self::readiness::ReadinessQueries;
use crate::{model_metrics::ModelMetrics, worker_rules::ModelControlRule};

/// The connection to a Python worker.
pub(crate) type PythonConnection = Connection<PythonServices>;

/// Services for one worker: requests to other models, control of them, metrics, and the model's own readiness.
pub(crate) struct PythonServices {
    /// Other models, and control of them.
    server: ServerAccess,
    /// Rule for the loads and unloads of the model.
    model_control: ModelControlRule,
    /// Metrics that the model defined.
    metrics: ModelMetrics,
    /// Requests of the worker to other models.
    calls: BlsCalls,
    /// Cloned by each open load, unload and readiness question of the worker for other models.
    control_calls: Arc<()>,
    /// Readiness queries to the worker's model.
    pub readiness: ReadinessQueries,
}

impl PythonServices {
    /// Makes the services for one worker.
    pub fn new(server: ServerAccess, model_control: ModelControlRule) -> Self {
        Self {
            model_control,
            metrics: ModelMetrics::new(server.metrics.clone()),
            server,
            calls: BlsCalls::default(),
            control_calls: Arc::default(),
            readiness: ReadinessQueries::default(),
        }
    }
}

impl Services for PythonServices {
    fn handle(
        connection: &Arc<PythonConnection>,
        message: &Message<'_>,
    ) -> Result<(), ProtocolError> {
        let header = message.packet.header;
        match header.kind {
            kind::INFER => bls::start(connection, message),
            kind::CANCEL => {
                connection.services.calls.cancel(header.id);
                Ok(())
            }
            kind::CALL => server_calls::start(connection, message),
            kind::NOTIFY => {
                message.json().map(|fields| connection.services.metrics.notify(&fields))
            }
            kind::READINESS => readiness_answer(connection, message),
            _ => Err(ProtocolError("its kind is unknown")),
        }
    }

    fn end(&self) {
        self.calls.cancel_all();
        self.readiness.close();
        self.metrics.clear();
    }
}

fn readiness_answer(
    connection: &PythonConnection,
    message: &Message<'_>,
) -> Result<(), ProtocolError> {
    let header = message.packet.header;
    let has_failed = header.has(flag::ERROR);
    if has_failed {
        let identity = connection.lifecycle.identity();
        let failure = Failure::read(message.packet.payload)?;
        let text = if failure.traceback.is_empty() { failure.message } else { failure.traceback };
        log::warn!("{identity}: is_ready failed: {}", text.trim_end());
    }
    connection.services.readiness.answer(header.id, header.count == 1 && !has_failed);
    Ok(())
}
