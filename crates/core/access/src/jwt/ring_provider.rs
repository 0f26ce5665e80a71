//! Provides the cryptography of `jsonwebtoken` by `ring`, which the program already has for TLS. It only checks signatures;
//! nothing here signs.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
    signature::{self, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs this provider in the library. Only the first call has an effect.
pub(super) fn install() {
    // An error means that a provider is installed already. It is this one: the program has no other.
    let _ = PROVIDER.install_default();
}

fn unsupported() -> Error {
    ErrorKind::UnsupportedAlgorithm.into()
}

fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(unsupported())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let key = match (algorithm, key.kind()) {
        (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Key::Rsa(RsaPublicKeyComponents { n: trimmed(n), e: trimmed(e) })
        }
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
            Key::Curve(&ECDSA_P256_SHA256_FIXED, point.clone())
        }
        (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
            Key::Curve(&ED25519, point.clone())
        }
        _ => return Err(unsupported()),
    };
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key }))
}

/// Removes leading zeros: some issuers write one before numbers whose first bit is set.
fn trimmed(number: &[u8]) -> Vec<u8> {
    number.iter().skip_while(|&&byte| byte == 0).copied().collect()
}

enum Key {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    Curve(&'static dyn VerificationAlgorithm, Vec<u8>),
}

struct RingVerifier {
    algorithm: Algorithm,
    key: Key,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match &self.key {
            Key::Rsa(key) => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Key::Curve(algorithm, point) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
        };
        verified.map_err(|_| signature::Error::new())
    }
}
