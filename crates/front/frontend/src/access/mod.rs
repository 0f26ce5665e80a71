//! Who may call what, and which headers reach the model: rules of the operator, the same for both protocols.

mod authentication;
mod categories;
mod forwarding;
mod restrictions;

pub use self::{
    authentication::{Authentication, Caller},
    categories::ApiCategory,
    forwarding::{ForwardingError, HeaderForwarding},
    restrictions::{RestrictedApis, Restriction, RestrictionError},
};
