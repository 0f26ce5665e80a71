//! The `outputs` of an inference request: which the client wants, and in what form.

use std::{collections::HashSet, num::NonZero, sync::Arc};

use galatea_types::InferRequest;

use super::{
    decode_error::{DecodeError, Result},
    field::{read_at, read_member},
    json::{Cursor, for_each_element, for_each_member},
    limits::{self, Count},
    region::RegionParameters,
};
use crate::{
    answer_form::{AnswerForm, AnswerPlan, PlannedOutput},
    regions::Regions,
};

/// Reads the array the cursor stands on.
pub(super) fn read_all(
    cursor: &mut Cursor<'_>,
    regions: &dyn Regions,
    mut count: Count<'_>,
    request: &mut InferRequest,
    plan: &mut AnswerPlan,
) -> Result<()> {
    cursor.expect_array().map_err(|e| DecodeError::from(e).in_field("outputs"))?;
    for_each_element(cursor, |cursor| -> Result<()> {
        count.next()?;
        plan.outputs.push(read(cursor, regions)?);
        Ok(())
    })?;
    check_unique(request, plan)?;
    request.outputs.extend(plan.outputs.iter().map(PlannedOutput::requested));
    Ok(())
}

/// Refuses two outputs of one name.
fn check_unique(request: &InferRequest, plan: &AnswerPlan) -> Result<()> {
    if plan.outputs.len() < 2 {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(plan.outputs.len());
    match plan.outputs.iter().find(|output| !seen.insert(&*output.name)) {
        None => Ok(()),
        Some(output) => Err(DecodeError::DuplicateOutput {
            prefix: request.message_prefix(),
            output: output.name.to_string(),
        }),
    }
}

fn read(cursor: &mut Cursor<'_>, regions: &dyn Regions) -> Result<PlannedOutput> {
    let (mut name, mut parameters) = (None, None);
    for_each_member(cursor, |key, cursor| {
        match key {
            b"name" => _ = name.get_or_insert(cursor.position()),
            b"parameters" => _ = parameters.get_or_insert(cursor.position()),
            _ => {}
        }
        cursor.skip_value()
    })?;
    let name = read_member(cursor, name, "name", Cursor::expect_string)?;
    let name: Arc<str> = limits::name(&name).into();
    let form = match parameters {
        Some(at) => read_form(&mut cursor.at(at), regions)?,
        None => AnswerForm::Inline,
    };
    Ok(PlannedOutput { name, form })
}

/// The form that the parameters of an output ask for.
fn read_form(cursor: &mut Cursor<'_>, regions: &dyn Regions) -> Result<AnswerForm> {
    let (mut is_binary, mut classes) = (None, None);
    let mut region = RegionParameters::default();
    for_each_member(cursor, |key, cursor| -> Result<()> {
        match key {
            b"binary_data" if is_binary.is_none() => {
                let value = read_at(cursor, cursor.position(), "binary_data", Cursor::expect_bool)?;
                is_binary = Some(value);
            }
            b"classification" if classes.is_none() => {
                let k = cursor.clone().expect_u64().map_err(DecodeError::Classification)?;
                classes = Some(u32::try_from(k).unwrap_or(u32::MAX));
            }
            key => region.note(key, cursor.position()),
        }
        Ok(cursor.skip_value()?)
    })?;
    let (is_binary, count) = (is_binary.unwrap_or(false), classes.and_then(NonZero::new));
    if region.name_region() && count.is_some() {
        return Err(DecodeError::ClassesInRegion);
    }
    Ok(match (region.span(cursor, regions)?, count) {
        (Some(span), _) => AnswerForm::Region(span),
        (None, Some(count)) => AnswerForm::Classes { count, is_binary },
        (None, None) => AnswerForm::inline_or_binary(is_binary),
    })
}
