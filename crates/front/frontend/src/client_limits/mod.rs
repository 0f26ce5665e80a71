//! Limits on the share of the server that one client may use: requests and bytes in progress, and requests a second.
//!
//! A client is its proven identity, or else the address that it connects from. With no limits, the default, this costs
//! one branch a request.

mod error;
mod table;
mod token_bucket;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use galatea_types::{ClientAccount, ClientShare, Identity, OverShare, ShareLimits};

pub use self::{error::ClientLimitError, token_bucket::RequestRate};
use self::{
    error::Limit,
    table::{Accounts, OneClient},
};
use crate::client::Client;

/// The limits of clients, set by the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientLimitSettings {
    /// The limits of all requests of one client.
    pub client: ShareLimits,
    /// The limits of the requests on one connection.
    pub connection: ShareLimits,
    /// The request rate of one client.
    pub rate: Option<RequestRate>,
}

impl Default for ClientLimitSettings {
    fn default() -> Self {
        Self { client: ShareLimits::NONE, connection: ShareLimits::NONE, rate: None }
    }
}

/// The limits of clients and the current use of each, shared by all front ends. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct ClientLimits(Option<Arc<LimitState>>);

#[derive(Debug)]
struct LimitState {
    settings: ClientLimitSettings,
    accounts: Accounts,
    refused: [AtomicU64; Limit::ALL.len()],
}

/// The account of the requests of one connection; empty without limits per connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectionAccount(Option<Arc<ClientAccount>>);

/// The accounts that the requests of a call count to.
#[derive(Clone, Debug)]
pub struct CallAccount {
    limits: Arc<LimitState>,
    client: Arc<OneClient>,
    connection: Option<Arc<ClientAccount>>,
}

impl ClientLimits {
    /// Returns these limits, or none for the default settings.
    pub fn new(settings: ClientLimitSettings) -> Self {
        if settings == ClientLimitSettings::default() {
            return Self::default();
        }
        let accounts = Accounts::new(settings.client, settings.rate);
        Self(Some(Arc::new(LimitState { settings, accounts, refused: Default::default() })))
    }

    /// Returns the account of a new connection.
    pub fn connection(&self) -> ConnectionAccount {
        let limits = self.0.as_ref().map(|inner| inner.settings.connection);
        let limits = limits.filter(|limits| *limits != ShareLimits::NONE);
        ConnectionAccount(limits.map(ClientAccount::new))
    }

    /// Returns the account that a call counts to; `None` if there are no limits.
    #[inline]
    pub fn account(
        &self,
        client: &Client,
        connection: &ConnectionAccount,
        identity: Option<&Arc<Identity>>,
    ) -> Option<CallAccount> {
        let inner = self.0.as_ref()?;
        let one = inner.accounts.of(client.peer, identity.map(|identity| identity.key()));
        Some(CallAccount { limits: inner.clone(), client: one, connection: connection.0.clone() })
    }

    /// Returns the number of refused requests by limit.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.0.iter().flat_map(|inner| inner.refused.iter());
        Limit::ALL.iter().map(|limit| limit.name()).zip(counts.map(|count| count.load(Relaxed)))
    }
}

impl CallAccount {
    /// Begins a request of `bytes` bytes. Its share is held until it is dropped; the error names the limit that was reached.
    pub fn begin(&self, bytes: usize) -> Result<Box<ClientShare>, ClientLimitError> {
        self.begin_at(bytes, Instant::now())
    }

    fn begin_at(&self, bytes: usize, now: Instant) -> Result<Box<ClientShare>, ClientLimitError> {
        let of_client = |over| self.over(over, true);
        let share = self.client.account.take(bytes).map_err(of_client)?;
        let share = match &self.connection {
            None => share,
            Some(connection) => {
                share.and(connection.take(bytes).map_err(|over| self.over(over, false))?)
            }
        };
        // The rate comes last, so that a request refused by another limit uses none of it.
        self.client.pass(now).map_err(|wait| {
            let rate = self.limits.settings.rate.unwrap_or_default();
            self.refused(ClientLimitError::rate(rate, wait))
        })?;
        Ok(Box::new(share))
    }

    /// Grows the share of a request that turned out to be longer.
    pub fn grow(&self, share: &mut ClientShare, bytes: usize) -> Result<(), ClientLimitError> {
        share.grow(bytes).map_err(|over| {
            let limit = self.limits.settings.client.bytes;
            self.over(over, over == OverShare::Bytes(limit))
        })
    }

    fn over(&self, over: OverShare, is_of_client: bool) -> ClientLimitError {
        self.refused(ClientLimitError::over(over, is_of_client))
    }

    fn refused(&self, error: ClientLimitError) -> ClientLimitError {
        self.limits.refused[error.limit() as usize].fetch_add(1, Relaxed);
        error
    }
}

#[cfg(test)]
mod tests;
