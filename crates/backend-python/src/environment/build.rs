//! Building a venv from a model's requirements: once, then it is in the cache.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use galatea_runtimes::{Environment as Variables, PipSettings};
use galatea_types::{Error, Result};

use super::{
    cache::Cached, command, digest::hex, interpreter::Interpreter, lease::EnvironmentLease,
    options::Options, requirements::Requirements, search, space,
};

/// The default index of pip and uv.
const PUBLIC_INDEX: &str = "https://pypi.org/simple";

/// How to build a venv.
pub(super) struct Build<'a> {
    pub model_name: &'a str,
    pub requirements: &'a Requirements,
    /// The interpreter that creates it.
    pub base: &'a Interpreter,
    pub cache: &'a Path,
    pub variables: &'a Variables,
    pub options: Options,
}

impl Build<'_> {
    /// Folder of the venv, and what keeps it.
    pub fn built(&self) -> Result<(PathBuf, EnvironmentLease)> {
        let cached = Cached {
            root: self.cache,
            key: &self.key(),
            what: &format!("model '{}'", self.model_name),
            timeout: self.options.build_timeout,
            bounds: self.options.cache,
        };
        cached.get(&mut |folder| self.build(folder))
    }

    fn key(&self) -> String {
        use sha2::Digest;
        let mut digest = self.requirements.digest.clone();
        for argument in &self.requirements.arguments {
            // The file's content is in the digest; its path does not matter.
            let file = self.requirements.file.as_deref();
            if Some(argument.as_os_str()) != file.map(Path::as_os_str) {
                digest.update(argument.as_encoded_bytes());
                digest.update([0]);
            }
        }
        digest.update(self.base.path.as_os_str().as_encoded_bytes());
        digest.update(self.base.version.to_string());
        hex(digest)
    }

    #[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
    fn build(&self, folder: &Path) -> Result<()> {
        let (model, title) = (self.model_name, self.requirements.title());
        let start = Instant::now();
        log::info!(
            "model '{model}': building {title} with {} in '{}' (once)",
            self.base.title(),
            folder.display()
        );
        let deadline = start + self.options.build_timeout;
        let steps = match search::on_path("uv", self.variables) {
            Some(uv) => self.with_uv(&uv, folder),
            None => self.with_pip(folder),
        };
        for step in steps {
            self.run(step, folder, deadline)?;
        }
        log::info!("model '{model}': {title} is built, in {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    fn with_pip(&self, folder: &Path) -> Vec<Step> {
        let python = folder.join("bin/python");
        let mut venv = Command::new(&self.base.path);
        venv.args(["-m", "venv", "--without-pip"]).args(self.site_packages()).arg(folder);
        // A step of its own: venv hides the output of ensurepip, such as that the disk is full.
        let mut pip = Command::new(&python);
        pip.args(["-I", "-m", "ensurepip", "--upgrade", "--default-pip"]);
        let mut install = Command::new(&python);
        install
            .args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"])
            .args(["--progress-bar", "off"])
            .args(&self.requirements.arguments)
            // Set for the user's own shell, it cannot hold in a venv.
            .env("PIP_USER", "0");
        vec![
            Step { title: "python -m venv", command: venv },
            Step { title: "ensurepip", command: pip },
            Step { title: "pip", command: install },
        ]
    }

    fn with_uv(&self, uv: &Path, folder: &Path) -> Vec<Step> {
        let mut venv = Command::new(uv);
        venv.args(["venv", "--no-project"]).args(self.site_packages());
        venv.arg("--python").arg(&self.base.path).arg(folder);
        let mut install = Command::new(uv);
        install.args(["pip", "install", "--python"]).arg(folder.join("bin/python"));
        let settings = UvSettings::of_pip(self.variables);
        if settings.is_offline {
            install.arg("--no-index");
        }
        install.envs(settings.variables).args(&self.requirements.arguments);
        vec![Step { title: "uv venv", command: venv }, Step { title: "uv pip", command: install }]
    }

    /// What takes the place of an interpreter keeps its packages in sight.
    fn site_packages(&self) -> Option<&'static str> {
        self.requirements.file.is_none().then_some("--system-site-packages")
    }

    fn run(&self, step: Step, folder: &Path, deadline: Instant) -> Result<()> {
        let Step { title, mut command } = step;
        if let Some(here) = self.requirements.file.as_deref().and_then(Path::parent) {
            command.current_dir(here);
        }
        // Packages found there would count as installed.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        let model = self.model_name;
        let mut log = |line: &str| log::info!("model '{model}': {title}: {line}");
        let left = deadline.saturating_duration_since(Instant::now());
        command::run(command, left, &mut log).map_err(|failure| self.failed(title, failure, folder))
    }

    fn failed(&self, title: &'static str, failure: command::Failure, folder: &Path) -> Error {
        if failure.is_disk_full() {
            let what = self.requirements.title();
            return space::disk_full(folder, format!("{title} {failure}"))
                .prefixed(format_args!("cannot build {what}: "));
        }
        let what = self.requirements.title();
        match failure.kind {
            command::FailureKind::TimedOut(_) => BuildError::TimedOut {
                what,
                title,
                limit: self.options.build_timeout,
                lines: failure.lines,
            },
            _ => BuildError::Step { what, title, failure },
        }
        .into()
    }
}

