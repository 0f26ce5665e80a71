//! The lines of the view for a window of a certain size.

use super::{
    columns::{Column, amount, bytes},
    detail,
    row::{Observation, Row},
    screen::{Line, Style, columns, fitted},
    view::{View, ViewPage},
};
use crate::printing;

/// Most lines that say what is missing.
const MOST_NOTES: usize = 3;

/// The lines, one for each of the window.
pub(crate) fn lines(view: &mut View, width: usize, height: usize) -> Vec<Line> {
    let mut lines = head(view, width);
    let foot = foot(view, width);
    let room = height.saturating_sub(lines.len() + foot.len());
    let body = match &view.page {
        ViewPage::Models => table(view, width, room),
        ViewPage::Model(key) => {
            let row =
                view.observation.iter().flat_map(|seen| &seen.rows).find(|row| row.key == *key);
            detail::lines(key, row, width)
        }
        ViewPage::Help => help(),
    };
    view.room = room.saturating_sub(1).max(1);
    if view.page != ViewPage::Models {
        view.scrolled = view.scrolled.min(body.len().saturating_sub(room));
    }
    lines.extend(body.into_iter().skip(view.scrolled).take(room));
    lines.resize(height.saturating_sub(foot.len()), Line::default());
    lines.extend(foot);
    lines.truncate(height);
    lines
}

fn head(view: &View, width: usize) -> Vec<Line> {
    let mut lines = vec![title(view)];
    match &view.away {
        Some((reason, tries)) => {
            let times = if *tries == 1 { "try" } else { "tries" };
            let text = format!("AWAY, {tries} {times}: {}", printing::line(reason));
            lines.extend(
                wrapped(&text, width, 3).into_iter().map(|text| Line::new(Style::Bad, text)),
            );
        }
        None if view.observation.is_none() => lines.push(Line::new(Style::Dim, "Connecting…")),
        None => {}
    }
    if let Some(observation) = &view.observation {
        lines.extend(machine(observation));
        lines.push(summary(view, observation));
    }
    lines
}

#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
fn title(view: &View) -> Line {
    let mut line = Line::new(Style::Bold, "galatea top ");
    line = line.and(Style::Plain, printing::line(&view.url));
    if view.away.is_none()
        && let Some(observation) = &view.observation
    {
        line = match observation.is_ready {
            Some(true) => line.and(Style::Good, " READY"),
            Some(false) => line.and(Style::Warning, " NOT READY"),
            None => line,
        };
        line = line.and(Style::Plain, format!(" {}", printing::line(&observation.server)));
    }
    let seconds = view.since.elapsed().as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    line.and(Style::Dim, format!(" watched {hours}:{minutes:02}:{seconds:02}"))
}

/// Processor, memory, GPUs, as far as they are known.
fn machine(observation: &Observation) -> Vec<Line> {
    let machine = &observation.machine;
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    let of = |used: Option<f64>, total: Option<f64>| match (used, total) {
        (Some(used), Some(total)) => Some(format!("{} of {}", bytes(used), bytes(total))),
        (Some(used), None) => Some(bytes(used)),
        _ => None,
    };
    let mut lines = Vec::new();
    let mut parts: Vec<String> =
        machine.cpu.map(|cpu| format!("CPU {}", percent(cpu))).into_iter().collect();
    parts
        .extend(of(machine.memory_used, machine.memory_total).map(|text| format!("memory {text}")));
    if !parts.is_empty() {
        lines.push(Line::new(Style::Plain, parts.join("  ")));
    }
    // More would leave no room for models.
    for (uuid, gpu) in machine.gpus.iter().take(8) {
        let mut parts =
            vec![format!("GPU {}", printing::line(uuid).chars().take(12).collect::<String>())];
        parts.extend(gpu.utilization.map(percent));
        parts.extend(of(gpu.memory_used, gpu.memory_total));
        parts.extend(gpu.power_watts.map(|watts| format!("{watts:.0} W")));
        lines.push(Line::new(Style::Plain, parts.join("  ")));
    }
    lines
}

