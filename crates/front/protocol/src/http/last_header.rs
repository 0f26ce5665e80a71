//! The JSON of the last request of a connection, and what it said: most clients send the same again and again, with other
//! tensors behind it.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{Buffer, InferRequest, Regions, Result, Tensor};

use super::decode;
use crate::answer_form::{AnswerForm, AnswerPlan};

/// Longest JSON that is kept, and most inputs and outputs: what a connection has for it stays within a few kilobytes.
const MAX_JSON: usize = 1 << 10;
const MAX_TENSORS: usize = 16;

/// Decodes the requests of one connection, and what is in the text of the last one only once.
///
/// Kept is what stands in the text alone: all data lies behind it. A request with an id, which clients seldom use
/// twice, is not kept, nor is one whose text is not as long as that of the one before.
#[derive(Debug, Default)]
pub struct LastHeader {
    length: usize,
    kept: Option<KeptHeader>,
}

#[derive(Debug)]
struct KeptHeader {
    json: Box<[u8]>,
    /// How many inputs and outputs the model has; its name is that of the request.
    known: (usize, usize),
    /// With inputs without data.
    request: InferRequest,
    /// Bytes of each input.
    sizes: Vec<usize>,
    plan: AnswerPlan,
}

impl LastHeader {
    /// As [`decode`].
    pub fn decode(
        &mut self,
        body: &Bytes,
        header_length: usize,
        model: &ModelConfig,
        version: Option<i64>,
        regions: &dyn Regions,
    ) -> Result<(InferRequest, AnswerPlan)> {
        let kept = self.kept.as_ref().filter(|kept| kept.is_for(model, version));
        if let Some(repeated) = kept.and_then(|kept| kept.repeated(body, header_length)) {
            return Ok(repeated);
        }
        let (request, plan) = decode(body, header_length, model, version, regions)?;
        if std::mem::replace(&mut self.length, header_length) == header_length
            && let Some(kept) = KeptHeader::new(body, header_length, model, &request, &plan)
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
    /// `None` where the text alone does not say what the request is, or says too much.
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

    /// A text means the same for a model of this name that has as many tensors, batches or does not.
    fn is_for(&self, model: &ModelConfig, version: Option<i64>) -> bool {
        self.request.model_version == version
            && self.request.model_name == *model.name()
            && self.plan.is_batched == model.has_batching()
            && self.known == known(model)
    }

    /// The request with this body, if it has the same text and as many bytes behind it.
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

/// How many bytes each input has, where all lie one behind the other in `tail`, which is where the data from behind the
/// text lies and no other does.
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
