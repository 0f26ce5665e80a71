//! Stand-ins that the tests of several modules use.

pub mod fake_files;
