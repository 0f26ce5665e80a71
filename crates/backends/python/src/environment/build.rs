//! Builds a venv from a model's requirements, once. It is then kept in the cache.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use galatea_runtimes::{PipSettings, Progress};
use galatea_types::{Environment as Variables, Error, Result};
use sha2::{Digest, Sha256};

use super::{
    cache::CachedFolder, command, confinement::ProgramAccess, interpreter::Interpreter,
    lease::EnvironmentLease, request::Work, requirements::Requirements, search, space,
};

/// The default index of pip and uv.
const PUBLIC_INDEX: &str = "https://pypi.org/simple";

pub(super) struct Build<'a> {
    pub work: Work<'a>,
    pub requirements: &'a Requirements,
    /// The interpreter that creates the venv.
    pub base: &'a Interpreter,
}

impl Build<'_> {
    /// Returns the folder of the venv, and the lease that keeps it.
    pub fn built(&self) -> Result<(PathBuf, EnvironmentLease)> {
        CachedFolder::new(self.work, self.digest())?.get(&mut |folder| self.build(folder))
    }

    fn digest(&self) -> Sha256 {
        let mut digest = self.requirements.digest.clone();
        for argument in &self.requirements.arguments {
            // The digest contains the file's content; its path does not matter.
            let file = self.requirements.file.as_deref();
            if Some(argument.as_os_str()) != file.map(Path::as_os_str) {
                digest.update(argument.as_encoded_bytes());
                digest.update([0]);
            }
        }
        digest.update(self.base.path.as_os_str().as_encoded_bytes());
        digest.update(self.base.version.to_string());
        digest
    }

    #[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
    fn build(&self, folder: &Path) -> Result<()> {
        let Work { request, variables, options } = self.work;
        let (model, title) = (request.model_name, self.requirements.title());
        let start = Instant::now();
        let mut progress = request.progress.make();
        progress.note(&format!(
            "model '{model}': building {title} with {} in '{}' (once; it may take minutes because it fetches packages)",
            self.base.title(),
            folder.display()
        ));
        let deadline = start + options.build_timeout;
        let uv = search::on_path("uv", variables);
        let steps = match &uv {
            Some(uv) => self.with_uv(uv, folder),
            None => self.with_pip(folder),
        };
        if request.confinement.is_in_force() {
            // The kernel's rules can only name folders that exist.
            std::fs::create_dir_all(folder).map_err(|e| space::not_written(folder, e))?;
        }
        for step in steps {
            request.confinement.stop.check()?;
            let mut told =
                BuildLog { model, step: step.title, start, packages: 0, progress: &mut *progress };
            told.doing("");
            let title = step.title;
            let done = self.run(step, self.reach(uv.as_deref(), folder), deadline, &mut told);
            progress.finished();
            done.map_err(|failure| self.failed(title, failure, folder))?;
        }
        let seconds = start.elapsed().as_secs_f64();
        progress.note(&format!("model '{model}': {title} is built, in {seconds:.1} s"));
        Ok(())
    }

    fn with_pip(&self, folder: &Path) -> Vec<Step> {
        let python = folder.join("bin/python");
        let mut venv = Command::new(&self.base.path);
        venv.args(["-m", "venv", "--without-pip"]).args(self.site_packages()).arg(folder);
        // A separate step: venv hides the output of ensurepip, such as that the disk is full.
        let mut pip = Command::new(&python);
        pip.args(["-I", "-m", "ensurepip", "--upgrade", "--default-pip"]);
        let mut install = Command::new(&python);
        install
            .args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"])
            .args(["--progress-bar", "off"])
            .args(&self.requirements.arguments)
            // A setting for the user's own shell cannot apply in a venv.
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
        let settings = UvSettings::of_pip(self.work.variables);
        if settings.is_offline {
            install.arg("--no-index");
        }
        install.envs(settings.variables).args(&self.requirements.arguments);
        vec![Step { title: "uv venv", command: venv }, Step { title: "uv pip", command: install }]
    }

    /// Returns the option by which an environment that only adds numpy keeps the interpreter's own packages visible.
    fn site_packages(&self) -> Option<&'static str> {
        self.requirements.file.is_none().then_some("--system-site-packages")
    }

    /// Returns the access that a build needs. All models share the installers' caches, and a confined model's build may not
    /// write there: its files would run for other models.
    fn reach(&self, uv: Option<&Path>, folder: &Path) -> ProgramAccess {
        let mut readable = self.base.folders.clone();
        readable.extend(uv.and_then(|uv| uv.canonicalize().ok()));
        let Work { request, variables, .. } = self.work;
        // The requirements may lie there.
        readable.extend([request.model_dir, request.version_dir].map(Path::to_owned));
        let home = variables.path("HOME");
        let settings = [".config/pip", ".pip", ".config/uv"];
        readable.extend(home.iter().flat_map(|home| settings.map(|name| home.join(name))));
        let named = ["PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE", "UV_CONFIG_FILE"];
        readable.extend(named.iter().filter_map(|name| variables.path(name)));
        readable.extend(PipSettings::read(variables).folders);
        ProgramAccess { readable, writable: vec![folder.to_owned()], has_network: true }
    }

    fn run(
        &self,
        step: Step,
        reach: ProgramAccess,
        deadline: Instant,
        told: &mut BuildLog<'_>,
    ) -> Result<(), command::Failure> {
        let mut command = step.command;
        let confinement = self.work.request.confinement;
        if confinement.is_in_force() {
            command
                .env("PIP_NO_CACHE_DIR", "1")
                .env("UV_NO_CACHE", "1")
                .env("PYTHONDONTWRITEBYTECODE", "1");
        }
        if let Some(here) = self.requirements.file.as_deref().and_then(Path::parent) {
            command.current_dir(here);
        }
        // Packages found by these variables would count as installed.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        let left = deadline.saturating_duration_since(Instant::now());
        confinement.run(command, reach, left, told)
    }

    fn failed(&self, title: &str, failure: command::Failure, folder: &Path) -> Error {
        let what = self.requirements.title();
        if failure.is_disk_full() {
            return space::disk_full(folder, io::Error::other(format!("{title} {failure}")))
                .prefixed(format_args!("cannot build {what}: "));
        }
        if matches!(failure.kind, command::FailureKind::TimedOut(_)) {
            // The limit is for all steps together.
            let seconds = self.work.options.build_timeout.as_secs();
            return Error::unavailable(format!(
                "cannot build {what}: not done after {seconds} s; set a longer limit with \
                 --backend-config=python,environment-build-timeout-seconds=N; the last lines of {title}:\n{}",
                failure.lines.join("\n")
            ));
        }
        Error::unavailable(format!("cannot build {what}: {title} {failure}")).with_source(failure)
    }
}

