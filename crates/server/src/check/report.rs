//! What an inspection found, for people and for programs.

use galatea_config::{Severity, coloured, plain};
use galatea_engine::{Finding, Inspection};
use serde_json::{Value, json};

/// Several lines, in colours for a terminal that shows them.
pub(super) fn text(inspection: &Inspection, has_colours: bool) -> String {
    let mut text = String::new();
    for Finding { diagnostic, .. } in &inspection.findings {
        let shown = match has_colours {
            true => diagnostic.render(coloured),
            false => diagnostic.render(plain),
        };
        text.push_str(&shown);
        text.push_str("\n\n");
    }
    text.push_str(&summary(inspection));
    text.push('\n');
    text
}

fn summary(inspection: &Inspection) -> String {
    let counted = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        more => format!("{more} {one}s"),
    };
    let of = |severity, one| counted(inspection.count(severity), one);
    format!(
        "{} checked: {}, {}, {}",
        counted(inspection.model_count, "model"),
        of(Severity::Error, "mistake"),
        of(Severity::Warning, "warning"),
        of(Severity::Note, "note"),
    )
}

/// One object. What `docs/check.md` says of its fields holds for programs that read it.
pub(super) fn json(inspection: &Inspection) -> String {
    let findings: Vec<Value> = inspection.findings.iter().map(finding).collect();
    let object = json!({
        "models": inspection.model_count,
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
        "line": found.line(),
        "column": found.column(),
        "field": field,
        "text": found.text,
        "advice": found.advice,
    })
}
