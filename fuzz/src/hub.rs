//! What a model hub answers: commits and listings, and which models their files are.

use crate::memory::{Bound, bounded};

/// Values of JSON are read into types that know them; names are kept twice and shown in errors.
const BOUND: Bound = Bound { per_byte: 64, base: 64 << 10 };

/// The first line is an address, the rest an answer.
pub fn answer(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let address = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let answer = parts.next().unwrap_or_default();
    bounded(data.len(), BOUND, || galatea_remote_repository::hub::read_answer(answer, &address));
}
