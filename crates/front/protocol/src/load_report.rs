//! Reports of the server's load for load balancers (ORCA): their figures and their forms.

use std::{collections::BTreeMap, fmt::Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use galatea_proto::load_report::OrcaLoadReport;
use galatea_telemetry::{ModelLoad, ServerLoad};
use prost::Message as _;

/// The lowest use that is reported: balancers take 0 for "unknown" and give the server an average share.
const LEAST_USE: f64 = 0.001;
/// Longer names are left out of answers.
const LONGEST_NAME: usize = 64;

/// The place of a report, which bounds its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportPlace {
    /// A header or trailer of an answer: the 16 most loaded models, with names that every form can hold.
    Answer,
    /// A message of its own: the 256 most loaded models.
    Message,
}

/// The form of a report in an HTTP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// The message as JSON.
    Json,
    /// Pairs of name and value.
    Text,
    /// The message in base64.
    Binary,
}

impl ReportForm {
    /// Returns the form that a client names, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let forms = [("json", Self::Json), ("text", Self::Text), ("bin", Self::Binary)];
        let found = forms.into_iter().find(|(own, _)| name.eq_ignore_ascii_case(own.as_bytes()));
        found.map(|(_, form)| form)
    }
}

/// A report of the server's load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport(OrcaLoadReport);

impl LoadReport {
    /// Makes the report of `load`. It names the models that the reader may know.
    pub fn new(load: &ServerLoad, place: ReportPlace, may_know: impl Fn(&str) -> bool) -> Self {
        let named = [
            ("galatea.queue".to_owned(), load.counts.waiting as f64),
            ("galatea.wait_ms".to_owned(), rounded(load.mean_wait.as_secs_f64() * 1e3)),
        ];
        let is_named = |name: &str| place.has_room_for(name) && may_know(name);
        let models = load.models.iter().filter(|model| is_named(&model.name));
        let models = models.take(place.most_models()).map(|ModelLoad { name, load }| {
            (format!("galatea.load.{name}"), rounded(*load).max(LEAST_USE))
        });
        Self(OrcaLoadReport {
            application_utilization: rounded(load.counts.load).max(LEAST_USE),
            cpu_utilization: load.processors.map_or(0.0, |share| rounded(share).max(LEAST_USE)),
            mem_utilization: rounded(load.memory).min(1.0),
            rps_fractional: rounded(load.requests_per_second),
            eps: rounded(load.failures_per_second),
            named_metrics: named.into_iter().chain(models).collect(),
            ..OrcaLoadReport::default()
        })
    }

    /// Returns the report of `load` in an answer to someone who may know all models. All answers until the next sample of the
    /// load share it.
    pub fn shared_text(load: &ServerLoad, form: ReportForm) -> &str {
        let kept = match form {
            ReportForm::Json => &load.reports.json,
            ReportForm::Text => &load.reports.text,
            ReportForm::Binary => &load.reports.binary,
        };
        kept.get_or_init(|| {
            let report = Self::new(load, ReportPlace::Answer, |_| true);
            match form {
                ReportForm::Json => report.to_json(),
                ReportForm::Text => report.to_text(),
                ReportForm::Binary => report.to_base64(),
            }
        })
    }

    /// Adds a figure with a name of its own.
    pub fn add_named(&mut self, name: &str, value: f64) {
        self.0.named_metrics.insert(name.to_owned(), rounded(value));
    }

    /// Returns the value of the HTTP header `endpoint-load-metrics`.
    pub fn to_header(&self, form: ReportForm) -> String {
        match form {
            ReportForm::Json => self.to_json(),
            ReportForm::Text => self.to_text(),
            ReportForm::Binary => in_header(&self.to_base64()),
        }
    }

    /// Returns the same for someone who may know all models, without making the report once more.
    pub fn shared_header(load: &ServerLoad, form: ReportForm) -> String {
        let text = Self::shared_text(load, form);
        match form {
            ReportForm::Binary => in_header(text),
            ReportForm::Json | ReportForm::Text => text.to_owned(),
        }
    }

    /// Returns the value of the gRPC trailer `endpoint-load-metrics-bin`. It is padded: Envoy reads no other.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0.encode_to_vec())
    }

    /// Returns the message.
    pub fn message(&self) -> &OrcaLoadReport {
        &self.0
    }

    /// Returns the message itself.
    pub fn into_message(self) -> OrcaLoadReport {
        self.0
    }

    /// Returns the figures without those that have names of their own.
    fn figures(&self) -> [(&'static str, f64); 5] {
        let report = &self.0;
        [
            ("application_utilization", report.application_utilization),
            ("cpu_utilization", report.cpu_utilization),
            ("mem_utilization", report.mem_utilization),
            ("rps_fractional", report.rps_fractional),
            ("eps", report.eps),
        ]
    }

    fn to_json(&self) -> String {
        let mut fields: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
        fields.extend(self.figures().map(|(name, value)| (name, value.into())));
        let named = self.0.named_metrics.iter();
        let named = named.map(|(name, value)| (name.clone(), (*value).into()));
        fields.insert("named_metrics", serde_json::Value::Object(named.collect()));
        // A map with text keys is always JSON.
        format!("JSON {}", serde_json::to_string(&fields).unwrap_or_default())
    }

    fn to_text(&self) -> String {
        let mut text = String::from("TEXT ");
        // Writing to a string cannot fail.
        for (name, value) in self.figures() {
            let _ = write!(text, "{name}:{value},");
        }
        for (name, value) in &self.0.named_metrics {
            let _ = write!(text, "named_metrics.{name}:{value},");
        }
        text.pop();
        text
    }
}

