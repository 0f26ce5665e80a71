//! The HTTP front end and the metrics endpoint.
