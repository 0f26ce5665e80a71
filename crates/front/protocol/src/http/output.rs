//! The `outputs` of an inference request: the outputs that the client wants, and their forms.

use std::{num::NonZero, sync::Arc};

use galatea_types::{InferRequest, Regions};

use super::{
    decode_error::{DecodeError, Result},
    field::Member,
    json::{JsonCursor, for_each_element, for_each_member},
    limits::{self, Count},
    region::RegionParameters,
};
use crate::answer_form::{AnswerForm, PlannedOutput};

/// Reads the array at the cursor and moves past it.
pub(super) fn read_all(
    cursor: &mut JsonCursor<'_>,
    regions: &dyn Regions,
    mut count: Count<'_>,
) -> Result<Vec<PlannedOutput>> {
    cursor.expect_array().map_err(|e| DecodeError::from(e).in_field("outputs"))?;
    let mut outputs = Vec::new();
    for_each_element(cursor, |cursor| -> Result<()> {
        count.next()?;
        outputs.push(read(cursor, regions)?);
        Ok(())
    })?;
    Ok(outputs)
}

/// Refuses two outputs with the same name.
pub(super) fn check_unique(request: &InferRequest, outputs: &[PlannedOutput]) -> Result<()> {
    match limits::first_repeated(outputs, |output| &output.name) {
        None => Ok(()),
        Some(output) => Err(DecodeError::DuplicateOutput {
            prefix: request.message_prefix(),
            output: output.name.to_string(),
        }),
    }
}

fn read(cursor: &mut JsonCursor<'_>, regions: &dyn Regions) -> Result<PlannedOutput> {
    let (mut name, mut form) = (Member::default(), Member::default());
    for_each_member(cursor, |key, cursor| match key {
        b"name" => name.read(cursor, JsonCursor::expect_string),
        b"parameters" => form.read(cursor, |cursor| read_form(cursor, regions)),
        _ => cursor.skip_value(),
    })?;
    let name = name.require(cursor, "name", JsonCursor::expect_string)?;
    let name: Arc<str> = limits::name(&name).into();
    let form = form.take(cursor, |cursor| read_form(cursor, regions))?.unwrap_or_default();
    Ok(PlannedOutput { name, form })
}

/// Returns the form that the parameters of an output ask for.
fn read_form(cursor: &mut JsonCursor<'_>, regions: &dyn Regions) -> Result<AnswerForm> {
    let (mut is_binary, mut classes) = (None, None);
    let mut region = RegionParameters::default();
    for_each_member(cursor, |key, cursor| -> Result<()> {
        match key {
            b"binary_data" if is_binary.is_none() => {
                let in_field = |error| DecodeError::from(error).in_field("binary_data");
                is_binary = Some(cursor.expect_bool().map_err(in_field)?);
            }
            b"classification" if classes.is_none() => {
                let k = cursor.expect_u64().map_err(DecodeError::Classification)?;
                classes = Some(u32::try_from(k).unwrap_or(u32::MAX));
            }
            key => region.read(key, cursor)?,
        }
        Ok(())
    })?;
    let (is_binary, count) = (is_binary.unwrap_or(false), classes.and_then(NonZero::new));
    if region.name_region() && count.is_some() {
        return Err(DecodeError::ClassesInRegion);
    }
    if region.name_region() && is_binary {
        return Err(DecodeError::BinaryInRegion);
    }
    Ok(match (region.span(cursor, regions)?, count) {
        (Some(span), _) => AnswerForm::Region(span),
        (None, Some(count)) => AnswerForm::Classes { count, is_binary },
        (None, None) => AnswerForm::inline_or_binary(is_binary),
    })
}
