//! Any bytes as a packet of a Python worker: a message or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| galatea_worker::wire::read_anything(packet));
