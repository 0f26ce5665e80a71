//! The gRPC front end.
