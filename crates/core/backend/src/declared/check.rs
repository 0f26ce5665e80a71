//! Checks a whole configuration against a declaration.

use galatea_config::{BatchInput, FieldPath, ModelConfig, TensorSpec};
use galatea_types::{DataType, Error, Result, Shape};

use super::{Declaration, DeclaredKind, DeclaredTensor, Subject, disagreement::other_input_count};
use crate::MOST_MISTAKES;

impl<T: DeclaredTensor> Declaration<'_, T> {
    /// Checks that a configuration agrees with the model.
    ///
    /// # Errors
    /// The disagreement of the first tensor that has one.
    pub fn check(&self, config: &ModelConfig) -> Result<()> {
        self.check_count(config)?;
        self.disagreements(config).next().map_or(Ok(()), Err)
    }

    /// Returns all disagreements of a configuration and the model, tensor by tensor, at most [`MOST_MISTAKES`].
    pub fn mistakes(&self, config: &ModelConfig) -> Vec<Error> {
        self.disagreements(config).take(MOST_MISTAKES).collect()
    }

    fn disagreements<'s>(&'s self, config: &'s ModelConfig) -> impl Iterator<Item = Error> + 's {
        let input = |spec: &TensorSpec| {
            check_optional(config, spec)?;
            self.side(config, "input").check(spec, self.expect_input(&spec.name)?)
        };
        let generated =
            |spec: &TensorSpec| check_generated(config, spec, self.expect_input(&spec.name)?);
        let output = |spec: &TensorSpec| {
            self.side(config, "output").check(spec, self.expect_output(&spec.name)?)
        };
        let inputs = config.model_inputs().iter().map(input);
        let generated = generated_inputs(config).iter().map(generated);
        let outputs = config.model_outputs().iter().map(output);
        inputs.chain(generated).chain(outputs).filter_map(Result::err)
    }

    fn side<'c>(&self, config: &'c ModelConfig, what: &'static str) -> ModelSide<'c> {
        ModelSide { config, what, how_to_batch: self.how_to_batch }
    }

    /// Checks the number of inputs. Inputs for which the model has its own values do not count.
    fn check_count(&self, config: &ModelConfig) -> Result<()> {
        let counts = |spec: &&TensorSpec| {
            self.optional_inputs.is_none() || !spec.is_optional || is_mask(config, spec)
        };
        let expected = config.execution_inputs().iter().filter(counts).count();
        let checked = check_input_count(config, expected, self.inputs.len());
        if checked.is_err() {
            // An unknown name explains itself better than a count.
            for spec in config.execution_inputs() {
                self.expect_input(&spec.name)?;
            }
        }
        checked
    }
}

/// Checks that the configuration has as many inputs as the model.
///
/// # Errors
/// There are more or fewer.
pub fn check_input_count(config: &ModelConfig, expected: usize, provided: usize) -> Result<()> {
    match expected == provided {
        true => Ok(()),
        false => Err(other_input_count(config.name(), expected, provided)),
    }
}

/// Checks that a tensor has the configured type.
///
/// # Errors
/// It has another type, or is no tensor that a request can carry.
pub fn check_type(
    config: &ModelConfig,
    what: &'static str,
    spec: &TensorSpec,
    kind: DeclaredKind,
) -> Result<()> {
    same_type(|| Subject::new(config.name(), what, &spec.name), spec.data_type, kind)
}

fn same_type(of: impl Fn() -> Subject, expected: DataType, kind: DeclaredKind) -> Result<()> {
    match kind {
        DeclaredKind::Tensor(provided) if provided == expected => Ok(()),
        DeclaredKind::Tensor(provided) => Err(of().other_type(expected, provided)),
        DeclaredKind::Other(kind) => Err(of().unsupported(&kind)),
    }
}

/// Returns the inputs that no request has.
fn generated_inputs(config: &ModelConfig) -> &[TensorSpec] {
    config.execution_inputs().get(config.model_inputs().len()..).unwrap_or_default()
}

