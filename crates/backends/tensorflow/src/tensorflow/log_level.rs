//! Limits TensorFlow's messages. It writes a dozen lines for each model to stderr, past the log. Only a variable of the
//! environment can limit them.

use std::ffi::CStr;

/// The variable. Its levels go from 0, everything, to 3, only errors that end the process.
const LEVEL: &CStr = c"TF_CPP_MIN_LOG_LEVEL";

/// Turns TensorFlow's warnings off unless the user has set a level. The server reports errors of a load or run itself. Call
/// it when the program begins: once it has threads, nothing is done.
pub fn quiet() {
    galatea_system::set_variable_while_alone(LEVEL, c"2");
}
