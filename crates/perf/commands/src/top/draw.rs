//! Draws the view for a window of any size.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Constraint, Rect},
    style::{Color, Modifier, Style, Stylize},
    text::{Line, Span, Text},
    widgets::{self, Table},
};

use super::{
    colors::{BAD, GOOD, WARNING},
    columns::{Column, amount, bytes},
    detail,
    row::{Observation, Row},
    view::{View, ViewPage},
};
use crate::printing::{self, columns, fitted};

/// Most lines of notes about missing figures.
const MOST_NOTES: usize = 3;

/// Draws the view. A window that is too low shows the last lines.
pub(crate) fn draw(view: &mut View, frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let (head, foot) = (head(view, width), foot(view, width));
    let below = height.saturating_sub(foot.len());
    let above = head.len().min(below);
    let room = below - above;
    let rows = |from: usize, to: usize| Rect::new(0, from as u16, area.width, (to - from) as u16);
    view.room = room.saturating_sub(1).max(1);
    let text = match &view.page {
        ViewPage::Models => None,
        ViewPage::Model(key) => {
            let row =
                view.observation.iter().flat_map(|seen| &seen.rows).find(|row| row.key == *key);
            Some(detail::lines(key, row, width))
        }
        ViewPage::Help => Some(help()),
    };
    match text {
        Some(lines) => {
            view.scrolled = view.scrolled.min(lines.len().saturating_sub(room));
            let lines = lines.into_iter().skip(view.scrolled);
            frame.render_widget(cut(lines, width), rows(above, below));
        }
        None if view.observation.is_some() && room > 0 => {
            frame.render_widget(table(view, width, room), rows(above, below));
            if view.rows().is_empty() && room > 1 {
                let text = match view.filter.is_empty() {
                    true => "The server has no models.",
                    false => "No model has the filter's text in its name.",
                };
                frame.render_widget(cut([Line::from(text.dim())], width), rows(above + 1, below));
            }
        }
        None => {}
    }
    frame.render_widget(cut(head, width), rows(0, above));
    frame.render_widget(cut(foot, width), rows(below, height));
}

/// Removes colours for terminals without them; failures become bold.
pub(crate) fn remove_colors(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.fg == BAD {
            cell.modifier |= Modifier::BOLD;
        }
        cell.fg = Color::Reset;
    }
}

/// Returns the lines, with `…` where the window ends before them.
fn cut(lines: impl IntoIterator<Item = Line<'static>>, width: usize) -> Text<'static> {
    let cut = |line: Line<'static>| {
        let mut left = width;
        let spans = line.spans.into_iter().map(|span| {
            let text = fitted(&span.content, left);
            left -= columns(&text);
            Span::styled(text, span.style)
        });
        spans.collect::<Line<'_>>()
    };
    lines.into_iter().map(cut).collect()
}

fn head(view: &View, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(view)];
    match &view.away {
        Some((reason, tries)) => {
            let times = if *tries == 1 { "try" } else { "tries" };
            let text = format!("AWAY, {tries} {times}: {}", printing::line(reason));
            lines.extend(wrapped(&text, width, 3).into_iter().map(|text| text.fg(BAD).into()));
        }
        None if view.observation.is_none() => lines.push("Connecting…".dim().into()),
        None => {}
    }
    if let Some(observation) = &view.observation {
        lines.extend(machine(observation));
        lines.push(summary(view, observation));
    }
    lines
}

#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
fn title(view: &View) -> Line<'static> {
    let mut line = Line::from(vec!["galatea top ".bold(), printing::line(&view.url).into()]);
    if let Some(seen) = view.observation.as_ref().filter(|_| view.away.is_none()) {
        line.extend(seen.is_ready.map(|is_ready| match is_ready {
            true => " READY".fg(GOOD),
            false => " NOT READY".fg(WARNING),
        }));
        line.push_span(format!(" {}", printing::line(&seen.server)));
    }
    let seconds = view.since.elapsed().as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    line.push_span(format!(" watched {hours}:{minutes:02}:{seconds:02}").dim());
    line
}

/// Returns lines for processor, memory and GPUs, as far as they are known.
fn machine(observation: &Observation) -> Vec<Line<'static>> {
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
        lines.push(parts.join("  ").into());
    }
    // More GPUs would leave no room for models.
    for (uuid, gpu) in machine.gpus.iter().take(8) {
        let mut parts =
            vec![format!("GPU {}", printing::line(uuid).chars().take(12).collect::<String>())];
        parts.extend(gpu.utilization.map(percent));
        parts.extend(of(gpu.memory_used, gpu.memory_total));
        parts.extend(gpu.power_watts.map(|watts| format!("{watts:.0} W")));
        lines.push(parts.join("  ").into());
    }
    lines
}

