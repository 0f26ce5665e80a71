//! Small backends built into the server, for tests and as examples of the backend trait.
