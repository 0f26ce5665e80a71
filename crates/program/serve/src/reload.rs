//! Files that a running server reads again: its logs, certificates and policy.

use std::sync::Arc;

use galatea_frontend::TlsReloadRequest;
use galatea_telemetry::{access_log::AccessLog, logger};

use crate::front_ends::authentication::PolicyReload;

/// Makes a server read its files again.
pub struct Reload {
    pub(crate) access_log: Option<Arc<AccessLog>>,
    pub(crate) tls: Option<TlsReloadRequest>,
    pub(crate) policy: Option<PolicyReload>,
}

impl Reload {
    /// Opens the logs again, whose files may have been moved, and reads the certificates and the policy. The threads of those log
    /// the outcome.
    pub fn read_again(&self) {
        if let Err(error) = logger::reopen() {
            log::error!("failed to open the log file again: {error}");
        }
        if let Some(Err(error)) = self.access_log.as_deref().map(AccessLog::reopen) {
            log::error!("failed to open the access log again: {error}");
        }
        log::info!("SIGHUP: opening the logs again, reading the TLS files and the policy again");
        if let Some(tls) = &self.tls {
            tls.send();
        }
        if let Some(policy) = &self.policy {
            policy.send();
        }
    }
}
