//! Who may call what, and which headers reach the model: rules of the operator, the same for both protocols.

mod authentication;
mod forwarding;
mod restrictions;

pub use self::{
    authentication::{Authentication, Caller},
    forwarding::{HeaderForwarding, PatternError},
    restrictions::{ApiCategory, RestrictedApis, Restriction, RestrictionError},
};
