//! Who sends a request, and whether that may be done: the operator's policy, asked by both protocols.

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

/// The headers that credentials come in, and their names in gRPC's metadata.
const AUTHORIZATION: &str = "authorization";
const API_KEY: &str = "x-api-key";

/// Whether clients have to prove who they are. By default nobody has to.
#[derive(Clone, Debug, Default)]
pub struct Authentication(Option<Arc<Gate>>);

impl Authentication {
    /// By this policy.
    pub fn by(gate: Arc<Gate>) -> Self {
        Self(Some(gate))
    }

    /// Whether a policy is asked at all.
    pub fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// Lets a request in, or not. `header`: all values of a header of the request, by its name in small letters.
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
            Some(gate) => admit(gate, client, (header(AUTHORIZATION), header(API_KEY)), &action()),
        }
    }
}

fn admit<'h, H: Iterator<Item = &'h [u8]>>(
    gate: &Arc<Gate>,
    client: &Client,
    (mut authorization, mut api_key): (H, H),
    action: &Action<'_>,
) -> Result<Caller, AccessError> {
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

/// The second since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Who sends a request. By default anybody, who may do anything: nobody has to say who it is.
#[derive(Clone, Default)]
pub struct Caller {
    known: Option<Box<KnownCaller>>,
    /// Whose limits its requests count to, where there are limits.
    account: Option<CallAccount>,
}

#[derive(Clone)]
struct KnownCaller {
    gate: Arc<Gate>,
    /// `None`: the request is one that anybody may make.
    grantee: Option<Arc<Grantee>>,
    /// Of the policy, as it was when that was looked up; 0: not known.
    generation: u64,
    /// Why it is not let in any more.
    revoked: Option<AccessError>,
    is_browser: bool,
}

impl Caller {
    /// Who it is, where that was asked.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        let grantee = self.known.as_ref()?.grantee.as_ref()?;
        (!grantee.is_anybody()).then(|| grantee.identity())
    }

    /// Its requests count to these limits from now on.
    pub fn count_to(&mut self, account: Option<CallAccount>) {
        self.account = account;
    }

    /// Whose limits its requests count to.
    pub fn account(&self) -> Option<&CallAccount> {
        self.account.as_ref()
    }

    /// One more request of so many bytes: what it takes of the client's limits until that is dropped.
    #[inline]
    pub fn begin(&self, bytes: usize) -> Result<Option<Box<ClientShare>>, ClientLimitError> {
        self.account.as_ref().map(|account| account.begin(bytes)).transpose()
    }

    /// Whether it may do this too, now that it is known what exactly.
    #[inline]
    pub fn check(&self, action: &Action<'_>) -> Result<(), AccessError> {
        match self.known.as_deref() {
            None => Ok(()),
            Some(KnownCaller { revoked: Some(error), .. }) => Err(error.clone()),
            Some(known) => known.gate.check(known.grantee.as_deref(), action),
        }
    }

    /// It goes on, on a stream, long after it was let in: its proof may have expired meanwhile, or the policy have changed.
    #[inline]
    pub fn renew(&mut self) {
        if let Some(known) = &mut self.known {
            known.renew();
        }
    }

    /// Whether this model may be told of: for lists.
    pub fn may_read(&self, model: &str) -> bool {
        let grantee = self.known.as_ref().and_then(|known| known.grantee.as_ref());
        self.known.is_none() || grantee.is_some_and(|grantee| grantee.may(&Action::Read(model)))
    }

    /// Whether the credential may be sent by a browser of its own accord, so that a page of another site could have had it
    /// sent.
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
