//! Inspects Python models without running any of their code.

use std::{collections::BTreeMap, path::Path};

use galatea_backend::{CompletionContext, Inspector, MissingModelInfo};
use galatea_config::{ConfigDraft, Diagnostic, ModelConfig, Place};
use galatea_types::{Code, Environment, Error, Result};

use crate::{
    defaults::{ModelDefaults, may_complete, read_code},
    environment::{CodeOfModel, PythonBackendFiles, SyntaxMistake, named_path},
    model::check_parameters,
    settings::Settings,
    worker_rules::WorkerRules,
};

/// Inspector of the files of Python models, before the backend `python`, or one written in Python, loads them.
pub struct PythonInspector {
    defaults: ModelDefaults,
}

impl PythonInspector {
    /// Makes an inspector for the backend `python`, or for one whose models all run the code in `files`.
    /// `settings`: those of `--backend-config` for it. `variables`: their `PATH` leads to the interpreter that reads code.
    /// Without an interpreter, code is not checked for mistakes.
    pub fn new(
        files: Option<PythonBackendFiles>,
        settings: BTreeMap<String, String>,
        variables: Environment,
    ) -> Self {
        Self {
            defaults: ModelDefaults { files, settings, variables, rules: WorkerRules::default() },
        }
    }

    fn code(
        &self,
        context: &CompletionContext<'_>,
        name: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Vec<u8>> {
        let file = self.defaults.file(context.version_dir, name)?;
        let code = read_code(&file)?;
        let read = CodeOfModel {
            file: &file,
            model_dir: context.model_dir,
            version_dir: context.version_dir,
            parameters: &self.defaults.parameters(parameters.clone()),
            settings: &self.defaults.settings(context.backend_config),
        };
        match read.mistake(&self.defaults.variables) {
            Some(mistake) => Err(unreadable(mistake, &file, context)),
            None => Ok(code),
        }
    }
}

fn unreadable(mistake: SyntaxMistake, file: &Path, context: &CompletionContext<'_>) -> Error {
    let inside = file.strip_prefix(context.model_dir);
    let name = match inside {
        Ok(inside) => format!("{}/{}", context.model_name, inside.display()),
        Err(_) => file.display().to_string(),
    };
    let mut place = mistake.place.unwrap_or_else(|| Place::file(String::new()));
    place.file = name;
    let advice = format!("correct the code: Python {} cannot read it", mistake.python);
    let found = Diagnostic::error(mistake.text).with_advice(advice).at(place);
    found.into_error(Code::Internal)
}

impl Inspector for PythonInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        self.defaults.has_runtime(runtime)
    }

    fn default_runtime(&self) -> Option<&str> {
        self.defaults.default_runtime()
    }

    fn program(&self, _: &[&Path]) -> Option<String> {
        self.defaults.files.as_ref().map(|files| format!("'{}'", files.model_py.display()))
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let code = self.code(context, config.default_model_filename(), &config.parameters())?;
        if may_complete(&code) && !(config.has_inputs() && config.has_outputs()) {
            let text = format!(
                "the code of model '{}' may complete its configuration (auto_complete_config), and runs only when \
                 the model is loaded",
                context.model_name
            );
            return Err(MissingModelInfo(text).into());
        }
        Ok(config)
    }

    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        let settings = self.defaults.settings(context.backend_config);
        Settings::read(&settings)?.of_model(config.parameters())?;
        check_parameters(config)?;
        let parameters = self.defaults.parameters(config.parameters().clone());
        let paths = self.defaults.paths(config.parameters(), context.paths);
        named_path(&parameters, context.model_dir, &paths)?;
        self.code(context, config.default_model_filename(), config.parameters()).map(drop)
    }
}
