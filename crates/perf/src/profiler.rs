//! Windows, stability, search.
