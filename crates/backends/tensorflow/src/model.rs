//! Loads one version of a model: its files, its declarations, its sessions.

use std::{fs, path::Path, sync::Arc};

use galatea_backend::{
    CompletionContext, LoadContext,
    declared::{check_type, unexpected},
};
use galatea_config::{Diagnostic, InstanceKind, ModelConfig};
use galatea_types::{Code, Error, Result};

use crate::{
    files::ModelFiles,
    init_operations,
    layout::Placement,
    saved_model::{SavedModel, nodes_of_file},
    settings::{self, DEFAULT_TAG, GRAPH_TAG, SIGNATURE_DEF, Settings},
    signature::{Signature, TensorInfo, ValueKind},
    tensorflow::{Library, Point, Session, data_type_of},
};

pub(crate) struct TensorFlowModel {
    pub library: Arc<Library>,
    pub config: Arc<ModelConfig>,
    pub placement: Placement,
    pub settings: Settings,
    files: ModelFiles,
    tag: String,
    signature: Option<Signature>,
    init_operations: Vec<String>,
}

/// A session, with the points of its graph for the configuration's tensors.
pub(crate) struct LoadedSession {
    pub session: Session,
    pub inputs: Vec<Point>,
    /// For each input: true if the model declares it without dimensions.
    pub scalars: Vec<bool>,
    pub outputs: Vec<Point>,
}

impl TensorFlowModel {
    /// Loads the model and its first session.
    pub fn load(library: &Arc<Library>, context: &LoadContext) -> Result<(Self, LoadedSession)> {
        let config = context.config.clone();
        let settings = Settings::read(context)?;
        check_devices(&config)?;
        let version = &context.files();
        let files = ModelFiles::find(version, config.platform(), config.default_model_filename())?;
        let signature = match &files {
            ModelFiles::SavedModel(_) => Some(signature_of(version, &files, config.parameters())?),
            ModelFiles::Graph(_) => None,
        };
        if let Some(signature) = &signature {
            signature.declaration().check(&config)?;
        }
        let model = Self {
            library: library.clone(),
            placement: Placement::new(&settings),
            settings,
            tag: settings::name(config.parameters(), GRAPH_TAG).unwrap_or(DEFAULT_TAG).to_owned(),
            signature,
            init_operations: init_operations::read(context)?,
            files,
            config,
        };
        let session = model.open_session()?;
        Ok((model, session))
    }

    /// Opens another session of the model, with variables of its own.
    pub fn open_session(&self) -> Result<LoadedSession> {
        let options = self.settings.session;
        let loaded = match &self.files {
            ModelFiles::SavedModel(folder) => {
                Session::of_saved_model(&self.library, folder, &self.tag, options)
            }
            ModelFiles::Graph(file) => fs::read(file)
                .map_err(|error| Error::internal(error.to_string()))
                .and_then(|bytes| Session::of_graph(&self.library, &bytes, options)),
        };
        let session = loaded.map_err(|cause| self.refused(cause))?;
        let initialized = session.run_operations(&self.init_operations);
        initialized.map_err(|cause| self.refused(cause))?;
        let points = match &self.signature {
            Some(signature) => self.points_of_signature(&session, signature)?,
            None => self.points_of_graph(&session)?,
        };
        let (inputs, outputs) = points;
        let is_scalar =
            |&point: &Point| Ok(session.graph.shape_at(point)?.is_some_and(|dims| dims.is_empty()));
        let scalars = inputs.iter().map(is_scalar).collect::<Result<_>>()?;
        Ok(LoadedSession { session, inputs, scalars, outputs })
    }

    /// Returns the error of the library, with the file that it is about.
    fn refused(&self, cause: Error) -> Error {
        Error::internal(format!(
            "unable to load model '{}': TensorFlow cannot load '{}': {cause}",
            self.config.name(),
            self.files.path().display()
        ))
        .with_source(cause)
    }

