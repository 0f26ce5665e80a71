//! How a client wants the outputs of its request returned: decided while the request is read, used when the answer
//! is written. The same for both protocols.

use std::{borrow::Cow, num::NonZero, sync::Arc};

use galatea_types::{InferResponse, OutputAllocator, RegionSpan, Result, Tensor};

use crate::classification::classify;

/// Bytes of text that a byte of a tensor becomes, about.
const TEXT_GROWTH: usize = 3;
/// Bytes that one class takes while it is ranked and written, about.
const CLASS_SIZE: usize = 64;

/// How one output is returned.
#[derive(Clone, Debug, Default)]
pub enum AnswerForm {
    /// In the JSON of an HTTP response. No gRPC response has this form.
    #[default]
    Inline,
    /// As the bytes of the tensor: behind the JSON of an HTTP response, raw in a gRPC message.
    Binary,
    /// As the best classes in place of the values, which are then a BYTES tensor themselves.
    Classes {
        /// How many classes per row at most.
        count: NonZero<u32>,
        /// Whether that tensor goes as its bytes, else inline.
        is_binary: bool,
    },
    /// Written to shared memory. The message has name, type and shape only.
    Region(RegionSpan),
}

/// Where the data of an output stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Inline,
    Binary,
    /// Not in the message.
    Elsewhere,
}

impl AnswerForm {
    pub(crate) fn inline_or_binary(is_binary: bool) -> Self {
        if is_binary { Self::Binary } else { Self::Inline }
    }

    pub(crate) fn placement(&self) -> Placement {
        match self {
            Self::Inline | Self::Classes { is_binary: false, .. } => Placement::Inline,
            Self::Binary | Self::Classes { is_binary: true, .. } => Placement::Binary,
            Self::Region(_) => Placement::Elsewhere,
        }
    }

    /// The tensor that is returned for the output `tensor`, in host memory: itself, its classes, or, written to its region,
    /// one without data. `label` gives the text of a class, if it has one.
    pub(crate) fn apply<'a, 't>(
        &self,
        tensor: &'t Tensor,
        is_batched: bool,
        label: impl Fn(&str, usize) -> Option<&'a str>,
    ) -> Result<Cow<'t, Tensor>> {
        match self {
            Self::Inline | Self::Binary => tensor.on_host(),
            Self::Classes { count, .. } => {
                let label = |class| label(&tensor.name, class);
                classify(&*tensor.on_host()?, count.get(), is_batched, label).map(Cow::Owned)
            }
            Self::Region(span) => {
                let rest = span.place(&tensor.name, &tensor.data)?;
                let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
                Ok(Cow::Owned(Tensor::new(name, tensor.data_type, shape, rest)))
            }
        }
    }
}

/// The forms of all outputs of a request, and what else its answer depends on.
#[derive(Clone, Debug)]
pub struct AnswerPlan {
    pub(crate) is_batched: bool,
    pub(crate) wants_empty_final: bool,
    /// Of outputs that `outputs` does not have.
    pub(crate) default_form: AnswerForm,
    /// Shared by the requests of a connection that are alike.
    pub(crate) outputs: Arc<[PlannedOutput]>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlannedOutput {
    pub name: Arc<str>,
    pub form: AnswerForm,
}

impl AnswerPlan {
    /// All outputs in `default_form`. With `is_batched` their first dimension is the batch.
    pub(crate) fn new(default_form: AnswerForm, is_batched: bool) -> Self {
        Self { is_batched, wants_empty_final: false, default_form, outputs: Arc::default() }
    }

    /// Whether the client asked for an empty response where a decoupled model ends without one.
    pub fn wants_empty_final(&self) -> bool {
        self.wants_empty_final
    }

    /// How an output is returned.
    pub fn form_of(&self, output: &str) -> &AnswerForm {
        let planned = self.outputs.iter().find(|planned| &*planned.name == output);
        planned.map_or(&self.default_form, |planned| &planned.form)
    }

    /// How many bytes of the outputs have to be read to write the response: those that do not go as they are.
    pub fn bytes_to_render(&self, response: &InferResponse) -> usize {
        let is_read = |output: &&Tensor| !matches!(self.form_of(&output.name), AnswerForm::Binary);
        response.outputs.iter().filter(is_read).map(|output| output.data.len()).sum()
    }

    /// About how many bytes writing the response takes, besides its outputs: texts of numbers and of classes.
    pub fn bytes_of_texts(&self, response: &InferResponse) -> usize {
        let of_output = |output: &Tensor| match self.form_of(&output.name) {
            AnswerForm::Binary | AnswerForm::Region(_) => 0,
            AnswerForm::Inline => output.data.len().saturating_mul(TEXT_GROWTH),
            AnswerForm::Classes { count, .. } => {
                let elements = output.shape.element_count().unwrap_or(0);
                let rows = if self.is_batched { output.shape.first().copied() } else { None };
                let rows = rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(1);
                let classes = rows.saturating_mul(count.get() as usize).min(elements);
                classes.saturating_mul(CLASS_SIZE)
            }
        };
        response.outputs.iter().map(of_output).fold(0, usize::saturating_add)
    }

    /// Whether some output may come as its bytes.
    pub(crate) fn has_binary(&self) -> bool {
        let is_binary = |form: &AnswerForm| form.placement() == Placement::Binary;
        is_binary(&self.default_form) || self.outputs.iter().any(|planned| is_binary(&planned.form))
    }
}
