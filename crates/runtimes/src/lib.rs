//! Finding and installing the native runtime libraries the backends open.
