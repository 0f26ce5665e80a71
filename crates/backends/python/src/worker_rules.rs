//! The rules for the processes of Python models: the options of the server, and the log lines about them.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{environment::Confinement, settings::Settings};
use galatea_runtimes::ProgressMaker;
use galatea_types::{Environment as Variables, Error, Result, Stop};
use galatea_worker::{
    IsolationLevel, KernelSupport, Sandbox, WorkLimits, is_secret_variable, secret_files,
};

/// Rules for what the processes of Python models may see and do.
#[derive(Clone, Debug, Default)]
pub struct WorkerRules(Arc<Rules>);

#[derive(Debug, Default)]
struct Rules {
    options: WorkerOptions,
    is_told: OnceLock<()>,
}

/// The options from which rules are made.
#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// `--python-isolation`
    pub isolation: IsolationLevel,
    /// `--python-environment-variable`: variables that are passed on though their names look secret.
    pub variables: BTreeSet<String>,
    /// `--python-readable-path`
    pub readable: Vec<PathBuf>,
    /// `--python-writable-path`
    pub writable: Vec<PathBuf>,
    /// Files of the server that no confined worker may read.
    pub secret: Vec<PathBuf>,
    /// `--python-model-control`: models that may load and unload others even if other models may not.
    pub controlling_models: BTreeSet<String>,
    /// `--python-memory`: most bytes that the processes of one worker may take together.
    pub memory: Option<u64>,
    /// `--hardened`: nobody changes the server unless another option allows it.
    pub is_hardened: bool,
    /// Ends work on environments when it is requested.
    pub stop: Stop,
    /// Shows the progress of building environments.
    pub progress: ProgressMaker,
}

/// Rule for a model that loads and unloads models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ModelControlRule {
    /// It may, with any configuration and files, as clients of a server without a policy.
    #[default]
    Free,
    /// It may only as the repository has them: files and configurations name the programs and libraries that the server
    /// runs.
    OfTheRepository,
    /// It may not.
    Refused { model: String, because: String },
}

/// The folders of a model, and the file with its code. For a backend written in Python that lies elsewhere.
pub(crate) struct ModelFolders<'a> {
    pub model: &'a Path,
    pub version: &'a Path,
    pub code: &'a Path,
}

impl WorkerRules {
    /// Makes the rules of these options.
    pub fn new(options: WorkerOptions) -> Self {
        Self(Arc::new(Rules { options, is_told: OnceLock::new() }))
    }

    /// Returns the isolation level of the processes.
    pub fn level(&self) -> IsolationLevel {
        self.0.options.isolation
    }

    /// Returns the rule for a model that loads and unloads models.
    pub(crate) fn model_control(&self, model: &str) -> ModelControlRule {
        let WorkerOptions { isolation, controlling_models, is_hardened, .. } = &self.0.options;
        let is_isolated = *isolation != IsolationLevel::None;
        let refused =
            |because: String| ModelControlRule::Refused { model: model.to_owned(), because };
        match controlling_models.contains(model) {
            true if is_isolated => ModelControlRule::OfTheRepository,
            true => ModelControlRule::Free,
            false if is_isolated => refused(format!("--python-isolation={}", isolation.name())),
            false if *is_hardened => refused("--hardened".to_owned()),
            false => ModelControlRule::Free,
        }
    }

