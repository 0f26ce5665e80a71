//! The form in which a client wants the outputs of its request. It is decided when the request is read and used when
//! the response is written, for both protocols.

use std::{borrow::Cow, num::NonZero, sync::Arc};

use galatea_config::{ModelConfig, Scheduling};
use galatea_types::{InferResponse, OutputAllocator, RegionSpan, Result, Tensor};

use crate::classification::classify;

/// The approximate bytes of text for each byte of a tensor.
const TEXT_GROWTH: usize = 3;
/// The approximate memory of a class in bytes while it is ranked and written.
const CLASS_SIZE: usize = 64;

/// The form of one output.
#[derive(Clone, Debug, Default)]
pub enum AnswerForm {
    /// In the JSON of an HTTP response. No gRPC response has this form.
    #[default]
    Inline,
    /// As the bytes of the tensor: after the JSON of an HTTP response, raw in a gRPC message.
    Binary,
    /// As the best classes in place of the values. They are a BYTES tensor themselves.
    Classes {
        /// The most classes per row.
        count: NonZero<u32>,
        /// Is `true` if that tensor is sent as its bytes, otherwise inline.
        is_binary: bool,
    },
    /// Written to shared memory. The message has name, type and shape only.
    Region(RegionSpan),
}

/// The place of an output's data.
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

    /// Returns the tensor for the output `tensor`, in host memory: itself, its classes, or one without data if it was
    /// written to its region. `label` returns the text of a class, if it has one.
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

/// The forms of all outputs of a request, and the other choices for its answer.
#[derive(Clone, Debug)]
pub struct AnswerPlan {
    pub(crate) is_batched: bool,
    pub(crate) wants_empty_final: bool,
    /// The form of outputs that are not in `outputs`.
    pub(crate) default_form: AnswerForm,
    /// Shared by similar requests of a connection.
    pub(crate) outputs: Arc<[PlannedOutput]>,
    /// The name of the model if it is an ensemble, for errors.
    ensemble: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlannedOutput {
    pub name: Arc<str>,
    pub form: AnswerForm,
}

impl AnswerPlan {
    /// Returns a plan with all outputs in `default_form`. With `is_batched` their first dimension is the batch.
    pub(crate) fn new(default_form: AnswerForm, is_batched: bool) -> Self {
        let outputs = Arc::default();
        Self { is_batched, wants_empty_final: false, default_form, outputs, ensemble: None }
    }

    /// Returns a plan for responses of `model`, with all outputs in `default_form`.
    pub(crate) fn of_model(default_form: AnswerForm, model: &ModelConfig) -> Self {
        let is_ensemble = matches!(model.scheduling(), Scheduling::Ensemble(_));
        let ensemble = is_ensemble.then(|| model.name().clone());
        Self { ensemble, ..Self::new(default_form, model.has_batching()) }
    }

    /// Returns `true` if the client asked for an empty response when a decoupled model ends without one.
    pub fn wants_empty_final(&self) -> bool {
        self.wants_empty_final
    }

    /// Returns the form of an output.
    pub fn form_of(&self, output: &str) -> &AnswerForm {
        let planned = self.outputs.iter().find(|planned| &*planned.name == output);
        planned.map_or(&self.default_form, |planned| &planned.form)
    }

    /// Returns the bytes of the outputs that become text or are ranked.
    pub fn bytes_to_render(&self, response: &InferResponse) -> usize {
        let is_rendered = |output: &&Tensor| {
            let form = self.form_of(&output.name);
            matches!(form, AnswerForm::Inline | AnswerForm::Classes { .. })
        };
        response.outputs.iter().filter(is_rendered).map(|output| output.data.len()).sum()
    }

    /// Returns the work of copying outputs to regions, in the unit of [`RegionSpan::copying_work`].
    pub fn copying_work(&self, response: &InferResponse) -> usize {
        let of_output = |output: &Tensor| match self.form_of(&output.name) {
            AnswerForm::Region(span) => span.copying_work(output.data.len()),
            AnswerForm::Inline | AnswerForm::Binary | AnswerForm::Classes { .. } => 0,
        };
        response.outputs.iter().map(of_output).fold(0, usize::saturating_add)
    }

    /// Returns the approximate memory for writing the response besides its outputs: texts of numbers and of classes.
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

    /// Checks that the outputs fit the regions that they go to. After an error none of them must be written.
    pub(crate) fn check_regions(&self, response: &InferResponse) -> Result<()> {
        for planned in self.outputs.iter() {
            let AnswerForm::Region(span) = &planned.form else { continue };
            for output in response.outputs.iter().filter(|output| output.name == planned.name) {
                let fits = span.check_fits(&output.name, output.data.len());
                fits.map_err(|error| match &self.ensemble {
                    Some(name) => error.prefixed(format_args!("in ensemble '{name}', ")),
                    None => error,
                })?;
            }
        }
        Ok(())
    }

    /// Returns `true` if any output may be sent as its bytes.
    pub(crate) fn has_binary(&self) -> bool {
        let is_binary = |form: &AnswerForm| form.placement() == Placement::Binary;
        is_binary(&self.default_form) || self.outputs.iter().any(|planned| is_binary(&planned.form))
    }
}
