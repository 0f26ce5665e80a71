//! The load tool: perf_analyzer's command lines and method, wired together.

pub mod options;
pub mod profiler;
