//! Changes to bytes that were valid.

use arbitrary::Arbitrary;

/// One change: at `at`, counted around the end, `removed` bytes go and `inserted` come.
#[derive(Arbitrary, Clone, Debug)]
pub struct Edit {
    at: u16,
    removed: u8,
    inserted: Inserted,
}

#[derive(Arbitrary, Clone, Debug)]
enum Inserted {
    Bytes(Vec<u8>),
    /// One byte, many times.
    Run(u8, u16),
    /// What stands at another place.
    Copy(u16, u8),
}

/// Makes the changes in order.
pub fn apply(bytes: &mut Vec<u8>, edits: &[Edit]) {
    for edit in edits {
        let start = usize::from(edit.at) % (bytes.len() + 1);
        let end = bytes.len().min(start + usize::from(edit.removed));
        let inserted = edit.inserted.bytes(bytes);
        bytes.splice(start..end, inserted);
    }
}

impl Inserted {
    fn bytes(&self, all: &[u8]) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Run(byte, count) => vec![*byte; usize::from(*count)],
            Self::Copy(at, length) => {
                let start = usize::from(*at).min(all.len());
                all[start..all.len().min(start + usize::from(*length))].to_vec()
            }
        }
    }
}