fn summary(view: &View, observation: &Observation) -> Line<'static> {
    let rows = &observation.rows;
    let sum = |number: fn(&Row) -> Option<f64>| rows.iter().filter_map(number).sum::<f64>();
    let ready = rows.iter().filter(|row| row.is_ready()).count();
    let models = if rows.len() == 1 { "model" } else { "models" };
    let mut line = Line::from(format!("{} {models}, {ready} ready", rows.len()));
    match observation.seconds {
        Some(_) => {
            line.push_span(format!("  {} req/s", amount(sum(Row::requests), 1)));
            let failed = sum(Row::failed);
            let color = if failed > 0.0 { BAD } else { Color::Reset };
            line.push_span(format!("  {} failed/s", amount(failed, 1)).fg(color));
            line.push_span(format!("  {} inf/s", amount(sum(Row::inferences), 1)));
        }
        None => line.push_span("  measuring…".dim()),
    }
    if view.is_paused {
        line.push_span("  PAUSED".fg(WARNING));
    }
    line
}

/// Returns the rows that fit. The selected one is visible, and the window is full if there are enough rows.
fn table(view: &View, width: usize, room: usize) -> Table<'static> {
    let rows = view.rows();
    let fitting = Column::fitting(width, &rows, view.sort);
    let cell = |text: &str, (column, wide): (Column, usize)| {
        let text = Text::from(fitted(text, wide));
        widgets::Cell::new(if column.is_text() { text } else { text.right_aligned() })
    };
    let heads = fitting.iter().map(|&(column, wide)| {
        let mark = match (column == view.sort, view.is_reversed) {
            (true, false) => "▼",
            (true, true) => "▲",
            (false, _) => "",
        };
        cell(&format!("{}{mark}", column.head()), (column, wide))
    });
    let room = room.saturating_sub(1).max(1);
    let first = (view.selected / room * room).min(rows.len().saturating_sub(room));
    let visible = rows.iter().enumerate().skip(first).take(room).map(|(at, row)| {
        let is_selected = at == view.selected;
        let cells = fitting.iter().map(|&(column, wide)| {
            let style = if is_selected { Style::new() } else { style(column, row) };
            cell(&column.cell(row), (column, wide)).style(style)
        });
        let line = widgets::Row::new(cells);
        if is_selected { line.reversed() } else { line }
    });
    let widths = fitting.iter().map(|&(_, wide)| Constraint::Length(wide as u16));
    Table::new(visible, widths).header(widgets::Row::new(heads).reversed())
}

fn style(column: Column, row: &Row) -> Style {
    match column {
        Column::State if row.state == "UNAVAILABLE" => Style::new().fg(BAD),
        Column::State if !row.is_ready() => Style::new().fg(WARNING),
        Column::Failed if row.failed().is_some_and(|failed| failed > 0.0) => Style::new().fg(BAD),
        _ if row.total.is_none() => Style::new().dim(),
        _ => Style::new(),
    }
}

fn foot(view: &View, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if view.page == ViewPage::Models && view.away.is_none() {
        for note in view.observation.iter().flat_map(|seen| &seen.notes).take(MOST_NOTES) {
            let text = printing::line(note);
            lines.extend(wrapped(&text, width, 2).into_iter().map(|text| text.dim().into()));
        }
    }
    let filter = |end: &str| format!("filter: {}{end}", printing::line(&view.filter)).bold();
    lines.push(match view.is_typing_filter {
        true => vec![filter("_"), "  Enter keeps it, Esc ends it".dim()].into(),
        false if !view.filter.is_empty() => vec![filter(""), "  / changes it".dim()].into(),
        false if view.page == ViewPage::Models => {
            "q quit  h help  Enter detail  s sort  / filter  p pause".dim().into()
        }
        false => "q back  up, down scroll".dim().into(),
    });
    lines
}