/// Why an environment could not be built, with the requirements and the step.
#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error(
        "cannot build {what}: not done after {} s; set a longer limit with \
         --backend-config=python,environment-build-timeout-seconds=N; the last lines of {title}:\n{}",
        limit.as_secs(),
        lines.join("\n")
    )]
    TimedOut {
        what: String,
        title: &'static str,
        /// Of all steps together.
        limit: Duration,
        lines: Vec<String>,
    },
    #[error("cannot build {what}: {title} {failure}")]
    Step {
        what: String,
        title: &'static str,
        #[source]
        failure: command::Failure,
    },
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Error::unavailable(error.to_string()).with_source(error)
    }
}

struct Step {
    title: &'static str,
    command: Command,
}

/// pip's settings for uv, which does not read them; only where it has none of its own.
struct UvSettings {
    variables: Vec<(&'static str, OsString)>,
    is_offline: bool,
}

impl UvSettings {
    fn of_pip(variables: &Variables) -> Self {
        let mut settings = Self { variables: Vec::new(), is_offline: false };
        let own =
            ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_CONFIG_FILE", "UV_NO_CONFIG"];
        if own.iter().any(|name| variables.get(name).is_some()) || has_configuration(variables) {
            return settings;
        }
        let pip = PipSettings::read(variables);
        settings.is_offline = pip.indexes.is_empty();
        let mut set = |name: &'static str, value: OsString| {
            if !value.is_empty() && variables.get(name).is_none() {
                settings.variables.push((name, value));
            }
        };
        let (main, others) = pip.indexes.split_first().map_or(("", &[][..]), |(m, o)| (m, o));
        if main.trim_end_matches('/') != PUBLIC_INDEX {
            set("UV_DEFAULT_INDEX", main.into());
        }
        set("UV_INDEX", others.join(" ").into());
        let folders: Vec<_> = pip.folders.iter().map(|f| f.to_string_lossy()).collect();
        set("UV_FIND_LINKS", folders.join(",").into());
        set("SSL_CERT_FILE", pip.certificates.unwrap_or_default().into());
        settings
    }
}

fn has_configuration(variables: &Variables) -> bool {
    let user = variables
        .path("XDG_CONFIG_HOME")
        .or_else(|| variables.path("HOME").map(|home| home.join(".config")));
    let files = [user.map(|folder| folder.join("uv/uv.toml")), Some("/etc/uv/uv.toml".into())];
    files.into_iter().flatten().any(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uv_gets_the_settings_of_pip() {
        let pip = [
            ("PIP_CONFIG_FILE", "/dev/null"),
            ("PIP_INDEX_URL", "https://a.example/simple"),
            ("PIP_EXTRA_INDEX_URL", "https://b.example/simple https://c.example/simple"),
            ("PIP_FIND_LINKS", "/wheels"),
            ("PIP_CERT", "/ca.pem"),
        ];
        let settings = UvSettings::of_pip(&Variables::of(pip));
        assert!(!settings.is_offline);
        let expected: [(&str, OsString); 4] = [
            ("UV_DEFAULT_INDEX", "https://a.example/simple".into()),
            ("UV_INDEX", "https://b.example/simple https://c.example/simple".into()),
            ("UV_FIND_LINKS", "/wheels".into()),
            ("SSL_CERT_FILE", "/ca.pem".into()),
        ];
        assert_eq!(settings.variables, expected);
        let own = Variables::of(pip.into_iter().chain([("UV_INDEX_URL", "https://d.example")]));
        assert!(UvSettings::of_pip(&own).variables.is_empty());
        let none = [("PIP_CONFIG_FILE", "/dev/null")];
        assert!(UvSettings::of_pip(&Variables::of(none)).variables.is_empty());
        let offline = Variables::of(none.into_iter().chain([("PIP_NO_INDEX", "1")]));
        assert!(UvSettings::of_pip(&offline).is_offline);
    }
}