fn summary(view: &View, observation: &Observation) -> Line {
    let rows = &observation.rows;
    let sum = |number: fn(&Row) -> Option<f64>| rows.iter().filter_map(number).sum::<f64>();
    let ready = rows.iter().filter(|row| row.is_ready()).count();
    let models = if rows.len() == 1 { "model" } else { "models" };
    let mut line = Line::new(Style::Plain, format!("{} {models}, {ready} ready", rows.len()));
    match observation.seconds {
        Some(_) => {
            line = line.and(Style::Plain, format!("  {} req/s", amount(sum(Row::requests), 1)));
            let failed = sum(Row::failed);
            let style = if failed > 0.0 { Style::Bad } else { Style::Plain };
            line = line.and(style, format!("  {} failed/s", amount(failed, 1)));
            line = line.and(Style::Plain, format!("  {} inf/s", amount(sum(Row::inferences), 1)));
        }
        None => line = line.and(Style::Dim, "  measuring…"),
    }
    if view.is_paused {
        line = line.and(Style::Warning, "  PAUSED");
    }
    line
}

fn table(view: &View, width: usize, room: usize) -> Vec<Line> {
    if view.observation.is_none() || room == 0 {
        return Vec::new();
    }
    let rows = view.rows();
    let fitting = Column::fitting(width, &rows, view.sort);
    let mut lines = vec![heads(view, &fitting, width)];
    if rows.is_empty() {
        let text = match view.filter.is_empty() {
            true => "The server has no models.",
            false => "No model has the filter's text in its name.",
        };
        lines.push(Line::new(Style::Dim, text));
    }
    // The selected row is in sight, and the window full where there are enough rows.
    let room = room.saturating_sub(1).max(1);
    let first = (view.selected / room * room).min(rows.len().saturating_sub(room));
    let visible = rows.iter().enumerate().skip(first).take(room);
    lines.extend(visible.map(|(at, row)| row_line(row, &fitting, at == view.selected, width)));
    lines
}

fn heads(view: &View, fitting: &[(Column, usize)], width: usize) -> Line {
    let head = |&(column, wide): &(Column, usize)| {
        let mark = match (column == view.sort, view.is_reversed) {
            (true, false) => "▼",
            (true, true) => "▲",
            (false, _) => "",
        };
        padded(&fitted(&format!("{}{mark}", column.head()), wide), wide, column.is_text())
    };
    let text = fitting.iter().map(head).collect::<Vec<_>>().join(" ");
    Line::new(Style::Reverse, padded(&text, width, true))
}

fn row_line(row: &Row, fitting: &[(Column, usize)], is_selected: bool, width: usize) -> Line {
    let cells = fitting.iter().map(|&(column, wide)| {
        let style = match column {
            Column::State if row.state == "UNAVAILABLE" => Style::Bad,
            Column::State if !row.is_ready() => Style::Warning,
            Column::Failed if row.failed().is_some_and(|failed| failed > 0.0) => Style::Bad,
            _ if row.total.is_none() => Style::Dim,
            _ => Style::Plain,
        };
        (style, padded(&fitted(&column.cell(row), wide), wide, column.is_text()))
    });
    let cells: Vec<(Style, String)> = cells.collect();
    if is_selected {
        let text = cells.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
        return Line::new(Style::Reverse, padded(&text, width, true));
    }
    let mut line = Line::default();
    for (style, text) in cells {
        let blank = if line.parts.is_empty() { "" } else { " " };
        line = line.and(style, format!("{blank}{text}"));
    }
    line
}

fn padded(text: &str, width: usize, is_left: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(columns(text)));
    if is_left { format!("{text}{blanks}") } else { format!("{blanks}{text}") }
}

fn foot(view: &View, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if view.page == ViewPage::Models && view.away.is_none() {
        for note in view.observation.iter().flat_map(|seen| &seen.notes).take(MOST_NOTES) {
            let text = printing::line(note);
            lines.extend(wrapped(&text, width, 2).into_iter().map(|t| Line::new(Style::Dim, t)));
        }
    }
    lines.push(match view.is_typing_filter {
        true => Line::new(Style::Bold, format!("filter: {}_", printing::line(&view.filter)))
            .and(Style::Dim, "  Enter keeps it, Esc ends it"),
        false if !view.filter.is_empty() => {
            Line::new(Style::Bold, format!("filter: {}", printing::line(&view.filter)))
                .and(Style::Dim, "  / changes it")
        }
        false if view.page == ViewPage::Models => {
            Line::new(Style::Dim, "q quit  h help  Enter detail  s sort  / filter  p pause")
        }
        false => Line::new(Style::Dim, "q back  up, down scroll"),
    });
    lines
}

