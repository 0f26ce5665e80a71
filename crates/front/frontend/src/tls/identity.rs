//! The identity of the server: its certificate chain and its key, checked against each other.

use std::{path::Path, sync::Arc, time::SystemTime};

use rustls::{
    SignatureAlgorithm,
    crypto::ring,
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::ResolvesServerCert,
    sign::{CertifiedKey, SigningKey, SingleCertAndKey},
};

use super::{
    TlsError, TlsFiles,
    authorities::{certificates, contains, unusable},
    certificate::{self, CertificateRequirement, date},
    files,
};

/// A valid certificate chain whose first certificate belongs to the key.
pub struct Identity {
    certified: Arc<CertifiedKey>,
    pub leaf: CertificateRequirement,
    /// Is `true` for RSA, whose signature takes about a millisecond; one by an elliptic curve takes a thirtieth of that.
    pub signs_slowly: bool,
}

impl Identity {
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificates)?;
        let key = signing_key(&files.key)?;
        let described: Result<Vec<_>, _> = chain.iter().map(|der| certificate::read(der)).collect();
        let described = described.map_err(|error| unusable(&files.certificates, &error))?;
        check_pair(files, &described, &key)?;
        let signs_slowly = key.algorithm() == SignatureAlgorithm::RSA;
        let certified = Arc::new(CertifiedKey::new(chain, key));
        log_order(&files.certificates, &described);
        // `certificates` returns at least one.
        let Some(leaf) = described.into_iter().next() else {
            return Err(unusable(&files.certificates, &"it is empty"));
        };
        check_dates(&files.certificates, &leaf)?;
        if leaf.is_version_1 {
            log::warn!(
                "the certificate in '{}' ({}) is of version 1, which names no hosts: clients that are strict refuse it, those of \
                 this program among them. Make one of version 3: give openssl x509 -req the option -extfile, with a line \
                 subjectAltName=DNS:HOST",
                files.certificates.display(),
                leaf.subject
            );
        }
        Ok(Self { certified, leaf, signs_slowly })
    }

    pub fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::new(SingleCertAndKey::from(self.certified.clone()))
    }
}

fn signing_key(file: &Path) -> Result<Arc<dyn SigningKey>, TlsError> {
    let text = files::read(file)?;
    if contains(&text, b"BEGIN ENCRYPTED PRIVATE KEY") || contains(&text, b"Proc-Type: 4,ENCRYPTED")
    {
        return Err(TlsError::EncryptedKey { file: file.to_owned() });
    }
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        use rustls::pki_types::pem::Error::NoItemsFound;
        match error {
            NoItemsFound => TlsError::NoKey { file: file.to_owned(), hint: hint(&text) },
            error => unusable(file, &error),
        }
    })?;
    ring::sign::any_supported_type(&key).map_err(|error| {
        let kinds = "keys are RSA of 2048 to 8192 bits, ECDSA P256 or P384, or Ed25519";
        unusable(file, &format!("{error}; {kinds}"))
    })
}

fn hint(text: &[u8]) -> &'static str {
    match text {
        [] => "; the file is empty",
        _ if contains(text, b"BEGIN CERTIFICATE") => {
            "; this is a certificate, are the two files swapped?"
        }
        _ => "",
    }
}

/// Checks that the key belongs to the first certificate.
fn check_pair(
    files: &TlsFiles,
    described: &[CertificateRequirement],
    key: &Arc<dyn SigningKey>,
) -> Result<(), TlsError> {
    let public_key = key.public_key();
    // A kind of key that does not expose its public key is left to the handshake.
    let fits = |one: &CertificateRequirement| {
        public_key.as_ref().is_none_or(|own| **own == *one.public_key)
    };
    let position = described.iter().position(fits);
    let certificates = files.certificates.clone();
    let subject = |at: usize| described.get(at).map(|one| one.subject.clone()).unwrap_or_default();
    match position {
        Some(0) => Ok(()),
        Some(at) => {
            Err(TlsError::WrongOrder { certificates, subject: subject(at), position: at + 1 })
        }
        None => {
            Err(TlsError::WrongKey { key: files.key.clone(), certificates, subject: subject(0) })
        }
    }
}

fn check_dates(file: &Path, leaf: &CertificateRequirement) -> Result<(), TlsError> {
    let now = SystemTime::now();
    if leaf.not_after < now {
        return Err(TlsError::Expired {
            certificates: file.to_owned(),
            subject: leaf.subject.clone(),
            date: date(leaf.not_after),
        });
    }
    if leaf.not_before > now {
        // The clock of one of the two machines may be a little off.
        log::warn!(
            "the certificate in '{}' ({}) is not valid before {}: is the clock of this machine right?",
            file.display(),
            leaf.subject,
            date(leaf.not_before)
        );
    }
    Ok(())
}

/// Warns about a chain in the wrong order: many clients reorder it themselves, and some do not.
fn log_order(file: &Path, chain: &[CertificateRequirement]) {
    let is_broken = |pair: &&[CertificateRequirement]| match pair {
        [one, next] => one.issuer_name != next.subject_name,
        _ => false,
    };
    if let Some([one, next]) = chain.windows(2).find(|pair| is_broken(pair)) {
        log::warn!(
            "the chain in '{}' is out of order: '{}' did not sign '{}', which stands before it; some clients refuse that",
            file.display(),
            next.subject,
            one.subject
        );
    }
}
