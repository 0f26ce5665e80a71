//! What a Redis server replies, and what lies in it as an answer.

use galatea_response_cache::{decode, encode, read_redis_reply};

use crate::memory::{Bound, bounded};

/// An answer is held as bytes, as tensors over them, and as the copy that is kept; each tensor has a name and a shape.
const ENTRY: Bound = Bound { per_byte: 64, base: 64 << 10 };

/// A reply is read into a list that doubles.
const REPLY: Bound = Bound { per_byte: 8, base: 64 << 10 };

/// Longest bytes that a reply may have here.
const MOST: usize = 1 << 20;

/// A stored answer.
pub fn entry(data: &[u8]) {
    let read = bounded(data.len(), ENTRY, || decode(data.to_vec()));
    if let Ok(entry) = read {
        for output in entry.outputs() {
            let expected = output.shape.byte_size(output.data_type);
            assert!(expected.is_none_or(|size| size == output.data.len()), "{}", output.name);
        }
        let again = decode(encode(&entry)).expect("what was written is read");
        assert_eq!(again.outputs(), entry.outputs());
    }
}

/// A reply, and what follows it.
pub fn redis_reply(mut data: &[u8]) {
    let length = data.len();
    bounded(length, REPLY, || while read_redis_reply(&mut data, MOST).is_ok() {});
}
