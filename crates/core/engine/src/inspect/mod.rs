//! Inspects model repositories without serving them: reports errors and warnings that a server would give.
//!
//! Configurations are checked by the same code as at a load, so that the texts are equal. No library of a backend is
//! opened, no code of a model runs, and nothing is written.

mod ensembles;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use galatea_backend::{CompletionContext, Inspector, MissingModelInfo, PathRules};
use galatea_config::{
    ConfigDraft, ConfigSource, Diagnostic, ModelConfig, Place, RawModelConfig, Severity,
};
use galatea_types::{Error, Result};

use self::ensembles::Ensembles;
use crate::{
    backend_registry::InspectorRegistry,
    labels,
    manager::{Backends, Completers, Completion, PolledModel, mistakes_of_folder},
    model_id::ModelId,
    options::EngineOptions,
    overrides::{LoadOverrides, OverrideFolders},
    repository::{ConfigName, ModelFolder, ModelLayout, PlacedMistake, Repository},
    warm_up,
};

/// The begin of Triton's texts about a request without an id, which it also writes about warm-up samples.
const NO_REQUEST: &str = "[request id: <id_unknown>] ";

/// A result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the model; empty for the repository itself.
    pub model: String,
    /// The text and the place.
    pub diagnostic: Diagnostic,
    /// The path of the file, as programs on this machine open it, if there is one.
    pub path: Option<PathBuf>,
}

impl Finding {
    pub(crate) fn new(model: &str, diagnostic: Diagnostic) -> Self {
        Self { model: model.to_owned(), diagnostic, path: None }
    }

    /// Creates a finding about no model, whose place is a path on this machine.
    pub fn of_file(diagnostic: Diagnostic) -> Self {
        let path = diagnostic.place.as_ref().map(|place| PathBuf::from(&place.file));
        Self { model: String::new(), diagnostic, path }
    }

    /// Creates a finding from the reason why a model cannot be loaded. `file` is its place if the error has none.
    pub(crate) fn of_error(model: &str, file: &str, error: &Error) -> Self {
        let found = Diagnostic::of(error).cloned();
        let mut found = found.unwrap_or_else(|| Diagnostic::error(error.message().trim_end()));
        found.place.get_or_insert_with(|| Place::file(file));
        if let Some(text) = found.text.strip_prefix(NO_REQUEST) {
            found.text = text.to_owned();
        }
        Self::new(model, found)
    }

    /// Creates a note about something that is only known when a server runs.
    pub(crate) fn note(model: &str, file: &str, error: &Error) -> Self {
        Self::new(model, Diagnostic::note(error.message()).at(Place::file(file)))
    }

    /// Returns true if a server would not serve the model.
    pub fn is_error(&self) -> bool {
        self.diagnostic.severity == Severity::Error
    }
}

/// The results of an inspection.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// Ordered by repository and model.
    pub findings: Vec<Finding>,
    /// The number of models.
    pub model_count: usize,
}

impl Inspection {
    /// Returns the number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.diagnostic.severity == severity).count()
    }
}

/// Inspects the repositories of `options`.
///
/// # Errors
/// When a repository cannot be read at all.
pub fn inspect(options: &EngineOptions, inspectors: InspectorRegistry) -> Result<Inspection> {
    let inspector = ModelInspector::new(options, inspectors);
    let _look = inspector.repository.begin_look();
    inspector.repository.check()?;
    Ok(inspector.run())
}

/// Returns the configuration of one model of the repositories, completed from the model's files.
///
/// # Errors
/// The reason why it cannot be loaded; [`CannotTell`] with the incomplete configuration, if the model's files do not contain
/// the rest.
pub fn complete(
    options: &EngineOptions,
    inspectors: InspectorRegistry,
    model: &str,
) -> Result<(RawModelConfig, Option<String>)> {
    let inspection = ModelInspector::new(options, inspectors);
    let _look = inspection.repository.begin_look();
    inspection.repository.check()?;
    let id = ModelId::global(model);
    let polled = inspection.poll(&id)?;
    match polled.draft(&inspection.completion()) {
        Ok(raw) => Ok((raw, None)),
        Err(error) if MissingModelInfo::is_in(&error) => {
            Ok((RawModelConfig::clone(&polled.raw), Some(error.message().to_owned())))
        }
        Err(error) => Err(explained(&polled, error)),
    }
}

