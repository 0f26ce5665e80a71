//! Caches the JSON of the last request of a connection with its meaning. Most clients send the same JSON again and
//! again, followed by other tensors.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{Buffer, InferRequest, Regions, Result, Tensor, UnreadRequest};

use super::decode::decode_unread;
use crate::answer_form::{AnswerForm, AnswerPlan};

/// The longest JSON that is kept. With the most inputs and outputs below, this stays within a few kilobytes per connection.
const MAX_JSON: usize = 1 << 10;
const MAX_TENSORS: usize = 16;

/// Decodes the requests of one connection, and reads a repeated JSON text only once.
///
/// It keeps only what is in the text, because all data follows it. It does not keep a request with an id, which clients
/// seldom use twice, nor a text whose length differs from the one before.
#[derive(Debug, Default)]
pub struct LastHeader {
    length: usize,
    kept: Option<KeptHeader>,
}

#[derive(Debug)]
struct KeptHeader {
    json: Box<[u8]>,
    /// The numbers of the model's inputs and outputs. Its name is in the request.
    known: (usize, usize),
    /// The request, with inputs without data.
    request: InferRequest,
    /// The bytes of each input.
    sizes: Vec<usize>,
    plan: AnswerPlan,
}

impl LastHeader {
    /// Like [`decode`](super::decode), but does not read the tensors in shared memory.
    pub fn decode(
        &mut self,
        body: &Bytes,
        header_length: usize,
        model: &ModelConfig,
        version: Option<i64>,
        regions: &dyn Regions,
    ) -> Result<(UnreadRequest, AnswerPlan)> {
        let kept = self.kept.as_ref().filter(|kept| kept.is_for(model, version));
        if let Some(repeated) = kept.and_then(|kept| kept.repeated(body, header_length)) {
            return Ok((repeated.0.into(), repeated.1));
        }
        let (request, plan) = decode_unread(body, header_length, model, version, regions)?;
        if std::mem::replace(&mut self.length, header_length) == header_length
            && let Some(kept) =
                KeptHeader::new(body, header_length, model, request.request(), &plan)
        {
            self.kept = Some(kept);
        }
        Ok((request, plan))
    }

    #[cfg(test)]
    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl KeptHeader {
    /// Returns `None` if the text alone does not define the request, or has parts that are not kept.
    fn new(
        body: &Bytes,
        header_length: usize,
        model: &ModelConfig,
        request: &InferRequest,
        plan: &AnswerPlan,
    ) -> Option<Self> {
        let tensors = request.inputs.len() + request.outputs.len();
        let is_in_region = |form: &AnswerForm| matches!(form, AnswerForm::Region(_));
        if !(1..=MAX_JSON).contains(&header_length)
            || tensors > MAX_TENSORS
            || !request.id.is_empty()
            || !request.parameters.is_empty()
            || plan.outputs.iter().any(|output| is_in_region(&output.form))
        {
            return None;
        }
        let (json, tail) = body.split_at_checked(header_length)?;
        let sizes = sizes_in(tail, &request.inputs)?;
        let mut request = request.clone();
        request.inputs.iter_mut().for_each(|input| input.data = Buffer::default());
        Some(Self { json: json.into(), known: known(model), request, sizes, plan: plan.clone() })
    }

    /// Returns `true` if the text means the same for this model: same name, version, batching and number of tensors.
    fn is_for(&self, model: &ModelConfig, version: Option<i64>) -> bool {
        self.request.model_version == version
            && self.request.model_name == *model.name()
            && self.plan.is_batched == model.has_batching()
            && self.known == known(model)
    }

    /// Returns the request with this body, if it has the same text and as many bytes after it.
    fn repeated(&self, body: &Bytes, header_length: usize) -> Option<(InferRequest, AnswerPlan)> {
        let (json, tail) = body.split_at_checked(header_length)?;
        if *json != *self.json || tail.len() != self.sizes.iter().sum::<usize>() {
            return None;
        }
        let mut request = self.request.clone();
        let mut start = header_length;
        for (input, size) in request.inputs.iter_mut().zip(&self.sizes) {
            input.data = body.slice(start..start + size).into();
            start += size;
        }
        Some((request, self.plan.clone()))
    }
}

fn known(model: &ModelConfig) -> (usize, usize) {
    (model.inputs().len(), model.outputs().len())
}

/// Returns the bytes of each input, if all are contiguous in `tail`. Only data from after the text is there.
fn sizes_in(tail: &[u8], inputs: &[Tensor]) -> Option<Vec<usize>> {
    let mut rest = tail;
    let mut sizes = Vec::with_capacity(inputs.len());
    for input in inputs {
        let data = input.host().ok()?;
        if data.is_empty() || data.as_ptr() != rest.as_ptr() {
            return None;
        }
        sizes.push(data.len());
        rest = rest.get(data.len()..)?;
    }
    rest.is_empty().then_some(sizes)
}
