//! The texts of `galatea up`: a command to paste and next steps when it serves, and more after it has ended.

use std::{fs, path::Path};

use galatea_serve::model_path;

use crate::{
    advice::typed,
    serve::{StartTexts, StartedServer},
    up::examples::Example,
};

/// The served models, as far as texts depend on them.
#[derive(Debug)]
pub enum ServedText {
    /// One of the examples.
    Example(&'static Example),
    /// The paths on the command line, as written.
    Own(Vec<String>),
}

impl StartTexts for ServedText {
    fn welcome(&self, started: &StartedServer) -> String {
        let Some(http) = &started.http else {
            return "\nServing, but HTTP has no port (--allow-http, --http-address).\n\n"
                .to_owned();
        };
        let mut out = String::from("\n");
        match self {
            Self::Example(example) => out.push_str(&format!("Serving {}", example.name)),
            Self::Own(_) => out.push_str("Serving"),
        }
        out.push_str(&format!(" at {http}"));
        let others = [("gRPC", &started.grpc), ("metrics", &started.metrics)];
        for (name, place) in others {
            out.push_str(&place.as_ref().map(|at| format!(", {name} at {at}")).unwrap_or_default());
        }
        out.push_str(".\n\nAsk it, in another terminal:\n\n");
        match self {
            Self::Example(example) => out.push_str(&format!(
                "curl -s {http}{}\n\nThe same request by this program:\n\ngalatea infer {} -u {http}\n\n{}\n",
                example.request, example.infer, example.answer
            )),
            Self::Own(_) => out.push_str(&format!(
                "{}\n\nThe models, and with `galatea models NAME` how to ask each:\n\ngalatea models -u {http}\n",
                started.command
            )),
        }
        out.push('\n');
        for (name, what) in self.ways_on(started) {
            out.push_str(&format!("{name:18} {what}\n"));
        }
        out.push('\n');
        out
    }

    fn farewell(&self) -> String {
        let mut out = String::from("\nStopped. What to do next:\n\n");
        let own = match self {
            Self::Example(_) => own_model(Path::new(".")).unwrap_or("my.onnx".to_owned()),
            Self::Own(words) => typed(words),
        };
        let folder = if let Self::Own(_) = self { own.as_str() } else { "models" };
        for (command, what) in [
            (format!("galatea up {own}"), "serve a model file of yours, or a folder of models"),
            (format!("galatea check {folder}"), "find mistakes before it is served"),
            (format!("galatea serve {folder}"), "serve it to other machines, with all of the log"),
            ("galatea --help".to_owned(), "the other commands"),
        ] {
            out.push_str(&format!("  {command:28} {what}\n"));
        }
        out.push('\n');
        out
    }
}

impl ServedText {
    /// Returns titles and texts of the next steps.
    fn ways_on(&self, started: &StartedServer) -> Vec<(&'static str, String)> {
        let mut ways = Vec::new();
        if let Some(console) = &started.console {
            ways.push(("Look at it:", console.clone()));
        }
        if let Self::Example(_) = self {
            let own = own_model(Path::new(".")).unwrap_or("my.onnx".to_owned());
            ways.push(("A model of yours:", format!("galatea up {own}")));
            ways.push(("", format!("({}, or a folder of models)", model_path::ENDINGS)));
            ways.push(("Other examples:", "galatea up --list".to_owned()));
        }
        let reach = match started.is_local {
            true => "this machine only: --http-address=0.0.0.0 serves other machines too",
            false => "every machine that reaches this one",
        };
        ways.push(("Visible to:", reach.to_owned()));
        ways.push(("To stop it:", "Ctrl-C".to_owned()));
        ways
    }
}

/// Returns the name of a model in the folder, for an example command.
fn own_model(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten().take(1000);
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let (path, name) = (entry.path(), entry.file_name().into_string().ok()?);
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            let is_model = ["onnx", "pt", "pt2"].contains(&ending) && path.is_file();
            let is_folder = ["models", "model_repository"].contains(&&*name) && path.is_dir();
            (is_model || is_folder).then_some(name)
        })
        .filter(|name| typed(std::slice::from_ref(name)) == *name && !name.starts_with('-'))
        .collect();
    names.sort();
    names.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::up::examples::EXAMPLES;

    fn started() -> StartedServer {
        StartedServer {
            command: "curl -s localhost:8000/v2/models/a".to_owned(),
            http: Some("localhost:8000".to_owned()),
            is_local: true,
            console: Some("http://localhost:8000/".to_owned()),
            ..StartedServer::default()
        }
    }

    #[test]
    fn each_example_prints_a_command_and_a_next_step() {
        for example in EXAMPLES {
            let text = ServedText::Example(example).welcome(&started());
            let line =
                text.lines().find(|line| line.starts_with("curl -s localhost:8000/v2/models/"));
            assert!(line.is_some_and(|line| line.len() < 300), "{text}");
            let infer = format!("\ngalatea infer {} -u localhost:8000\n", example.infer);
            assert!(text.contains(&infer), "{text}");
            assert!(
                text.contains("http://localhost:8000/\n") && text.contains("galatea up "),
                "{text}"
            );
        }
    }

    #[test]
    fn given_options_are_repeated_in_the_printed_commands() {
        let own = ServedText::Own(vec!["iris.onnx".to_owned()]);
        assert!(own.welcome(&started()).contains("\ncurl -s localhost:8000/v2/models/a\n"));
        assert!(own.farewell().contains("galatea check iris.onnx "));
        let odd = ServedText::Own(vec!["$(x).onnx".to_owned()]);
        assert!(!odd.farewell().contains("$(x)"), "nothing to be pasted blindly");
    }

    #[test]
    fn a_model_in_the_folder_is_suggested() {
        let folder = tempfile::tempdir().expect("folder");
        assert_eq!(own_model(folder.path()), None);
        for name in ["a b.onnx", "-x.onnx", "notes.txt"] {
            fs::write(folder.path().join(name), "").expect("file");
        }
        assert_eq!(own_model(folder.path()), None, "a shell would read them otherwise");
        fs::write(folder.path().join("iris.onnx"), "").expect("file");
        assert_eq!(own_model(folder.path()).as_deref(), Some("iris.onnx"));
    }
}
