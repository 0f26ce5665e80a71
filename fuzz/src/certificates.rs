//! Names in certificates of clients: whatever stands in them, they are printed on one line.

use galatea_frontend::distinguished_name;

use crate::memory::{Bound, bounded};

/// The name in pieces, then as a text in which a byte takes up to four.
const NAME: Bound = Bound { per_byte: 256, base: 64 << 10 };

pub fn name(bytes: &[u8]) {
    let text = bounded(bytes.len(), NAME, || distinguished_name(bytes));
    let Ok(text) = text else { return };
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert_eq!(distinguished_name(bytes).as_deref(), Ok(&*text));
}