struct Step {
    title: &'static str,
    command: Command,
}

/// Logs each line of a step, and shows the progress to a person.
struct BuildLog<'a> {
    model: &'a str,
    step: &'static str,
    /// Start of the build.
    start: Instant,
    /// Number of packages that the installer has found so far.
    packages: u64,
    progress: &'a mut dyn Progress,
}

impl BuildLog<'_> {
    fn doing(&mut self, line: &str) {
        let colon = if line.is_empty() { "" } else { ": " };
        let packages = match self.packages {
            0 => String::new(),
            1 => " (1 package)".to_owned(),
            count => format!(" ({count} packages)"),
        };
        self.progress.doing(&format!("{}{packages}{colon}{line}", self.step));
    }
}

impl command::ProgramFollower for BuildLog<'_> {
    fn line(&mut self, line: &str) {
        log::info!("model '{}': {}: {line}", self.model, self.step);
        self.packages = packages(line, self.packages);
        self.doing(line);
    }

    #[expect(clippy::disallowed_methods, reason = "what takes how long is shown")]
    fn runs(&mut self) {
        self.progress.waits(self.start.elapsed());
    }
}

/// Returns the number of packages found after this line: pip names each, uv counts them.
fn packages(line: &str, before: u64) -> u64 {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("Collecting"), Some(_)) => before.saturating_add(1),
        (Some("Resolved" | "Prepared" | "Installed"), Some(count)) => {
            count.parse().unwrap_or(before)
        }
        _ => before,
    }
}

/// pip's settings for uv, which does not read them. They apply only if uv has none of its own.
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
    fn packages_are_counted_from_the_output_of_pip_and_uv() {
        let count = |lines: &[&str]| lines.iter().fold(0, |before, line| packages(line, before));
        assert_eq!(count(&["Collecting numpy", "  Downloading x", "Collecting six>=1"]), 2);
        assert_eq!(count(&["Using Python 3.11", "Resolved 5 packages in 12ms", "Prepared x"]), 5);
    }

    #[test]
    fn uv_receives_the_settings_of_pip() {
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
