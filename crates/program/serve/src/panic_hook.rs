//! Panics as lines of the log.

use std::{
    panic::{self, PanicHookInfo},
    thread,
};

/// Writes a panic as one line of the log, instead of the default's lines on stderr. A panic ends a request or an instance; the
/// code that started it catches the panic.
pub fn install() {
    panic::set_hook(Box::new(|info| log::error!("{}", describe(info))));
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let payload = info.payload();
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    format!("panic in thread '{name}' at {place}: {text}")
}