/// Wraps a text at blanks into at most `most` lines.
pub(super) fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let full = lines.len() == most;
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() || printing::columns(line) + 1 + printing::columns(word) <= width {
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

fn help() -> Vec<Line<'static>> {
    let keys = [
        ("q, Ctrl-C", "quit; in this page and a model's, back"),
        ("up, down, j, k", "select a model; also PgUp, PgDn, Home, End"),
        ("Enter", "the selected model in detail"),
        ("s, <, >", "sort by another column"),
        ("r", "reverse the order"),
        ("/", "show only names with a text in them"),
        ("p", "pause"),
        ("Ctrl-L", "draw again"),
    ];
    let mut lines = vec!["Keys".bold().into()];
    let line = |name: &str, text: &str| Line::from(format!("  {name:<15}{text}"));
    lines.extend(keys.iter().map(|(name, text)| line(name, text)));
    lines.push("Columns".bold().into());
    lines.extend(Column::ALL.iter().map(|column| line(column.head(), column.meaning())));
    lines
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend, buffer::Cell};

    use super::{super::page::ModelKey, *};
    use crate::top::{counters::Counters, options::TopOptions};

    /// The lines of a window of this size.
    fn drawn(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(view, frame)).expect("a picture");
        let cells = &terminal.backend().buffer().content;
        let line = |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>();
        cells.chunks(width.max(1).into()).map(|cells| line(cells).trim_end().to_owned()).collect()
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
    fn every_window_size_is_filled_without_terminal_commands() {
        for page in [ViewPage::Models, ViewPage::Help, ViewPage::Model(ModelKey::default())] {
            for (width, height) in [(120, 40), (80, 24), (40, 15), (10, 3), (1, 1), (0, 0)] {
                let mut view = view(100);
                view.page = page.clone();
                let lines = drawn(&mut view, width, height);
                assert!(lines.iter().all(|line| !line.chars().any(char::is_control)));
                assert!(height == 0 || lines.last().is_some_and(|line| !line.is_empty()));
            }
        }
    }

    #[test]
    fn the_models_are_a_table_below_the_totals() {
        let mut view = View::new("http://h:8000".to_owned(), &TopOptions::default());
        let recent = Counters { success: 30, fail: 2, inferences: 60, ..Counters::default() };
        let row = |name: &str, state: &str, recent: Option<(Counters, f64)>| Row {
            key: ModelKey { name: name.to_owned(), version: "1".to_owned() },
            state: state.to_owned(),
            total: recent.as_ref().map(|(counters, _)| counters.clone()),
            recent,
            ..Row::default()
        };
        let rows = vec![
            row("busy", "READY", Some((recent, 2.0))),
            row("a_name_that_is_longer_than_its_column", "UNAVAILABLE", None),
        ];
        let seen = Observation {
            rows,
            seconds: Some(2.0),
            is_ready: Some(true),
            ..Observation::default()
        };
        view.take(Ok(seen));
        let lines = drawn(&mut view, 60, 7);
        assert_eq!(lines[0], "galatea top http://h:8000 READY  watched 0:00:00");
        assert_eq!(
            lines[1..],
            [
                "2 models, 1 ready  16.0 req/s  1.0 failed/s  30.0 inf/s",
                "MODEL                STATE       REQ/S▼ FAIL/S  INF/S    AVG",
                "busy                 READY         16.0    1.0   30.0      0",
                "a_name_that_is_long… UNAVAILABLE      -      -      -      -",
                "",
                "q quit  h help  Enter detail  s sort  / filter  p pause",
            ]
        );
    }

    #[test]
    fn colours_mark_states_and_can_be_switched_off() {
        let mut view = view(1);
        view.take(Err("refused".to_owned()));
        let mut terminal = Terminal::new(TestBackend::new(40, 6)).expect("a terminal");
        terminal.draw(|frame| draw(&mut view, frame)).expect("a picture");
        let mut buffer = terminal.backend().buffer().clone();
        assert_eq!((buffer[(0, 1)].fg, buffer[(0, 1)].modifier), (BAD, Modifier::empty()));
        assert!(buffer[(0, 3)].modifier.contains(Modifier::REVERSED), "the heads");
        remove_colors(&mut buffer);
        assert_eq!((buffer[(0, 1)].fg, buffer[(0, 1)].modifier), (Color::Reset, Modifier::BOLD));
    }

    #[test]
    fn lines_are_cut_at_the_window_edge() {
        let cut = cut([Line::from(vec!["abc".bold(), "defg".dim()])], 5);
        assert_eq!(cut.lines[0].spans, ["abc".bold(), "d…".dim()]);
    }

    #[test]
    fn the_selected_row_stays_visible() {
        for selected in [0, 7, 50, 99] {
            let mut view = view(100);
            view.selected = selected;
            let lines = drawn(&mut view, 80, 24);
            assert!(
                lines.iter().any(|line| line.contains(&format!("{selected:03}"))),
                "{lines:#?}"
            );
            assert!(lines.last().is_some_and(|line| line.starts_with("q quit")));
        }
    }

    #[test]
    fn long_texts_scroll_to_their_end() {
        use crossterm::event::KeyCode;
        let mut view = view(1);
        view.key(KeyCode::Char('h').into());
        view.key(KeyCode::End.into());
        assert!(drawn(&mut view, 80, 24).iter().any(|line| line.contains("BUSY")));
        view.key(KeyCode::Up.into());
        assert!(!drawn(&mut view, 80, 24).iter().any(|line| line.contains("BUSY")));
        view.key(KeyCode::Char('q').into());
        assert_eq!(view.scrolled, 0);
    }

    #[test]
    fn an_unreachable_server_is_reported_above_the_last_values() {
        let mut view = view(2);
        view.take(Err("refused".to_owned()));
        let lines = drawn(&mut view, 80, 24);
        assert_eq!(lines[1], "AWAY, 1 try: refused");
        assert!(lines.iter().any(|line| line.contains("[2J001")));
    }

    #[test]
    fn texts_are_wrapped_at_spaces() {
        assert_eq!(wrapped("aa bb cc dd", 5, 2), ["aa bb", "cc dd"]);
        assert_eq!(wrapped("aa bb cc dd", 5, 1), ["aa bb cc dd"]);
        assert_eq!(wrapped("aaaaaaa b", 5, 3), ["aaaaaaa", "b"]);
    }
}
