//! TensorFlow writes what it does to stderr, past the log, a dozen lines for each model. How much of it can be asked for in
//! one way alone: by a variable of the environment.

use std::ffi::CStr;

/// Levels from 0, everything, to 3, nothing but what ends the process.
const LEVEL: &CStr = c"TF_CPP_MIN_LOG_LEVEL";

/// Has TensorFlow tell warnings no more, unless the user says what it is to tell: errors of a load or run are ours to
/// tell. To be called when the program begins: once it has threads, nothing is done.
pub fn quiet() {
    galatea_system::set_variable_while_alone(LEVEL, c"2");
}