/// A model after its files were inspected.
struct Inspected {
    polled: PolledModel,
    /// `None` if it cannot be loaded, or its files do not contain the configuration.
    config: Option<Arc<ModelConfig>>,
}

struct ModelInspector<'a> {
    options: &'a EngineOptions,
    repository: Repository,
    inspectors: Backends<dyn Inspector>,
    paths: PathRules,
    folders: OverrideFolders,
}

impl<'a> ModelInspector<'a> {
    fn new(options: &'a EngineOptions, inspectors: InspectorRegistry) -> Self {
        let repository = Repository::new(
            options.repositories.clone(),
            ConfigName::new(&options.model_config_name),
            options.has_namespaces,
        );
        Self {
            options,
            repository,
            inspectors: Backends::new(inspectors, options.backend_config.clone()),
            paths: PathRules::anywhere(),
            folders: OverrideFolders::default(),
        }
    }

    fn completion(&self) -> Completion<'_> {
        Completion {
            backends: Completers::Inspectors(&self.inspectors),
            options: self.options,
            gpus: &self.options.gpus,
            paths: &self.paths,
        }
    }

    fn run(&self) -> Inspection {
        let mut findings = Vec::new();
        for (root, oddity) in self.repository.oddities() {
            let severity = if oddity.is_grave() { Severity::Error } else { Severity::Warning };
            let file =
                if oddity.path.is_empty() { root } else { format!("{root}/{}", oddity.path) };
            findings.push(Finding::of_file(oddity.diagnostic(severity).at(Place::file(file))));
        }
        let ids = self.repository.models();
        let model_count = ids.len();
        let mut models = BTreeMap::new();
        for id in &ids {
            let known = findings.len();
            if let Some(inspected) = self.model(id, &mut findings) {
                models.insert(id.clone(), inspected);
            }
            self.add_paths(id, findings.get_mut(known..).unwrap_or_default());
        }
        let ensembles = Ensembles { repository: &self.repository, ids: &ids };
        let known = findings.len();
        ensembles.inspect(&mut models, &mut findings);
        for id in &ids {
            self.add_paths(id, findings.get_mut(known..).unwrap_or_default());
        }
        // Sorted by line, for each repository and model.
        let position = |found: &Finding| found.diagnostic.place.as_ref().and_then(|p| p.position);
        findings.sort_by(|a, b| (&a.model, position(a)).cmp(&(&b.model, position(b))));
        Inspection { findings, model_count }
    }

    /// Adds the paths of their files to the findings about this model.
    fn add_paths(&self, id: &ModelId, findings: &mut [Finding]) {
        let own =
            findings.iter_mut().filter(|found| found.path.is_none() && found.model == *id.name);
        for finding in own {
            let place = finding.diagnostic.place.as_ref();
            finding.path = place.and_then(|place| self.repository.path_of(id, &place.file));
        }
    }

    fn poll(&self, id: &ModelId) -> Result<PolledModel> {
        let overrides = LoadOverrides::default();
        PolledModel::new(id, &overrides, &self.folders, &self.repository, &self.completion())
    }

    /// Inspects one model. Returns `None` if it cannot be loaded.
    fn model(&self, id: &ModelId, findings: &mut Vec<Finding>) -> Option<Inspected> {
        match self.poll(id) {
            Ok(polled) => {
                let oddities = polled.layout().oddities();
                let inspected = self.examine(polled, findings);
                add_oddities(&id.name, oddities, findings);
                inspected
            }
            Err(error) => {
                let Ok(folder) = self.repository.lease(id) else {
                    findings.push(Finding::of_error(&id.name, &id.name, &error));
                    return None;
                };
                findings.push(Finding::of_error(&id.name, &config_file(&folder), &error));
                let name = &self.repository.config_name;
                let (source, mistakes) = mistakes_of_folder(&folder, name, &self.completion());
                add_mistakes(&folder, &source, mistakes, findings);
                let oddities = ModelLayout::new(&folder, None).oddities();
                add_oddities(&id.name, oddities, findings);
                None
            }
        }
    }

    fn examine(&self, polled: PolledModel, findings: &mut Vec<Finding>) -> Option<Inspected> {
        let id = polled.id.clone();
        let file = &config_file(&polled.folder);
        let fail = |error: &Error| Finding::of_error(&id.name, file, error);
        if polled.versions.is_empty() {
            findings.push(fail(&polled.without_version()));
            return None;
        }
        add_mistakes(&polled.folder, &polled.source, polled.missing_versions(), findings);
        findings.extend(self.notes_of_programs(&polled, file));
        let config = match polled.complete(&self.completion()) {
            Ok(config) => config,
            Err(error) if MissingModelInfo::is_in(&error) => {
                self.add_missing_files(&polled, findings);
                findings.push(Finding::note(&id.name, file, &error));
                return Some(Inspected { polled, config: None });
            }
            Err(error) => {
                findings.push(fail(&explained(&polled, error)));
                let mistakes = polled.mistakes(&self.completion());
                add_mistakes(&polled.folder, &polled.source, mistakes, findings);
                return None;
            }
        };
        let is_fine = self.check_versions(&polled, &config, findings);
        is_fine.then_some(Inspected { polled, config: Some(config) })
    }

    /// Returns notes that name the files of the model's backend and agents that lie neither in the model's folder nor in the
    /// program.
    fn notes_of_programs(&self, polled: &PolledModel, file: &str) -> Vec<Finding> {
        let note = |text: String, field: &'static str| {
            let found = Diagnostic::note(text).about(field);
            let mut found = polled.source.locate_diagnostic(found);
            found.place.get_or_insert_with(|| Place::file(file));
            Finding::new(&polled.id.name, found)
        };
        let backend = self.program_of_backend(polled).map(|program| {
            let text = format!("backend '{}' of this model is {program}", polled.raw.backend);
            note(text, "backend")
        });
        let draft = ConfigDraft::from(RawModelConfig::clone(&polled.raw));
        let agents = self.options.agents.programs(&draft).into_iter().map(|(name, program)| {
            let text = format!("repository agent '{name}' of this model is {program}");
            note(text, "model_repository_agents")
        });
        backend.into_iter().chain(agents).collect()
    }

    fn program_of_backend(&self, polled: &PolledModel) -> Option<String> {
        let inspector = self.inspectors.open_named(&polled.raw, &polled.folder).ok()?;
        let versions = polled.versions.iter().map(|&version| polled.folder.version_dir(version));
        let folders: Vec<_> = versions.chain([polled.folder.path().to_owned()]).collect();
        inspector.program(&folders.iter().map(|folder| &**folder).collect::<Vec<_>>())
    }

    /// Checks that every version could be loaded, as far as its files show.
    fn check_versions(
        &self,
        polled: &PolledModel,
        config: &Arc<ModelConfig>,
        findings: &mut Vec<Finding>,
    ) -> bool {
        let model = &*polled.id.name;
        let file = config_file(&polled.folder);
        add_mistakes(&polled.folder, &polled.source, config.warnings(), findings);
        let mut is_fine = true;
        for &version in &polled.versions {
            let error = match self.check_version(polled, config, version) {
                Ok(()) => {
                    let oddity = polled.layout().model_file(version);
                    is_fine &= oddity.is_none();
                    let found = oddity.map(|oddity| oddity.diagnostic(Severity::Error));
                    findings.extend(found.map(|found| Finding::new(model, found)));
                    continue;
                }
                Err(error) => error,
            };
            if MissingModelInfo::is_in(&error) {
                let place = format!("{model}/{version}");
                findings.push(Finding::note(model, &place, &error));
                continue;
            }
            is_fine = false;
            for error in
                [error].into_iter().chain(self.mistakes_of_version(polled, config, version))
            {
                let error = polled.explain(version, polled.hidden.hide(error));
                let found = Finding::of_error(model, &file, &error);
                if !findings.contains(&found) {
                    findings.push(found);
                }
            }
        }
        is_fine
    }

    fn check_version(
        &self,
        polled: &PolledModel,
        config: &Arc<ModelConfig>,
        version: i64,
    ) -> Result<()> {
        labels::read(config, polled.folder.path())?;
        if polled.is_ensemble() {
            return Ok(());
        }
        warm_up::samples(config, polled.folder.path())?;
        self.with_inspector(polled, config, version, |inspector, context| {
            inspector.inspect(config, context)
        })?
    }

    /// Reports the disagreements between the files of a version and the configuration.
    fn mistakes_of_version(
        &self,
        polled: &PolledModel,
        config: &Arc<ModelConfig>,
        version: i64,
    ) -> Vec<Error> {
        if polled.is_ensemble() {
            return Vec::new();
        }
        let mistakes = |inspector: &dyn Inspector, context: &CompletionContext<'_>| {
            inspector.mistakes(config, context)
        };
        self.with_inspector(polled, config, version, mistakes).unwrap_or_default()
    }

    fn with_inspector<R>(
        &self,
        polled: &PolledModel,
        config: &Arc<ModelConfig>,
        version: i64,
        look: impl FnOnce(&dyn Inspector, &CompletionContext<'_>) -> R,
    ) -> Result<R> {
        let (backend, folder) = (config.backend(), &polled.folder);
        let inspector = self.inspectors.open_for(backend, config.parameters(), folder)?;
        Ok(self
            .completion()
            .with_context(backend, folder, version, |context| look(&*inspector, context)))
    }

    /// Reports missing files also for a model whose configuration cannot be completed.
    fn add_missing_files(&self, polled: &PolledModel, findings: &mut Vec<Finding>) {
        let found =
            polled.versions.iter().filter_map(|&version| polled.layout().model_file(version));
        let finding = |oddity: PlacedMistake| {
            Finding::new(&polled.id.name, oddity.diagnostic(Severity::Error))
        };
        findings.extend(found.map(finding));
    }
}

