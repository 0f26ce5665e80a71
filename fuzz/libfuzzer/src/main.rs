//! One target of `galatea-fuzz` under libFuzzer: the one that the variable `GALATEA_FUZZ_TARGET` names.
#![no_main]

use std::{
    env,
    sync::{Arc, LazyLock},
};

use galatea_fuzz::{Target, target};
use libfuzzer_sys::fuzz_target;
use signal_hook::{consts::SIGPIPE, flag};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    // A connection that the server has closed is an error, as in a program with a main function of Rust.
    flag::register(SIGPIPE, Arc::default()).expect("a handler");
    let name = env::var("GALATEA_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("GALATEA_FUZZ_TARGET names no target: '{name}'"))
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
