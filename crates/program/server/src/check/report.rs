//! The findings of an inspection, for people and for programs.

use std::path::{Path, PathBuf};

use galatea_config::{Diagnostic, Severity, coloured, plain};
use galatea_engine::{Finding, Inspection};
use serde_json::{Value, json};

/// Returns lines that fit into `width` columns, in colours for a terminal that shows them.
pub(super) fn text(
    inspection: &Inspection,
    policies: usize,
    width: usize,
    has_colours: bool,
) -> String {
    let mut text = String::new();
    for finding in &inspection.findings {
        let diagnostic = as_opened(finding);
        text.push_str(&match has_colours {
            true => diagnostic.render_within(width, coloured),
            false => diagnostic.render_within(width, plain),
        });
        text.push_str("\n\n");
    }
    text.push_str(&summary(inspection, policies));
    text.push('\n');
    text
}

/// Returns the finding with the path of its file, so that a terminal or an editor can open it.
fn as_opened(finding: &Finding) -> Diagnostic {
    let mut diagnostic = finding.diagnostic.clone();
    if let (Some(place), Some(path)) = (&mut diagnostic.place, &finding.path) {
        place.file = shown(path);
    }
    diagnostic
}

/// Returns a path on one line, in the form of its repository.
fn shown(path: &Path) -> String {
    let path: PathBuf = path.components().collect();
    path.display()
        .to_string()
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

fn summary(inspection: &Inspection, policies: usize) -> String {
    let counted = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        more => format!("{more} {one}s"),
    };
    let checked = match (inspection.model_count, policies) {
        (0, 1..) => "the policy".to_owned(),
        (models, 0) => counted(models, "model"),
        (models, _) => format!("{} and the policy", counted(models, "model")),
    };
    let of = |severity, one| counted(inspection.count(severity), one);
    format!(
        "{checked} checked: {}, {}, {}",
        of(Severity::Error, "mistake"),
        of(Severity::Warning, "warning"),
        of(Severity::Note, "note"),
    )
}

/// Returns one JSON object. `docs/check.md` documents its fields for programs.
pub(super) fn json(inspection: &Inspection, policies: usize) -> String {
    let findings: Vec<Value> = inspection.findings.iter().map(finding).collect();
    let object = json!({
        "models": inspection.model_count,
        "policies": policies,
        "errors": inspection.count(Severity::Error),
        "warnings": inspection.count(Severity::Warning),
        "notes": inspection.count(Severity::Note),
        "findings": findings,
    });
    format!("{object:#}\n")
}

fn finding(finding: &Finding) -> Value {
    let found = &finding.diagnostic;
    let field = (!found.field.is_empty()).then(|| found.field.to_string());
    json!({
        "severity": found.severity.as_str(),
        "model": if finding.model.is_empty() { Value::Null } else { json!(finding.model) },
        "file": found.place.as_ref().map(|place| &place.file),
        "path": finding.path.as_deref().map(shown),
        "line": found.line(),
        "column": found.column(),
        "field": field,
        "text": found.text,
        "advice": found.advice,
    })
}
