//! A failed request, as the page receives it.

use std::sync::Arc;

use galatea_frontend::FailedCall;
use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::words::millis;

#[derive(Debug)]
pub(crate) struct FailureRow(pub Arc<FailedCall>);

impl Serialize for FailureRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let call = &*self.0;
        let mut row = serializer.serialize_struct("FailureRow", 11)?;
        row.serialize_field("sequence", &call.sequence)?;
        row.serialize_field("time_ms", &millis(call.time))?;
        row.serialize_field("protocol", call.protocol)?;
        row.serialize_field("call", &*call.call)?;
        row.serialize_field("model", &*call.model)?;
        row.serialize_field("version", &call.version)?;
        row.serialize_field("id", &*call.id)?;
        row.serialize_field("client", &*call.client)?;
        row.serialize_field("status", &call.status)?;
        row.serialize_field("code", call.code.as_str())?;
        row.serialize_field("reason", &*call.reason)?;
        row.end()
    }
}
