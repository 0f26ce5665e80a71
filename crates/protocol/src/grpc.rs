//! The gRPC messages to and from the vocabulary.
