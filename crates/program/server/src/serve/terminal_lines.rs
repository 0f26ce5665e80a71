//! Lines for a person at a terminal: a request for the started server, and the end of the server. Pipes and files do not get
//! them, because scripts match lines there, unless the command is one for people.

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
};

use galatea_config::{ModelConfig, TensorSpec};
use galatea_engine::Engine;
use galatea_serve::Server;
use galatea_types::DataType;
use serde_json::{Value, json};

use super::{StartTexts, StartedServer};

/// Longest request that is shown, in characters.
const LONGEST: usize = 300;

/// Most elements of an input that are written out.
const MOST_ELEMENTS: usize = 16;

/// Prints the lines, if stdout is a terminal. A `guide` has its own texts, which pipes and files get too.
pub fn show(server: &Server, guide: Option<&dyn StartTexts>) {
    // Making the command may need a request to a model store.
    if guide.is_none() && !io::stdout().is_terminal() {
        return;
    }
    let (front_ends, options) = (server.front_ends(), &server.options().http_options);
    let http = front_ends.http_address();
    // curl uses HTTP for an address without a scheme.
    let (scheme, of_url) = if options.tls.is_some() { ("https", "https://") } else { ("http", "") };
    let url = http.map(|http| format!("{of_url}{}", place(http)));
    let command = url.as_deref().map(|url| command(server.engine(), url));
    let console = http.filter(|_| options.has_console);
    let console = console.map(|at| format!("{scheme}://{}/", place(at)));
    let text = match (guide, command) {
        (Some(guide), command) => guide.welcome(&StartedServer {
            command: command.unwrap_or_default(),
            http: url,
            grpc: front_ends.grpc_address().map(place),
            metrics: front_ends.metrics_address().map(place),
            is_local: http.is_none_or(|http| http.ip().is_loopback()),
            console,
        }),
        (None, Some(command)) => {
            let console = console.map(|url| format!("Look at it:  {url}\n"));
            format!("\nAsk it:  {command}\n{}\n", console.unwrap_or_default())
        }
        (None, None) => return,
    };
    say(&text);
}

/// Prints the last lines of a server that was asked to stop. `all_answered`: no request was cut off.
pub fn take_leave(all_answered: bool, guide: Option<&dyn StartTexts>) {
    match guide {
        Some(guide) => say(&guide.farewell()),
        None if all_answered && io::stdout().is_terminal() => {
            say("Stopped: every request was answered.\n");
        }
        None => {}
    }
}

/// Prints a text after the log, which has a writer of its own. A reader that is gone is not an error.
fn say(text: &str) {
    log::logger().flush();
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns the address for a client on this machine, if there is one.
fn place(http: SocketAddr) -> String {
    match http.ip() {
        ip if ip.is_unspecified() || ip.is_loopback() => format!("localhost:{}", http.port()),
        _ => http.to_string(),
    }
}

/// Returns a command that suits the served models.
fn command(engine: &Engine, at: &str) -> String {
    let ready = engine.repository_index(true).unwrap_or_default();
    let names = ready.iter().map(|entry| entry.name.as_str()).filter(|name| is_plain(name));
    let model = names.filter_map(|name| Some((name, engine.model(name, None).ok()?))).next();
    let Some((name, model)) = model else {
        return format!("curl -s -X POST {at}/v2/repository/index");
    };
    match request(model.config()) {
        Some(body) => format!("curl -s {at}/v2/models/{name}/infer -d '{body}'"),
        None => format!("curl -s {at}/v2/models/{name}"),
    }
}

/// Returns the body of a small request. `None`: it would be long, or cannot be written as JSON.
fn request(config: &ModelConfig) -> Option<String> {
    if config.is_decoupled() || config.inputs().is_empty() {
        return None;
    }
    let required = config.inputs().iter().filter(|input| !input.is_optional);
    let inputs = required.map(|input| tensor(input, config.has_batching()));
    let inputs = inputs.collect::<Option<Vec<_>>>()?;
    let body = json!({ "inputs": inputs }).to_string();
    (body.len() <= LONGEST && !body.contains('\'')).then_some(body)
}

fn tensor(spec: &TensorSpec, has_batching: bool) -> Option<Value> {
    let element = match spec.data_type {
        DataType::Fp16 | DataType::Bf16 => return None,
        DataType::Bytes => json!("text"),
        DataType::Bool => json!(true),
        DataType::Fp32 | DataType::Fp64 => json!(1.0),
        _ => json!(1),
    };
    let batch = has_batching.then_some(1);
    let sizes = spec.dims.iter().map(|&size| if size < 0 { 1 } else { size });
    let shape: Vec<i64> = batch.into_iter().chain(sizes).collect();
    let count = shape.iter().try_fold(1usize, |count, &size| {
        count.checked_mul(usize::try_from(size).ok()?).filter(|&count| count <= MOST_ELEMENTS)
    })?;
    Some(json!({
        "name": &*spec.name,
        "shape": shape,
        "datatype": spec.data_type.protocol_name(),
        "data": vec![element; count],
    }))
}

/// Returns true if the name needs no escapes in a URL and in a shell command.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use galatea_config::testing::model_config;

    use super::*;

    fn body(config: &str) -> Option<String> {
        request(&model_config(&format!("name: 'm' backend: 'identity' {config}")))
    }

    #[test]
    fn a_small_example_request_is_printed() {
        let output = "output { name: 'OUT' data_type: TYPE_FP32 dims: [ 1 ] }";
        let with = |input: &str| body(&format!("input {{ name: 'IN' {input} }} {output}"));
        assert_eq!(
            with("data_type: TYPE_FP32 dims: [ -1, 2 ]").as_deref(),
            Some(r#"{"inputs":[{"data":[1.0,1.0],"datatype":"FP32","name":"IN","shape":[1,2]}]}"#)
        );
        let text = with("data_type: TYPE_STRING dims: [ 1 ]").expect("small");
        assert!(text.contains(r#""data":["text"],"datatype":"BYTES""#), "{text}");
        assert_eq!(with("data_type: TYPE_FP16 dims: [ 1 ]"), None, "not to be written as JSON");
        assert_eq!(with("data_type: TYPE_FP32 dims: [ 3, 224, 224 ]"), None, "long");
        assert_eq!(with("data_type: TYPE_FP32 dims: [ 4611686018427387904, 4 ]"), None, "longer");
    }

    #[test]
    fn special_names_are_quoted_for_a_shell() {
        assert!(is_plain("iris-v2.1_x"));
        for name in ["a b", "$(x)", "a'b", "ä"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