    fn points_of_signature(
        &self,
        session: &Session,
        signature: &Signature,
    ) -> Result<(Vec<Point>, Vec<Point>)> {
        let point = |info: &TensorInfo| {
            session.graph.point(&info.point).ok_or_else(|| {
                Error::internal(format!(
                    "unable to load model '{}': its signature names the tensor '{}', which its graph does not have",
                    self.config.name(),
                    info.point
                ))
            })
        };
        let declared = signature.declaration();
        let inputs = self.config.execution_inputs().iter();
        let inputs = inputs.map(|spec| point(declared.expect_input(&spec.name)?));
        let outputs = self.config.model_outputs().iter();
        let outputs = outputs.map(|spec| point(declared.expect_output(&spec.name)?));
        Ok((inputs.collect::<Result<_>>()?, outputs.collect::<Result<_>>()?))
    }

    /// Finds the points of a graph, which declares only names and their types.
    fn points_of_graph(&self, session: &Session) -> Result<(Vec<Point>, Vec<Point>)> {
        let graph = &session.graph;
        let find = |what: &'static str, spec: &galatea_config::TensorSpec| {
            let point = graph.point(&spec.name).ok_or_else(|| self.unknown(what, &spec.name))?;
            let number = graph.type_at(point);
            let kind =
                data_type_of(number).map_or(ValueKind::OtherTensor(number), ValueKind::Tensor);
            check_type(&self.config, what, spec, kind.declared())?;
            Ok(point)
        };
        let inputs = self.config.execution_inputs().iter().map(|spec| find("input", spec));
        let outputs = self.config.model_outputs().iter().map(|spec| find("output", spec));
        Ok((inputs.collect::<Result<_>>()?, outputs.collect::<Result<_>>()?))
    }

    fn unknown(&self, what: &'static str, name: &str) -> Error {
        let nodes = nodes_of_file(self.files.path()).unwrap_or_default();
        nodes.unexpected(what, name)
    }
}

/// Reads the signature to serve from the model's file.
pub(crate) fn signature_of(
    version: &CompletionContext<'_>,
    files: &ModelFiles,
    parameters: &std::collections::BTreeMap<String, String>,
) -> Result<Signature> {
    let header = files.header();
    let refuse = |reason: &dyn std::fmt::Display| not_readable(version, &header, reason);
    let model = SavedModel::of_file(&header).map_err(|error| refuse(&error))?;
    let (tag, signature) =
        (settings::name(parameters, GRAPH_TAG), settings::name(parameters, SIGNATURE_DEF));
    model.choose(version.model_name, tag, signature)
}

/// Explains why a file is not a model.
pub(crate) fn not_readable(
    version: &CompletionContext<'_>,
    path: &Path,
    reason: &dyn std::fmt::Display,
) -> Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Diagnostic::error(format!(
        "unable to load model '{}': its file '{name}' cannot be loaded: {reason}",
        version.model_name
    ))
    .with_advice("save or copy the model again, and compare the sizes of both files")
    .at(version.place(path))
    .into_error(Code::InvalidArg)
}

/// Checks the devices. GPUs are not used, and Triton's accelerators are for GPUs too.
fn check_devices(config: &ModelConfig) -> Result<()> {
    let model = config.name();
    let mut groups = config.instance_groups().iter();
    if let Some(group) = groups.find(|group| group.kind == InstanceKind::Gpu) {
        return Err(Error::invalid_arg(format!(
            "unable to load model '{model}': instance group '{}' is for GPUs (KIND_GPU), which TensorFlow models do not \
             use here; use KIND_CPU",
            group.name
        )));
    }
    if !config.optimization().cpu_accelerators.is_empty() {
        return Err(Error::invalid_arg(format!(
            "CPU Execution Accelerator is not supported in TensorFlow backend (model '{model}'); remove it"
        )));
    }
    for accelerator in &config.optimization().gpu_accelerators {
        let name = accelerator.name.as_str();
        if !["tensorrt", "gpu_io", "auto_mixed_precision"].contains(&name) {
            return Err(Error::invalid_arg(format!(
                "unknown Execution Accelerator '{name}' is requested for model '{model}'; remove it"
            )));
        }
        log::warn!(
            "model '{model}': GPU Execution Accelerator '{name}' will be ignored for model instance on CPU"
        );
    }
    Ok(())
}

impl crate::saved_model::Nodes {
    /// Returns the error of a name that is not among the graph's nodes.
    pub fn unexpected(&self, what: &'static str, name: &str) -> Error {
        let names = if what == "input" { &self.placeholders } else { &self.others };
        unexpected(what, name, names.iter().map(String::as_str))
    }
}
