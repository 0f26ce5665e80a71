//! Access rules of the operator, the same for both protocols: who may call what, and which headers reach the model.

mod authentication;
mod forwarding;
mod restrictions;

pub use self::{
    authentication::{Authentication, Caller},
    forwarding::{HeaderForwarding, PatternError},
    restrictions::{ApiCategory, RestrictedApis, Restriction, RestrictionError},
};
