//! What the tests of all reports share.

pub(crate) mod samples;