    /// Returns the most bytes that the processes of one worker may take together.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.0.options.memory
    }

    /// Returns the limits of a worker's work.
    pub(crate) fn limits(&self, settings: &Settings) -> WorkLimits {
        WorkLimits {
            execution: settings.execution,
            abandoned: settings.abandoned,
            memory: self.0.options.memory,
            memory_setting: "--python-memory",
        }
    }

    /// Returns the maker of progress displays for builds of environments.
    pub(crate) fn progress(&self) -> &ProgressMaker {
        &self.0.options.progress
    }

    /// Returns the limits of the programs that make a model's environment.
    pub(crate) fn confinement(&self, variables: &Variables) -> Confinement {
        let WorkerOptions { isolation, readable, .. } = &self.0.options;
        if *isolation == IsolationLevel::None {
            return Confinement { stop: self.0.options.stop.clone(), ..Confinement::none() };
        }
        let sandbox = Sandbox {
            level: *isolation,
            readable: readable.iter().cloned().chain(libraries(variables)).collect(),
            writable: Vec::new(),
            secret: self.secrets(variables),
        };
        let stop = self.0.options.stop.clone();
        Confinement { sandbox: Some(sandbox), withheld: self.withheld(variables), stop }
    }

    fn secrets(&self, variables: &Variables) -> Vec<PathBuf> {
        let mut secrets = self.0.options.secret.clone();
        secrets.extend(secret_files(variables.path("HOME").as_deref()));
        secrets.extend(named_secrets(variables));
        secrets
    }

    /// Checks that the paths exist, and logs once what is withheld from models and what this kernel cannot refuse.
    ///
    /// # Errors
    /// When a path of the options does not exist.
    pub(crate) fn open(&self, variables: &Variables) -> Result<()> {
        let options = &self.0.options;
        for (option, paths) in [("readable", &options.readable), ("writable", &options.writable)] {
            if let Some(path) = paths.iter().find(|path| !path.exists()) {
                let path = path.display();
                return Err(Error::invalid_arg(format!(
                    "--python-{option}-path={path}: there is no such file or folder"
                )));
            }
        }
        self.0.is_told.get_or_init(|| self.tell(variables));
        Ok(())
    }

    fn tell(&self, variables: &Variables) {
        let withheld = self.withheld(variables);
        if !withheld.is_empty() {
            let names: Vec<_> = withheld.iter().map(|name| name.to_string_lossy()).collect();
            log::info!(
                "Python models do not get these environment variables, which may hold secrets: {}; \
                 --python-environment-variable=NAME passes one",
                names.join(", ")
            );
        }
        let level = self.level();
        if level == IsolationLevel::None {
            return;
        }
        let gaps = KernelSupport::detect().gaps(level);
        match gaps.as_slice() {
            [] => log::info!("Python models are isolated: --python-isolation={}", level.name()),
            gaps => log::warn!(
                "--python-isolation={} is only partly in force, because this kernel lacks some of it: {}",
                level.name(),
                gaps.join("; ")
            ),
        }
    }

    /// Returns the variables of the server that models do not get, whatever the level is.
    pub(crate) fn withheld(&self, variables: &Variables) -> Vec<OsString> {
        let passed = &self.0.options.variables;
        let names = variables.variables().map(|(name, _)| name);
        let is_withheld = |name: &OsString| {
            name.to_str().is_some_and(|name| is_secret_variable(name) && !passed.contains(name))
        };
        names.filter(is_withheld).collect()
    }

    /// Returns what a model's processes may reach, or `None` if they reach what the server does. `own`: folders of its
    /// interpreter and of the worker's code. `temporary`: for temporary files.
    pub(crate) fn sandbox(
        &self,
        folders: &ModelFolders<'_>,
        own: Vec<PathBuf>,
        temporary: &Path,
        variables: &Variables,
    ) -> Option<Sandbox> {
        let WorkerOptions { isolation, readable, writable, .. } = &self.0.options;
        if *isolation == IsolationLevel::None {
            return None;
        }
        // The current targets of links: they may change before a process is started again.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let code = folders.code.parent().unwrap_or(folders.code);
        let mut sandbox = Sandbox {
            level: *isolation,
            readable: [readable.clone(), own, vec![real(code)]].concat(),
            writable: writable.clone(),
            secret: self.secrets(variables),
        };
        match isolation {
            IsolationLevel::Strict => sandbox.readable.push(real(folders.version)),
            _ => sandbox.writable.push(real(folders.version)),
        }
        // The configuration names the native code that the server opens for a model, so the model must not change it.
        sandbox.readable.push(real(folders.model));
        sandbox.readable.extend(libraries(variables));
        sandbox.writable.push(real(temporary));
        Some(sandbox)
    }
}

/// Returns the folders and files that the loader of native libraries uses.
fn libraries(variables: &Variables) -> Vec<PathBuf> {
    let lists =
        ["LD_LIBRARY_PATH", "LD_PRELOAD"].into_iter().filter_map(|name| variables.get(name));
    let paths = lists.flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
    paths.filter(|path| path.is_absolute() && path.parent().is_some()).collect()
}