/// Checks a generated input. Its sizes differ from batch to batch: only their number is known.
fn check_generated(
    config: &ModelConfig,
    spec: &TensorSpec,
    declared: &impl DeclaredTensor,
) -> Result<()> {
    let of = || Subject {
        model: config.name().to_string(),
        label: "batch input",
        path: batch_input_path(config, &spec.name),
        name: spec.name.to_string(),
    };
    same_type(of, spec.data_type, declared.kind())?;
    let Some(model_dims) = declared.dims() else { return Ok(()) };
    let made = &spec.dims;
    let fits = |(&made, &declared): (&i64, &i64)| made == -1 || declared == -1 || made == declared;
    match made.len() == model_dims.len() && made.iter().zip(model_dims.iter()).all(fits) {
        true => Ok(()),
        false => Err(of().batch_input_shape(made, model_dims)),
    }
}

fn batch_input_path(config: &ModelConfig, target: &str) -> FieldPath {
    let is_it = |input: &BatchInput| input.targets.iter().any(|name| &**name == target);
    let index = config.batch_inputs().iter().position(is_it);
    FieldPath::from("batch_input").index(index.unwrap_or(0))
}

/// Returns true if the server makes the input for requests without one.
fn is_mask(config: &ModelConfig, spec: &TensorSpec) -> bool {
    config.padding().is_some_and(|padding| padding.mask_named(&spec.name).is_some())
}

fn check_optional(config: &ModelConfig, spec: &TensorSpec) -> Result<()> {
    if !spec.is_optional || !config.has_batching() || is_mask(config, spec) {
        return Ok(());
    }
    Err(Subject::new(config.name(), "input", &spec.name).optional())
}

/// One side of a model. Inputs may leave open what the model fixes; outputs must be exactly as the model declares them.
struct ModelSide<'a> {
    config: &'a ModelConfig,
    what: &'static str,
    how_to_batch: &'static str,
}

impl ModelSide<'_> {
    fn check(&self, spec: &TensorSpec, declared: &impl DeclaredTensor) -> Result<()> {
        check_type(self.config, self.what, spec, declared.kind())?;
        if spec.allows_ragged_batch {
            return self.check_ragged(spec, declared.dims());
        }
        let is_divided_otherwise =
            self.what == "output" && self.config.batch_output_for(&spec.name).is_some();
        if is_divided_otherwise {
            return Ok(());
        }
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        match declared.dims() {
            // A dimension that the model does not declare is taken from the configuration.
            None => Ok(()),
            // A scalar of the model is configured as `dims: [1]`.
            Some(model_dims) if model_dims.is_empty() => match dims.iter().all(|&d| d == 1) {
                true => Ok(()),
                false => Err(self.subject(spec).scalar(dims)),
            },
            Some(model_dims) => self.check_dims(spec, dims, model_dims),
        }
    }

    fn subject(&self, spec: &TensorSpec) -> Subject {
        Subject::new(self.config.name(), self.what, &spec.name)
    }

    fn check_ragged(&self, spec: &TensorSpec, model_dims: Option<&Shape>) -> Result<()> {
        match model_dims {
            _ if spec.is_optional => Err(self.subject(spec).optional_ragged()),
            Some(model_dims) if **model_dims != [-1] => {
                Err(self.subject(spec).ragged_shape(model_dims))
            }
            _ => Ok(()),
        }
    }

    fn check_dims(&self, spec: &TensorSpec, dims: &Shape, model_dims: &Shape) -> Result<()> {
        let has_batching = self.config.has_batching();
        if has_batching && model_dims.first() != Some(&-1) {
            return Err(self.subject(spec).no_batch_dimension(model_dims, self.how_to_batch));
        }
        let full = if has_batching { dims.with_leading(-1) } else { dims.clone() };
        let may_be_open = self.what == "input";
        let mut pairs = full.iter().zip(model_dims.iter());
        let fits = full.len() == model_dims.len()
            && pairs.all(|(c, m)| c == m || (may_be_open && *m == -1));
        match fits {
            true => Ok(()),
            false => Err(self.subject(spec).other_shape(model_dims, &full, has_batching)),
        }
    }
}
