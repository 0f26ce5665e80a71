//! Any bytes as an inference request with binary tensors behind its JSON, or raw: an answer or an error,
//! never a panic. The first two bytes say where the JSON ends.
#![no_main]

mod model;

use bytes::Bytes;
use galatea_protocol::{NoRegions, http::decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((header_length, body)) = data.split_first_chunk::<2>() else { return };
    let body = Bytes::from(body.to_vec());
    let header_length = usize::from(u16::from_le_bytes(*header_length));
    let _ = decode(&body, header_length, &model::config(), Some(1), &NoRegions);
});
