//! Admission of requests, before their body is read: authentication, access, and the limits of the client.

use galatea_frontend::{Action, Caller};

use crate::{
    request::{received_request::ReceivedRequest, same_site},
    response::{
        Response,
        answers::{RefusalForm, failure, not_admitted},
    },
    state::ServerState,
};

/// Returns a refusal if the sender may not do this.
#[inline]
pub(crate) fn refusal(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    action: Action<'_>,
    form: RefusalForm,
) -> Option<Response> {
    match state.options.authentication.is_active() {
        true => asked(state, received, &action, form),
        false => None,
    }
}

/// Counts the request to the limits of its client until it is answered. Returns a refusal if a limit is reached.
#[inline]
pub(crate) fn refusal_by_limits(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    content_type: &'static str,
) -> Option<Response> {
    let connection = received.connection;
    let (client, connection) = (&connection.client, &connection.account);
    let identity = received.sender.caller.identity();
    let account = state.options.client_limits.account(client, connection, identity)?;
    received.sender.caller.count_to(Some(account));
    received.begin_share().err().map(|error| failure(&error.into(), content_type))
}

fn asked(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    action: &Action<'_>,
    form: RefusalForm,
) -> Option<Response> {
    let client = &received.connection.client;
    let headers = received.sender.head;
    let values = |name| headers.get_all(name);
    match state.options.authentication.admit(client, values, || *action) {
        Ok(caller) => admitted(received, caller),
        Err(error) => {
            let peer = client.peer;
            if let Some(identity) = error.identity() {
                received.exchange.set_identity(identity);
            }
            Some(not_admitted(&error, peer, form))
        }
    }
}

/// A page of another site could have caused a request whose credential the browser adds by itself.
fn admitted(received: &mut ReceivedRequest<'_>, caller: Caller) -> Option<Response> {
    if let Some(identity) = caller.identity() {
        received.exchange.set_identity(identity);
    }
    let is_browser = caller.is_browser();
    received.sender.caller = caller;
    is_browser.then(|| same_site::refusal(received.sender.head)).flatten()
}