/// Returns the files that variables with secret names lead to.
fn named_secrets(variables: &Variables) -> Vec<PathBuf> {
    let pairs = variables.variables();
    let secret = pairs.filter(|(name, _)| name.to_str().is_some_and(is_secret_variable));
    secret.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(level: IsolationLevel, variables: &Variables) -> Option<Sandbox> {
        let options = WorkerOptions {
            isolation: level,
            secret: vec!["/policy.toml".into()],
            ..WorkerOptions::default()
        };
        let folders = ModelFolders {
            model: Path::new("/nowhere/m"),
            version: Path::new("/nowhere/m/1"),
            code: Path::new("/nowhere/backend/model.py"),
        };
        let temporary = Path::new("/nowhere/temporary");
        WorkerRules::new(options).sandbox(&folders, vec!["/python".into()], temporary, variables)
    }

    fn texts(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().filter_map(|path| path.to_str()).collect()
    }

    #[test]
    fn secret_variables_are_withheld_unless_listed() {
        let variables = Variables::of([("HF_TOKEN", "t"), ("AWS_PROFILE", "p"), ("PATH", "/bin")]);
        let withheld = |passed: &[&str]| {
            let variables_passed = passed.iter().map(|name| (*name).to_owned()).collect();
            let options = WorkerOptions { variables: variables_passed, ..WorkerOptions::default() };
            WorkerRules::new(options).withheld(&variables)
        };
        assert_eq!(withheld(&[]), ["AWS_PROFILE", "HF_TOKEN"]);
        assert_eq!(withheld(&["HF_TOKEN"]), ["AWS_PROFILE"]);
    }

    #[test]
    fn the_isolation_level_decides_if_the_model_folder_is_writable() {
        let none = Variables::default();
        assert!(sandbox(IsolationLevel::None, &none).is_none());
        let standard = sandbox(IsolationLevel::Standard, &none).expect("a sandbox");
        assert_eq!(texts(&standard.writable), ["/nowhere/m/1", "/nowhere/temporary"]);
        assert!(texts(&standard.readable).contains(&"/nowhere/m"));
        let strict = sandbox(IsolationLevel::Strict, &none).expect("a sandbox");
        assert_eq!(texts(&strict.writable), ["/nowhere/temporary"]);
        assert!(texts(&strict.readable).contains(&"/nowhere/m"));
        assert!(texts(&strict.readable).contains(&"/python"));
        assert!(texts(&strict.readable).contains(&"/nowhere/backend"));
    }

    #[test]
    fn files_named_by_secret_variables_are_secret() {
        let variables = Variables::of([
            ("GOOGLE_APPLICATION_CREDENTIALS", "/keys/google.json"),
            ("HF_TOKEN", "hf_x"),
            ("HOME", "/people/me"),
            ("LD_LIBRARY_PATH", "/libraries:relative"),
        ]);
        let sandbox = sandbox(IsolationLevel::Strict, &variables).expect("a sandbox");
        let secret = texts(&sandbox.secret);
        for path in ["/policy.toml", "/keys/google.json", "/people/me/.aws", "/etc/shadow"] {
            assert!(secret.contains(&path), "{secret:?}");
        }
        assert!(!secret.contains(&"hf_x"));
        assert!(texts(&sandbox.readable).contains(&"/libraries"));
        assert!(!texts(&sandbox.readable).contains(&"relative"));
    }

    #[test]
    fn a_missing_path_is_refused_with_its_option() {
        let options =
            WorkerOptions { readable: vec!["/nowhere/data".into()], ..WorkerOptions::default() };
        let error = WorkerRules::new(options).open(&Variables::default()).expect_err("missing");
        assert!(error.message().contains("--python-readable-path=/nowhere/data"), "{error}");
    }

    #[test]
    fn model_control_needs_no_isolation_or_a_listed_model() {
        let rule = |isolation, is_hardened, model: &str| {
            let controlling_models = BTreeSet::from(["named".to_owned()]);
            let options = WorkerOptions {
                isolation,
                is_hardened,
                controlling_models,
                ..WorkerOptions::default()
            };
            WorkerRules::new(options).model_control(model)
        };
        let refused = |because: &str| ModelControlRule::Refused {
            model: "m".to_owned(),
            because: because.to_owned(),
        };
        assert_eq!(rule(IsolationLevel::None, false, "m"), ModelControlRule::Free);
        assert_eq!(rule(IsolationLevel::None, true, "m"), refused("--hardened"));
        assert_eq!(rule(IsolationLevel::None, true, "named"), ModelControlRule::Free);
        for (level, name) in
            [(IsolationLevel::Standard, "standard"), (IsolationLevel::Strict, "strict")]
        {
            assert_eq!(rule(level, true, "m"), refused(&format!("--python-isolation={name}")));
            assert_eq!(rule(level, false, "named"), ModelControlRule::OfTheRepository);
        }
    }
}