/// Broken at blanks into so many lines at most.
pub(super) fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let full = lines.len() == most;
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() || columns(line) + 1 + columns(word) <= width {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        } else if full {
            let rest: Vec<&str> = std::iter::once(word).chain(words).collect();
            line.push_str(&format!(" {}", rest.join(" ")));
            break;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn help() -> Vec<Line> {
    let keys = [
        ("q, Ctrl-C", "quit; in this page and a model's, back"),
        ("up, down, j, k", "select a model; also PgUp, PgDn, Home, End"),
        ("Enter", "the selected model in detail"),
        ("s, <, >", "sort by another column"),
        ("r", "the other way round"),
        ("/", "show only names with a text in them"),
        ("p", "pause"),
        ("Ctrl-L", "draw again"),
    ];
    let mut lines = vec![Line::new(Style::Bold, "Keys")];
    let line = |name: &str, text: &str| Line::new(Style::Plain, format!("  {name:<15}{text}"));
    lines.extend(keys.iter().map(|(name, text)| line(name, text)));
    lines.push(Line::new(Style::Bold, "Columns"));
    lines.extend(Column::ALL.iter().map(|column| line(column.head(), column.meaning())));
    lines
}

#[cfg(test)]
mod tests {
    use super::{super::page::ModelKey, *};
    use crate::top::options::TopOptions;

    fn text(lines: &[Line]) -> Vec<String> {
        let parts = |line: &Line| line.parts.iter().map(|(_, text)| text.as_str()).collect();
        lines.iter().map(parts).collect()
    }

    fn view(count: usize) -> View {
        let mut view = View::new("http://h:8000".to_owned(), &TopOptions::default());
        let row = |at: usize| Row {
            key: ModelKey { name: format!("model\x1b[2J{at:03}"), version: "1".to_owned() },
            state: "READY".to_owned(),
            ..Row::default()
        };
        let rows = (0..count).map(row).collect();
        let notes = vec!["no \x1b metrics".to_owned()];
        view.take(Ok(Observation { rows, notes, ..Observation::default() }));
        view
    }

    #[test]
    fn every_window_is_filled_and_nothing_commands_the_terminal() {
        for page in [ViewPage::Models, ViewPage::Help, ViewPage::Model(ModelKey::default())] {
            for (width, height) in [(120, 40), (80, 24), (40, 15), (10, 3), (1, 1), (0, 0)] {
                let mut view = view(100);
                view.page = page.clone();
                let lines = lines(&mut view, width, height);
                assert_eq!(lines.len(), height);
                assert!(text(&lines).iter().all(|line| !line.chars().any(char::is_control)));
            }
        }
    }

    #[test]
    fn the_selected_row_is_in_sight() {
        for selected in [0, 7, 50, 99] {
            let mut view = view(100);
            view.selected = selected;
            let lines = text(&lines(&mut view, 80, 24));
            assert!(
                lines.iter().any(|line| line.contains(&format!("{selected:03}"))),
                "{lines:#?}"
            );
            assert!(lines.last().is_some_and(|line| line.starts_with("q quit")));
        }
    }

    #[test]
    fn texts_that_are_longer_than_the_window_scroll_to_their_end() {
        use crossterm::event::KeyCode;
        let mut view = view(1);
        view.key(KeyCode::Char('h').into());
        view.key(KeyCode::End.into());
        assert!(text(&lines(&mut view, 80, 24)).iter().any(|line| line.contains("BUSY")));
        view.key(KeyCode::Up.into());
        assert!(!text(&lines(&mut view, 80, 24)).iter().any(|line| line.contains("BUSY")));
        view.key(KeyCode::Char('q').into());
        assert_eq!(view.scrolled, 0);
    }

    #[test]
    fn an_absent_server_is_told_over_the_last_figures() {
        let mut view = view(2);
        view.take(Err("refused".to_owned()));
        let lines = text(&lines(&mut view, 80, 24));
        assert_eq!(lines[1], "AWAY, 1 try: refused");
        assert!(lines.iter().any(|line| line.contains("[2J001")));
    }

    #[test]
    fn texts_are_broken_at_blanks() {
        assert_eq!(wrapped("aa bb cc dd", 5, 2), ["aa bb", "cc dd"]);
        assert_eq!(wrapped("aa bb cc dd", 5, 1), ["aa bb cc dd"]);
        assert_eq!(wrapped("aaaaaaa b", 5, 3), ["aaaaaaa", "b"]);
    }
}
