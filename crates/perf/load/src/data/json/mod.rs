//! Data files in JSON.
//!
//! ```json
//! {"data": [{"IN": [1, 2]}, {"IN": {"content": [3, 4], "shape": [2]}}, {"IN": {"b64": "AAAAAA=="}}],
//!  "validation_data": [{"OUT": [1, 2]}, {"OUT": [3, 4]}, {"OUT": [0, 0]}]}
//! ```
//!
//! `data` lists steps of one stream, or lists of steps, one for each stream. Steps are read one by one, so that memory holds
//! the file's text, the result and only one more tensor.

mod elements;
mod error;
mod expected_tensor;
mod non_finite_numbers;
mod step;
mod tensor;

use std::{collections::BTreeMap, path::Path};

use bytes::Bytes;
use galatea_perf_types::{
    failure::{Failure, Result},
    model::ModelInfo,
};
use serde_json::value::RawValue;

use super::dataset::{Dataset, Step, bad_data};
use error::JsonError;
use expected_tensor::ExpectedTensor;
use step::StepReader;

/// The members of an object, unread.
type UnreadMembers<'a> = BTreeMap<String, &'a RawValue>;

/// Reads the data of one file, given as bytes. Errors name no file.
pub fn read_json(json: &[u8], model: &ModelInfo) -> Result<Dataset> {
    let mut reader = JsonReader::new(model);
    reader.read(json).map_err(bad_data)?;
    reader.finish()
}

/// Reads several files, one after the other, into the same data.
pub(super) struct JsonReader<'a> {
    inputs: Vec<ExpectedTensor<'a>>,
    outputs: Vec<ExpectedTensor<'a>>,
    streams: Vec<Vec<Step>>,
    form: Option<TensorForm>,
}

#[derive(Clone, Copy, PartialEq)]
enum TensorForm {
    /// `data` lists steps. The steps of all files form one stream.
    Steps,
    /// `data` lists streams. The streams of all files follow each other.
    Streams,
}

impl<'a> JsonReader<'a> {
    pub fn new(model: &'a ModelInfo) -> Self {
        Self {
            inputs: model.inputs.iter().map(ExpectedTensor::input).collect(),
            outputs: model.outputs.iter().map(ExpectedTensor::output).collect(),
            streams: Vec::new(),
            form: None,
        }
    }

    pub fn read_file(&mut self, path: &Path) -> Result<()> {
        let in_file = |error: JsonError| bad_data(format!("{error} in '{}'", path.display()));
        let json = std::fs::read(path).map_err(|error| in_file(JsonError::Unreadable(error)))?;
        self.read(&json).map_err(in_file)
    }

    pub fn finish(self) -> Result<Dataset, Failure> {
        if self.streams.is_empty() || self.streams.iter().any(Vec::is_empty) {
            let first = self.inputs.first().map_or("", |input| input.name);
            return Err(bad_data(JsonError::NothingFor(first.to_owned())));
        }
        Ok(Dataset { streams: self.streams, is_user_data: true })
    }

    fn read(&mut self, json: &[u8]) -> Result<(), JsonError> {
        let text = std::str::from_utf8(json).map_err(JsonError::NotUtf8)?;
        match check_syntax(text) {
            Ok(document) => self.read_document(document),
            Err(error) => match non_finite_numbers::quoted(text) {
                Some(text) => self.read_document(check_syntax(&text)?),
                None => Err(error),
            },
        }
    }

    fn read_document(&mut self, document: &RawValue) -> Result<(), JsonError> {
        let members = members(document).unwrap_or_default();
        let data = members.get("data").ok_or(JsonError::NoData)?;
        let data = list(data).ok_or(JsonError::DataIsNoList)?;
        let expected = match members.get("validation_data") {
            Some(expected) => Some(aligned(expected, data.len())?),
            None => None,
        };
        for &entry in &data {
            let form = if is_list(entry) { TensorForm::Streams } else { TensorForm::Steps };
            if *self.form.get_or_insert(form) != form {
                return Err(JsonError::Mixed);
            }
        }
        match self.form {
            Some(TensorForm::Streams) => self.read_streams(&data, expected.as_deref()),
            Some(TensorForm::Steps) => self.read_into_one(&data, expected.as_deref()),
            None => Ok(()),
        }
    }

    fn read_streams(
        &mut self,
        streams: &[&RawValue],
        expected: Option<&[&RawValue]>,
    ) -> Result<(), JsonError> {
        for (index, stream) in streams.iter().enumerate() {
            let steps = list(stream).unwrap_or_default();
            let expected = match expected.and_then(|expected| expected.get(index)) {
                Some(expected) => Some(aligned(expected, steps.len())?),
                None => None,
            };
            let mut read = Vec::with_capacity(steps.len());
            self.read_steps(&steps, expected.as_deref(), self.streams.len(), &mut read)?;
            self.streams.push(read);
        }
        Ok(())
    }

    fn read_into_one(
        &mut self,
        steps: &[&RawValue],
        expected: Option<&[&RawValue]>,
    ) -> Result<(), JsonError> {
        let mut stream = self.streams.pop().unwrap_or_default();
        self.read_steps(steps, expected, 0, &mut stream)?;
        self.streams.push(stream);
        Ok(())
    }

    fn read_steps(
        &self,
        steps: &[&RawValue],
        expected: Option<&[&RawValue]>,
        stream: usize,
        read: &mut Vec<Step>,
    ) -> Result<(), JsonError> {
        for (index, step) in steps.iter().enumerate() {
            let reader = StepReader { stream, step: read.len() };
            let inputs = reader.read(step, &self.inputs)?;
            let expected = match expected.and_then(|expected| expected.get(index)) {
                Some(expected) => self.read_expected(&reader, expected)?,
                None => Vec::new(),
            };
            read.push(Step { inputs, expected });
        }
        Ok(())
    }

    fn read_expected(
        &self,
        reader: &StepReader,
        expected: &RawValue,
    ) -> Result<Vec<Option<Bytes>>, JsonError> {
        let tensors = reader.read(expected, &self.outputs)?;
        let has_any = tensors.iter().any(Option::is_some);
        let data = tensors.into_iter().map(|tensor| Some(tensor?.data));
        Ok(if has_any { data.collect() } else { Vec::new() })
    }
}

fn check_syntax(text: &str) -> Result<&RawValue, JsonError> {
    serde_json::from_str(text).map_err(JsonError::Syntax)
}

fn members(value: &RawValue) -> Option<UnreadMembers<'_>> {
    serde_json::from_str(value.get()).ok()
}

fn is_list(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

fn list(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// Returns the entries of validation data, which must be as many as those of data.
fn aligned(expected: &RawValue, count: usize) -> Result<Vec<&RawValue>, JsonError> {
    list(expected).filter(|expected| expected.len() == count).ok_or(JsonError::Misaligned)
}

#[cfg(test)]
mod tests;
