//! Lines of the log from libraries.

use std::ffi::{c_char, c_int};

use log::{Level, Record};

use crate::{
    abi::{self, log_level},
    call, text,
};

/// The name of the source of all these lines, by which filters choose.
const TARGET: &str = "galatea_triton_c::library";

fn level(number: u32) -> Level {
    match number {
        log_level::ERROR => Level::Error,
        log_level::WARN => Level::Warn,
        log_level::VERBOSE => Level::Debug,
        _ => Level::Info,
    }
}

pub(super) unsafe extern "C" fn is_enabled(number: u32) -> bool {
    call::value("TRITONSERVER_LogIsEnabled", false, || {
        Ok(log::log_enabled!(target: TARGET, level(number)))
    })
}

/// Libraries call this for every line, whatever the level: lines are dropped here.
pub(super) unsafe extern "C" fn log_message(
    number: u32,
    file: *const c_char,
    line: c_int,
    message: *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_LogMessage", || {
        let level = level(number);
        if !log::log_enabled!(target: TARGET, level) {
            return Ok(());
        }
        // SAFETY: the caller gives terminated texts, or null.
        let (file, message) =
            unsafe { (text::read_if_any(file), text::read(message, "the message")?) };
        log::logger().log(
            &Record::builder()
                .target(TARGET)
                .level(level)
                .file(file.as_deref())
                .line(u32::try_from(line).ok())
                .args(format_args!("{message}"))
                .build(),
        );
        Ok(())
    })
}