/// Returns the file for mistakes of a configuration without a known place: the model's folder if it has no configuration.
fn config_file(folder: &ModelFolder) -> String {
    let name = &folder.name;
    match folder.path().join("config.pbtxt").is_file() {
        true => format!("{name}/config.pbtxt"),
        false => name.clone(),
    }
}

/// Returns the reason why a model cannot be loaded, in a server's words.
fn explained(polled: &PolledModel, error: Error) -> Error {
    let version = polled.folder.versions.first().copied().unwrap_or_default();
    polled.explain(version, polled.hidden.hide(error))
}

/// The largest number of reported mistakes of one configuration.
const MOST_MISTAKES: usize = 50;

/// Adds the mistakes of a configuration, without the one that ends the load.
fn add_mistakes(
    folder: &ModelFolder,
    source: &ConfigSource,
    mut mistakes: Vec<Diagnostic>,
    findings: &mut Vec<Finding>,
) {
    let is_told = |found: &Diagnostic| {
        let told = findings.iter().rev().take_while(|told| *told.model == *folder.name);
        told.take(MOST_MISTAKES).map(|told| &told.diagnostic).any(|told| {
            let is_elsewhere = found.place.is_some() && told.place != found.place;
            told.text == found.text && !is_elsewhere
        })
    };
    mistakes.retain(|found| !is_told(found));
    let more = mistakes.len().saturating_sub(MOST_MISTAKES);
    mistakes.truncate(MOST_MISTAKES);
    if more > 0 {
        let text = format!("{more} more mistakes in this configuration");
        mistakes.push(Diagnostic::note(text).at(Place::file(config_file(folder))));
    }
    findings.extend(source.locate_all(mistakes).into_iter().map(|mut found| {
        found.place.get_or_insert_with(|| Place::file(config_file(folder)));
        Finding::new(&folder.name, found)
    }));
}

/// Adds the oddities that no error reports already.
fn add_oddities(model: &str, oddities: Vec<PlacedMistake>, findings: &mut Vec<Finding>) {
    for oddity in oddities {
        let found = oddity.diagnostic(Severity::Warning);
        let is_told = |f: &Finding| f.model == model && f.diagnostic.place == found.place;
        if !findings.iter().any(is_told) {
            findings.push(Finding::new(model, found));
        }
    }
}
