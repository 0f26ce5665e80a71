//! Digests as the names of folders in the cache.

use sha2::{Digest, Sha256};

/// In lower-case hexadecimal digits.
pub(super) fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
