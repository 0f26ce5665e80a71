//! Looks at Python models without running any of their code.

use std::collections::BTreeMap;

use galatea_backend::{CannotTell, CompletionContext, Inspector};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_runtimes::Environment;
use galatea_types::Result;

use crate::{
    defaults::{ModelDefaults, mentions, read_code},
    environment::PythonBackendFiles,
    model::check_parameters,
    settings::Settings,
    worker_rules::WorkerRules,
};

/// What the files of Python models tell before the backend `python`, or one written in Python, loads them.
pub struct PythonInspector {
    defaults: ModelDefaults,
}

impl PythonInspector {
    /// Of the backend `python`, or of one whose models all run the code in `files`. `settings`: those of
    /// `--backend-config` for it.
    pub fn new(files: Option<PythonBackendFiles>, settings: BTreeMap<String, String>) -> Self {
        let variables = Environment::default();
        Self {
            defaults: ModelDefaults { files, settings, variables, rules: WorkerRules::default() },
        }
    }

    fn code(&self, context: &CompletionContext<'_>, name: &str) -> Result<Vec<u8>> {
        read_code(&self.defaults.file(context.version_dir, name)?)
    }
}

impl Inspector for PythonInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        match self.defaults.files {
            Some(_) => runtime == "model.py",
            None => runtime == "libtriton_python.so",
        }
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let code = self.code(context, config.default_model_filename())?;
        if mentions(&code, "auto_complete_config") && !(config.has_inputs() && config.has_outputs())
        {
            let text = format!(
                "the code of model '{}' completes its configuration (auto_complete_config), and runs when the model is \
                 loaded only",
                context.model_name
            );
            return Err(CannotTell(text).into());
        }
        Ok(config)
    }

    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        let settings = self.defaults.settings(context.backend_config);
        Settings::read(&settings)?.of_model(config.parameters())?;
        check_parameters(config)?;
        self.code(context, config.default_model_filename()).map(drop)
    }
}