fn in_header(base64: &str) -> String {
    format!("BIN {base64}")
}

impl ReportPlace {
    fn most_models(self) -> usize {
        match self {
            Self::Answer => 16,
            Self::Message => 256,
        }
    }

    fn has_room_for(self, name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        self == Self::Message || (name.len() <= LONGEST_NAME && name.bytes().all(is_plain))
    }
}

/// Returns the value with six decimal places; 0 for what no form can hold.
fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.is_finite() { rounded.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use galatea_telemetry::ServerCounts;

    use super::*;

    fn load() -> ServerLoad {
        let model = |name: &str, load| ModelLoad { name: name.into(), load };
        ServerLoad {
            counts: ServerCounts { load: 1.25, waiting: 3, running: 2 },
            processors: Some(0.5),
            memory: 0.25,
            requests_per_second: 40.5,
            failures_per_second: 2.0,
            mean_wait: Duration::from_micros(1500),
            models: vec![model("a", 1.25), model("b,c:d", 0.5), model("idle", 0.0)],
            ..ServerLoad::default()
        }
    }

    #[test]
    fn answers_share_the_texts_of_a_sample() {
        let load = load();
        let report = LoadReport::new(&load, ReportPlace::Answer, |_| true);
        for form in [ReportForm::Json, ReportForm::Text, ReportForm::Binary] {
            assert_eq!(LoadReport::shared_header(&load, form), report.to_header(form));
            let [one, two] = [(); 2].map(|()| LoadReport::shared_text(&load, form).as_ptr());
            assert_eq!(one, two, "{form:?} is made once");
        }
        assert_eq!(LoadReport::shared_text(&load, ReportForm::Binary), report.to_base64());
    }

    #[test]
    fn a_report_has_the_same_figures_in_every_form() {
        let report = LoadReport::new(&load(), ReportPlace::Answer, |_| true);
        assert_eq!(
            report.to_header(ReportForm::Text),
            "TEXT application_utilization:1.25,cpu_utilization:0.5,mem_utilization:0.25,rps_fractional:40.5,eps:2,\
             named_metrics.galatea.load.a:1.25,named_metrics.galatea.load.idle:0.001,named_metrics.galatea.queue:3,\
             named_metrics.galatea.wait_ms:1.5"
        );
        let json = report.to_header(ReportForm::Json);
        let json = json.strip_prefix("JSON ").expect("its form");
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(json["application_utilization"], 1.25);
        assert_eq!(json["named_metrics"]["galatea.wait_ms"], 1.5);
        assert_eq!(json.as_object().map(serde_json::Map::len), Some(6));
        let binary = report.to_header(ReportForm::Binary);
        let bytes = STANDARD.decode(binary.strip_prefix("BIN ").expect("its form"));
        let read = OrcaLoadReport::decode(&*bytes.expect("base64")).expect("a report");
        assert_eq!(&read, report.message());
    }

    #[test]
    fn a_report_names_only_what_its_reader_may_know() {
        let report = LoadReport::new(&load(), ReportPlace::Message, |name| name == "idle");
        let names: Vec<_> = report.message().named_metrics.keys().collect();
        assert_eq!(names, ["galatea.load.idle", "galatea.queue", "galatea.wait_ms"]);
    }

    #[test]
    fn an_idle_server_reports_a_use_above_zero() {
        let idle = LoadReport::new(&ServerLoad::default(), ReportPlace::Answer, |_| true);
        assert_eq!(idle.message().application_utilization, LEAST_USE);
        // Unknown is told as unknown.
        assert_eq!(idle.message().cpu_utilization, 0.0);
        let no_number = ServerLoad { memory: f64::NAN, processors: Some(0.0), ..load() };
        let report = LoadReport::new(&no_number, ReportPlace::Answer, |_| true);
        assert_eq!(report.message().mem_utilization, 0.0);
        assert_eq!(report.message().cpu_utilization, LEAST_USE);
    }

    #[test]
    fn an_answer_has_the_most_loaded_models_with_plain_names() {
        let name = |number: usize| format!("model_{number:04}");
        let of = |number: usize| ModelLoad { name: name(number).into(), load: 1.0 };
        let long = ModelLoad { name: "x".repeat(65).into(), load: 9.0 };
        let models: Vec<_> = [long].into_iter().chain((0..2000).map(of)).collect();
        let load = ServerLoad { models, ..ServerLoad::default() };
        let answer = LoadReport::new(&load, ReportPlace::Answer, |_| true);
        assert_eq!(answer.message().named_metrics.len(), 16 + 2);
        assert!(answer.message().named_metrics.contains_key("galatea.load.model_0015"));
        assert!(answer.to_header(ReportForm::Json).len() < 2048);
        let message = LoadReport::new(&load, ReportPlace::Message, |_| true);
        assert_eq!(message.message().named_metrics.len(), 256 + 2);
    }

    #[test]
    fn a_form_is_named_in_any_case() {
        for (name, form) in [
            ("JSON", Some(ReportForm::Json)),
            ("text", Some(ReportForm::Text)),
            ("Bin", Some(ReportForm::Binary)),
            ("", None),
            ("xml", None),
            ("text, json", None),
        ] {
            assert_eq!(ReportForm::named(name.as_bytes()), form, "{name}");
        }
    }
}
