//! Renderings, and findings behind errors.

use galatea_types::Code;

use super::*;

fn found() -> Diagnostic {
    let source = "input {\n\t\tdim: 4\r\n}\n";
    Diagnostic::error("no field `dim` in ModelInput")
        .with_advice("did you mean `dims`?")
        .at(Place::in_text("m/config.pbtxt", source, (2, 3)))
}

#[test]
fn a_diagnostic_renders_on_one_line_and_on_several() {
    let one_line = "m/config.pbtxt:2:3: no field `dim` in ModelInput; did you mean `dims`?";
    assert_eq!(found().one_line(), one_line);
    assert_eq!(
        found().render(plain),
        "m/config.pbtxt:2:3: error: no field `dim` in ModelInput\n  |\n2 | \t\tdim: 4\n  | \t\t^\n  \
         = help: did you mean `dims`?"
    );
    assert_eq!(found().appendix(), " (m/config.pbtxt:2:3: did you mean `dims`?)");
    let bare = Diagnostic::note("nothing to serve");
    assert_eq!((bare.one_line().as_str(), bare.appendix().as_str()), ("nothing to serve", ""));
    assert_eq!(bare.render(plain), "note: nothing to serve");
    let of_file = Diagnostic::warning("is empty").at(Place::file("m/1/model.onnx"));
    assert_eq!(of_file.render(plain), "m/1/model.onnx: warning: is empty");
    assert_eq!((of_file.line(), of_file.appendix().as_str()), (None, " (m/1/model.onnx)"));
}

#[test]
fn every_part_of_a_rendering_can_be_coloured() {
    let painted = found().render(|part, text| format!("<{part:?}>{text}</>"));
    for part in ["Place", "Severity", "Text", "Margin", "Line", "Caret", "Advice"] {
        assert!(painted.contains(&format!("<{part}>")), "{part} in {painted}");
    }
}

#[test]
fn a_long_line_is_cut_around_the_column() {
    let source = format!("{}x{}", "a".repeat(5000), "b".repeat(5000));
    let rendered = Diagnostic::error("m").at(Place::in_text("f", &source, (1, 5001))).render(plain);
    assert!(rendered.len() < 400, "{}", rendered.len());
    let lines = rendered.lines().collect::<Vec<_>>();
    assert_eq!(lines[2].find('x'), lines[3].find('^'));
}

#[test]
fn a_rendering_fits_the_terminal_width() {
    let source = format!("input {{ {}dim: 4 }}", "name: 'x' ".repeat(6));
    let found = Diagnostic::error("no field `dim` in ModelInput, which has four of them")
        .with_advice("did you mean `dims`, the sizes of the tensor?")
        .at(Place::in_text("m/config.pbtxt", &source, (1, 69)));
    assert_eq!(
        found.render_within(40, plain),
        "m/config.pbtxt:1:69: error: no field\n    `dim` in ModelInput, which has four\n    of them\n  |\n\
         1 | me: 'x' name: 'x' name: 'x' dim: 4 }\n  |                             ^\n  = help: did you mean `dims`, the sizes\n    of the tensor?"
    );
    for width in 30..120 {
        let lines = found.render_within(width, plain);
        assert!(lines.lines().all(|line| line.chars().count() <= width), "{width}: {lines}");
        let [line, caret] = [2, 1].map(|back| {
            let at = lines.lines().position(|line| line.ends_with('^')).expect("a caret");
            lines.lines().nth(at + 1 - back).expect("a line")
        });
        assert_eq!(line.find("dim"), caret.find('^'), "{lines}");
    }
    assert_eq!(found.render_within(29, plain), found.render(plain));
}

#[test]
fn a_place_without_a_matching_line_has_no_excerpt() {
    let found = Diagnostic::error("m").at(Place::in_text("f", "one line", (9, 1)));
    assert_eq!(found.render(plain), "f:9:1: error: m");
}

#[test]
fn file_content_cannot_send_terminal_commands() {
    let source = "name: \"\u{1b}]0;owned\u{7}\"\r\u{9b}2J";
    let found = Diagnostic::error("odd \u{1b}[31m\nline")
        .with_advice("remove \u{1b}[0m")
        .at(Place::in_text("m\u{1b}/config.pbtxt", source, (1, 1)));
    let rendered = found.render(plain);
    assert!(!rendered.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{rendered:?}");
    assert_eq!(rendered.lines().count(), 5, "{rendered}");
}

#[test]
fn an_error_gives_back_its_diagnostic() {
    let error = found().into_error(Code::InvalidArg);
    assert_eq!(error.message(), found().one_line());
    assert_eq!(error.with_causes(), found().one_line(), "said once");
    let outer = Error::internal(format!("failed to load: {error}")).with_source(error);
    assert_eq!(Diagnostic::of(&outer), Some(&found()));
    assert_eq!(Diagnostic::of(&Error::internal("odd")), None);
}
