//! Reader of `start:end:step`, in its four dialects. A part that is left out is 1.

use galatea_perf_types::settings::Range;

use galatea_command_line::Occurrence;

use super::{
    error::OptionError,
    readers::{failed, finite, invalid, whole},
};

pub fn concurrency(occurrence: &Occurrence) -> Result<Range<u64>, OptionError> {
    let numbers = parts(occurrence, |text| u64::try_from(whole(text)?).ok(), WHOLE)?;
    let range = filled(&numbers, 1);
    if range.step == 0 {
        return Err(failed(occurrence, STEP));
    }
    Ok(range)
}

pub fn rate(occurrence: &Occurrence) -> Result<Range<f64>, OptionError> {
    let range =
        filled(&parts(occurrence, finite, "numbers: start, start:end or start:end:step")?, 1.0);
    if range.end < 0.0 {
        return Err(failed(occurrence, "The end of the search range must be >= 0."));
    }
    if range.step <= 0.0 {
        return Err(failed(occurrence, STEP));
    }
    Ok(range)
}

pub fn periodic(occurrence: &Occurrence) -> Result<Range<u64>, OptionError> {
    let numbers = parts(occurrence, |text| u64::try_from(whole(text)?).ok(), WHOLE)?;
    if numbers.len() < 2 {
        return Err(failed(occurrence, "Both <start> and <end> values must be provided."));
    }
    let range = filled(&numbers, 1);
    let wrong = |why| Err(failed(occurrence, why));
    if range.step == 0 {
        wrong(STEP)
    } else if range.start == 0 {
        wrong("The <start> value must be > 0.")
    } else if range.start > range.end {
        wrong("The <start> must be <= <end>.")
    } else if !(range.end - range.start).is_multiple_of(range.step) {
        wrong("The <step> value must be a factor of the range size (<end> - <start>).")
    } else {
        Ok(range)
    }
}

/// Returns the first id, and the number of ids if an end was given.
pub fn sequence_ids(occurrence: &Occurrence) -> Result<(u64, Option<u64>), OptionError> {
    let numbers: Vec<i128> = split(occurrence, whole, "whole numbers: start or start:end")?;
    let id =
        |number: i128| u64::try_from(number).map_err(|_| invalid(occurrence, "smaller numbers"));
    if numbers.len() > 2 {
        return Err(failed(occurrence, "The value does not match <start:end>."));
    }
    if numbers.iter().any(|&number| number < 0) {
        return Err(failed(occurrence, "The range values must be >= 0."));
    }
    match *numbers.as_slice() {
        [start, end] if start >= end => {
            Err(failed(occurrence, "The 'end' value must be greater than 'start' value."))
        }
        [start, end] => Ok((id(start)?, Some(id(end - start)?))),
        [start] => Ok((id(start)?, None)),
        _ => Err(invalid(occurrence, "start or start:end")),
    }
}

const WHOLE: &str = "whole numbers: start, start:end or start:end:step";

/// perf_analyzer checks this only for periodic ranges; with others it would never end.
const STEP: &str = "The <step> value must be > 0.";

fn filled<T: Copy>(numbers: &[T], default: T) -> Range<T> {
    let part = |index: usize| numbers.get(index).copied().unwrap_or(default);
    Range { start: part(0), end: part(1), step: part(2) }
}

fn parts<T>(
    occurrence: &Occurrence,
    read: impl Fn(&str) -> Option<T>,
    expected: &str,
) -> Result<Vec<T>, OptionError> {
    if occurrence.text.split(':').count() > 3 {
        return Err(failed(occurrence, "The value does not match <start:end:step>."));
    }
    split(occurrence, read, expected)
}

fn split<T>(
    occurrence: &Occurrence,
    read: impl Fn(&str) -> Option<T>,
    expected: &str,
) -> Result<Vec<T>, OptionError> {
    occurrence
        .text
        .split(':')
        .map(read)
        .collect::<Option<_>>()
        .ok_or_else(|| invalid(occurrence, expected))
}
