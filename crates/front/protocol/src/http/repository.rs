//! The bodies of model repository requests: index, load, unload.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use galatea_types::Buffer;

use super::{
    decode_error::{DecodeError, Result},
    json::{JsonCursor, Kind, for_each_member},
    limits::MAX_FILES,
};

/// The contents of a load request that replace files of the repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadRequest {
    /// A model configuration as JSON.
    pub config: Option<String>,
    /// The files: paths relative to the model's folder, and contents.
    pub files: BTreeMap<String, Buffer>,
}

/// Returns `true` if an index request asks for ready models only. An empty body asks for all.
pub fn decode_index(body: &[u8]) -> galatea_types::Result<bool> {
    let mut ready_only = None;
    for_each_member_of(body, |key, cursor| {
        if key != b"ready" || ready_only.is_some() {
            return Ok(cursor.skip_value()?);
        }
        if cursor.kind() != Kind::Bool {
            return Err(DecodeError::ReadyNotBoolean);
        }
        ready_only = Some(cursor.boolean()?);
        Ok(())
    })?;
    Ok(ready_only.unwrap_or(false))
}

/// Decodes a load request. Its parameters are strings: `config`, and `file:PATH` in base64. Of two equal ones the first counts.
pub fn decode_load(body: &[u8]) -> galatea_types::Result<LoadRequest> {
    refuse_non_object(body)?;
    let mut request = LoadRequest::default();
    for_each_parameter(body, |key, cursor| {
        let path = key.strip_prefix(b"file:");
        if path.is_none() && key != b"config" {
            return Err(DecodeError::LoadParameter);
        }
        let value = cursor.expect_string()?;
        let Some(path) = path else {
            request.config.get_or_insert_with(|| String::from_utf8_lossy(&value).into_owned());
            return Ok(());
        };
        let path = String::from_utf8_lossy(path).into_owned();
        if request.files.contains_key(&path) {
            return Ok(());
        }
        if request.files.len() == MAX_FILES {
            return Err(DecodeError::TooManyFiles(MAX_FILES));
        }
        let content = STANDARD
            .decode(&value)
            .map_err(|source| DecodeError::FileContent { path: path.clone(), source })?;
        request.files.insert(path, Buffer::from(content));
        Ok(())
    })?;
    Ok(request)
}

/// Refuses a body that is not an object. Triton ignores any such JSON value, but its sender must have meant something else.
pub(super) fn refuse_non_object(body: &[u8]) -> Result<()> {
    match body.is_empty() || JsonCursor::new(body).kind() == Kind::Object {
        true => Ok(()),
        false => Err(JsonCursor::check_document(body)
            .err()
            .map_or(DecodeError::BodyNotObject, DecodeError::from)),
    }
}

/// Returns `true` if an unload request includes the models that depend on this one.
pub fn decode_unload(body: &[u8]) -> galatea_types::Result<bool> {
    refuse_non_object(body)?;
    let mut unload_dependents = None;
    for_each_parameter(body, |key, cursor| {
        if key != b"unload_dependents" || unload_dependents.is_some() {
            return Ok(cursor.skip_value()?);
        }
        let value = cursor.expect_bool();
        unload_dependents =
            Some(value.map_err(|e| DecodeError::from(e).in_field("unload_dependents"))?);
        Ok(())
    })?;
    Ok(unload_dependents.unwrap_or(false))
}

fn for_each_parameter<'a>(
    body: &'a [u8],
    mut parameter: impl FnMut(&[u8], &mut JsonCursor<'a>) -> Result<()>,
) -> Result<()> {
    let mut is_first = true;
    for_each_member_of(body, |key, cursor| {
        if key != b"parameters" || !std::mem::replace(&mut is_first, false) {
            return Ok(cursor.skip_value()?);
        }
        if cursor.kind() != Kind::Object {
            return Err(DecodeError::NotObject);
        }
        for_each_member(cursor, &mut parameter)
    })
}

/// Calls `member` for each member of the body; an empty body has none. Syntax errors come before all others.
pub(super) fn for_each_member_of<'a>(
    body: &'a [u8],
    member: impl FnMut(&[u8], &mut JsonCursor<'a>) -> Result<()>,
) -> Result<()> {
    if body.is_empty() {
        return Ok(());
    }
    let mut cursor = JsonCursor::new(body);
    for_each_member(&mut cursor, member)
        .and_then(|()| Ok(cursor.end_document()?))
        .map_err(|error| JsonCursor::check_document(body).err().map_or(error, DecodeError::from))
}
