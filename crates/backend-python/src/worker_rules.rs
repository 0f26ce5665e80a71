//! What the processes of Python models may see and do: the options of the server, and what of them the log tells.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Once},
};

use galatea_runtimes::Environment as Variables;
use galatea_types::{Error, Result};
use galatea_worker::{IsolationLevel, KernelSupport, Sandbox, is_secret_variable, secret_files};

/// What the processes of Python models may see and do.
#[derive(Clone, Debug, Default)]
pub struct WorkerRules(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    options: WorkerOptions,
    is_told: Once,
}

impl Default for Rules {
    fn default() -> Self {
        Self { options: WorkerOptions::default(), is_told: Once::new() }
    }
}

/// The options that rules are made of.
#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// `--python-isolation`
    pub isolation: IsolationLevel,
    /// `--python-environment-variable`: variables that are passed on though their names say that they are secret.
    pub variables: BTreeSet<String>,
    /// `--python-readable-path`
    pub readable: Vec<PathBuf>,
    /// `--python-writable-path`
    pub writable: Vec<PathBuf>,
    /// Files of the server that no confined worker may read.
    pub secret: Vec<PathBuf>,
}

/// What one model adds.
pub(crate) struct ModelPaths<'a> {
    /// Folder of the model.
    pub model: &'a Path,
    /// Folder of the version.
    pub version: &'a Path,
    /// Folder of its code, which for a backend written in Python lies elsewhere.
    pub code: &'a Path,
    /// Of its interpreter, and of the worker's own code.
    pub readable: Vec<PathBuf>,
    /// For temporary files.
    pub temporary: &'a Path,
}

impl WorkerRules {
    /// Rules of these options.
    pub fn new(options: WorkerOptions) -> Self {
        Self(Arc::new(Rules { options, is_told: Once::new() }))
    }

    /// How far the processes are confined.
    pub fn level(&self) -> IsolationLevel {
        self.0.options.isolation
    }

    /// Checks that the paths exist, and tells the log once what models do not get and what this kernel cannot refuse.
    ///
    /// # Errors
    /// When a path of the options is not there.
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
        self.0.is_told.call_once(|| self.tell(variables));
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
                "--python-isolation={} is in force only in part, as this kernel cannot do all of it: {}",
                level.name(),
                gaps.join("; ")
            ),
        }
    }

    /// Variables of the server that models do not get, whatever the level is.
    pub(crate) fn withheld(&self, variables: &Variables) -> Vec<OsString> {
        let passed = &self.0.options.variables;
        let names = variables.variables().map(|(name, _)| name);
        let is_withheld = |name: &OsString| {
            name.to_str().is_some_and(|name| is_secret_variable(name) && !passed.contains(name))
        };
        names.filter(is_withheld).collect()
    }

    /// What a model's processes reach; `None`: what the server does.
    pub(crate) fn sandbox(&self, paths: ModelPaths<'_>, variables: &Variables) -> Option<Sandbox> {
        let WorkerOptions { isolation, readable, writable, secret, .. } = &self.0.options;
        if *isolation == IsolationLevel::None {
            return None;
        }
        // Where links lead now: they may lead elsewhere when a process is started again.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own = vec![real(paths.model), real(paths.version)];
        let mut sandbox = Sandbox {
            level: *isolation,
            readable: [readable.clone(), paths.readable, vec![real(paths.code)]].concat(),
            writable: writable.clone(),
            secret: secret.clone(),
        };
        match isolation {
            // What the server reads when it loads the model again is not the model's to change.
            IsolationLevel::Strict => sandbox.readable.extend(own),
            _ => sandbox.writable.extend(own),
        }
        sandbox.readable.extend(libraries(variables));
        sandbox.writable.push(real(paths.temporary));
        sandbox.secret.extend(secret_files(variables.path("HOME").as_deref()));
        sandbox.secret.extend(named_secrets(variables));
        Some(sandbox)
    }
}

/// Where the loader of native libraries looks.
fn libraries(variables: &Variables) -> Vec<PathBuf> {
    let lists =
        ["LD_LIBRARY_PATH", "LD_PRELOAD"].into_iter().filter_map(|name| variables.get(name));
    let paths = lists.flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
    paths.filter(|path| path.is_absolute() && path.parent().is_some()).collect()
}

/// Files that variables with secret names lead to.
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
        let paths = ModelPaths {
            model: Path::new("/nowhere/m"),
            version: Path::new("/nowhere/m/1"),
            code: Path::new("/nowhere/backend"),
            readable: vec!["/python".into()],
            temporary: Path::new("/nowhere/temporary"),
        };
        WorkerRules::new(options).sandbox(paths, variables)
    }

    fn texts(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().filter_map(|path| path.to_str()).collect()
    }

    #[test]
    fn secrets_are_withheld_unless_they_are_named() {
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
    fn a_level_decides_whether_the_models_folder_can_be_changed() {
        let none = Variables::default();
        assert!(sandbox(IsolationLevel::None, &none).is_none());
        let standard = sandbox(IsolationLevel::Standard, &none).expect("a sandbox");
        assert!(texts(&standard.writable).contains(&"/nowhere/m"));
        let strict = sandbox(IsolationLevel::Strict, &none).expect("a sandbox");
        assert_eq!(texts(&strict.writable), ["/nowhere/temporary"]);
        assert!(texts(&strict.readable).contains(&"/nowhere/m"));
        assert!(texts(&strict.readable).contains(&"/python"));
        assert!(texts(&strict.readable).contains(&"/nowhere/backend"));
    }

    #[test]
    fn files_that_secret_variables_lead_to_are_secret() {
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
    fn a_path_that_is_not_there_is_refused_by_its_option() {
        let options =
            WorkerOptions { readable: vec!["/nowhere/data".into()], ..WorkerOptions::default() };
        let error = WorkerRules::new(options).open(&Variables::default()).expect_err("missing");
        assert!(error.message().contains("--python-readable-path=/nowhere/data"), "{error}");
    }
}
