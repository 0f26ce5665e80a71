//! Authentication of clients and the operator's policy about what they may do, for both protocols.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use galatea_access::{AccessError, Action, Credentials, Gate, Grantee};
use galatea_types::{ClientShare, Identity};

use crate::{
    client::Client,
    client_limits::{CallAccount, ClientLimitError},
};

/// The headers that carry credentials. gRPC metadata uses the same names.
const AUTHORIZATION: &str = "authorization";
const API_KEY: &str = "x-api-key";

/// The policy that clients must satisfy. By default there is none, and every client is admitted.
#[derive(Clone, Debug, Default)]
pub struct Authentication(Option<Arc<Gate>>);

impl Authentication {
    /// Returns authentication by this policy.
    pub fn by(gate: Arc<Gate>) -> Self {
        Self(Some(gate))
    }

    /// Returns `true` if there is a policy.
    pub fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// Admits or refuses a request. `header` returns all values of a request header, by its name in lower case.
    #[inline]
    pub fn admit<'h, H>(
        &self,
        client: &Client,
        header: impl Fn(&'static str) -> H,
        action: impl FnOnce() -> Action<'h>,
    ) -> Result<Caller, AccessError>
    where
        H: Iterator<Item = &'h [u8]>,
    {
        match &self.0 {
            None => Ok(Caller::default()),
            Some(gate) => admit(gate, client, header, &action()),
        }
    }
}

fn admit<'h, H: Iterator<Item = &'h [u8]>>(
    gate: &Arc<Gate>,
    client: &Client,
    header: impl Fn(&'static str) -> H,
    action: &Action<'_>,
) -> Result<Caller, AccessError> {
    let (mut authorization, mut api_key) = (header(AUTHORIZATION), header(API_KEY));
    let mut credentials = Credentials {
        authorization: authorization.next(),
        api_key: api_key.next(),
        certificate: client.certificate.as_ref().map(|certificate| &*certificate.subject),
        are_repeated: false,
    };
    credentials.are_repeated = authorization.next().is_some() || api_key.next().is_some();
    let grantee = gate.admit(&credentials, action, now())?;
    let is_browser = credentials.are_sent_by_browsers();
    let (gate, revoked) = (gate.clone(), None);
    let known = KnownCaller { gate, grantee, generation: 0, revoked, is_browser };
    Ok(Caller { known: Some(Box::new(known)), account: None })
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The sender of a request. By default anybody, who may do anything, because no policy asks for proof.
#[derive(Clone, Default)]
pub struct Caller {
    known: Option<Box<KnownCaller>>,
    /// The account whose limits its requests count to; `None` without limits.
    account: Option<CallAccount>,
}

#[derive(Clone)]
struct KnownCaller {
    gate: Arc<Gate>,
    /// `None` for a request that anybody may make.
    grantee: Option<Arc<Grantee>>,
    /// The generation of the policy when the grantee was looked up; 0 if not known.
    generation: u64,
    /// The reason why the caller is no longer admitted.
    revoked: Option<AccessError>,
    is_browser: bool,
}

impl Caller {
    /// Returns the proven identity, if the policy asked for one.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        let grantee = self.known.as_ref()?.grantee.as_ref()?;
        (!grantee.is_anybody()).then(|| grantee.identity())
    }

    /// Counts the caller's requests to these limits from now on.
    pub fn count_to(&mut self, account: Option<CallAccount>) {
        self.account = account;
    }

    /// Returns the account whose limits the caller's requests count to.
    pub fn account(&self) -> Option<&CallAccount> {
        self.account.as_ref()
    }

    /// Begins a request of `bytes` bytes. The returned share of the client's limits is held until it is dropped.
    #[inline]
    pub fn begin(&self, bytes: usize) -> Result<Option<Box<ClientShare>>, ClientLimitError> {
        self.account.as_ref().map(|account| account.begin(bytes)).transpose()
    }

    /// Checks that the caller may also do `action`, once it is known exactly.
    #[inline]
    pub fn check(&self, action: &Action<'_>) -> Result<(), AccessError> {
        match self.known.as_deref() {
            None => Ok(()),
            Some(KnownCaller { revoked: Some(error), .. }) => Err(error.clone()),
            Some(known) => known.gate.check(known.grantee.as_deref(), action),
        }
    }

    /// Checks again for a long stream: the proof may have expired since, or the policy may have changed.
    #[inline]
    pub fn renew(&mut self) {
        if let Some(known) = &mut self.known {
            known.renew();
        }
    }

    /// Returns `true` if the caller may see this model in lists.
    pub fn may_read(&self, model: &str) -> bool {
        let grantee = self.known.as_ref().and_then(|known| known.grantee.as_ref());
        self.known.is_none() || grantee.is_some_and(|grantee| grantee.may(&Action::Read(model)))
    }

    /// Returns `true` if the caller may see every model because the server has no policy about callers.
    pub fn may_read_all(&self) -> bool {
        self.known.is_none()
    }

    /// Returns `true` if a browser may send the credential by itself, so that a page of another site could have caused
    /// the request.
    pub fn is_browser(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.is_browser)
    }
}

impl KnownCaller {
    fn renew(&mut self) {
        let Some(grantee) = &self.grantee else { return };
        match self.gate.renew(grantee, self.generation, now()) {
            Ok(None) => self.revoked = None,
            Ok(Some((grantee, generation))) => {
                (self.grantee, self.generation, self.revoked) = (Some(grantee), generation, None);
            }
            Err(error) => self.revoked = Some(error),
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.identity()).finish()
    }
}
