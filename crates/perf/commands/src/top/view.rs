//! The content of the screen, and the effects of keys on it.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    columns::Column,
    options::TopOptions,
    page::ModelKey,
    row::{Observation, Row},
};

/// The longest filter.
const LONGEST_FILTER: usize = 100;

/// The content of the screen.
pub(crate) struct View {
    pub url: String,
    pub since: Instant,
    pub observation: Option<Observation>,
    /// The reason and the number of attempts, while the server does not answer.
    pub away: Option<(String, u64)>,
    pub sort: Column,
    pub is_reversed: bool,
    pub filter: String,
    pub is_typing_filter: bool,
    pub is_paused: bool,
    pub page: ViewPage,
    /// Index of the selected row among those shown.
    pub selected: usize,
    /// Number of lines of a text page above the window.
    pub scrolled: usize,
    /// Number of rows that fit, from the last drawing.
    pub room: usize,
    pub interval: Duration,
}

/// The page of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewPage {
    Models,
    Model(ModelKey),
    Help,
}

/// An action that a key asks for, besides a change of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Draw,
    Redraw,
    Quit,
    Suspend,
}

impl View {
    pub fn new(url: String, options: &TopOptions) -> Self {
        Self {
            url,
            since: Instant::now(),
            observation: None,
            away: None,
            sort: options.sort,
            is_reversed: false,
            filter: options.filter.clone(),
            is_typing_filter: false,
            is_paused: false,
            page: ViewPage::Models,
            selected: 0,
            scrolled: 0,
            room: 1,
            interval: Duration::from_secs_f64(options.interval),
        }
    }

    /// Stores an observation.
    pub fn take(&mut self, seen: Result<Observation, String>) {
        match seen {
            Ok(observation) => {
                self.away = None;
                if !self.is_paused || self.observation.is_none() {
                    self.observation = Some(observation);
                }
            }
            Err(reason) => {
                let tries = self.away.as_ref().map_or(0, |(_, tries)| *tries);
                self.away = Some((reason, tries + 1));
            }
        }
        self.selected = self.selected.min(self.rows().len().saturating_sub(1));
    }

    /// Returns the rows that the filter keeps, sorted.
    pub fn rows(&self) -> Vec<&Row> {
        let observation = self.observation.as_ref();
        shown(observation.map_or(&[], |seen| &seen.rows), &self.filter, self.sort, self.is_reversed)
    }

    pub fn key(&mut self, key: KeyEvent) -> Command {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Command::Quit,
            KeyCode::Char('z') if is_control => return Command::Suspend,
            KeyCode::Char('l') if is_control => return Command::Redraw,
            _ if is_control => {}
            code if self.is_typing_filter => self.filter_key(code),
            code => return self.plain_key(code),
        }
        Command::Draw
    }

    fn filter_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing_filter = false,
            KeyCode::Esc => {
                self.is_typing_filter = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if self.filter.len() < LONGEST_FILTER => self.filter.push(c),
            _ => {}
        }
        self.selected = 0;
    }

    fn plain_key(&mut self, code: KeyCode) -> Command {
        let before = self.page.clone();
        let command = self.page_key(code);
        if self.page != before {
            self.scrolled = 0;
        }
        command
    }

    fn page_key(&mut self, code: KeyCode) -> Command {
        match code {
            KeyCode::Char('q') if self.page == ViewPage::Models => return Command::Quit,
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Backspace => self.page = ViewPage::Models,
            KeyCode::Char('h' | '?') if self.page == ViewPage::Help => self.page = ViewPage::Models,
            KeyCode::Char('h' | '?') => self.page = ViewPage::Help,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Enter => self.enter(),
            KeyCode::Char('/') => {
                self.is_typing_filter = true;
                self.page = ViewPage::Models;
            }
            KeyCode::Char('s' | '>' | '.') | KeyCode::Right => self.sort_by(1),
            KeyCode::Char('<' | ',') | KeyCode::Left => self.sort_by(-1),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            code => self.move_to(code),
        }
        Command::Draw
    }

    fn enter(&mut self) {
        let selected = self.rows().get(self.selected).map(|row| row.key.clone());
        self.page = match (&self.page, selected) {
            (ViewPage::Models, Some(key)) => ViewPage::Model(key),
            _ => ViewPage::Models,
        };
    }

    fn sort_by(&mut self, step: isize) {
        let count = Column::ALL.len() as isize;
        let at = Column::ALL.iter().position(|column| *column == self.sort).unwrap_or_default();
        let next = (at as isize + step).rem_euclid(count) as usize;
        self.sort = Column::ALL.get(next).copied().unwrap_or(self.sort);
    }

    fn move_to(&mut self, code: KeyCode) {
        let is_table = self.page == ViewPage::Models;
        // The length of a text is known only when it is drawn.
        let last = if is_table { self.rows().len().saturating_sub(1) } else { usize::MAX };
        let from = if is_table { self.selected } else { self.scrolled };
        let to = match code {
            KeyCode::Up | KeyCode::Char('k') => from.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => from.saturating_add(1),
            KeyCode::PageUp => from.saturating_sub(self.room),
            KeyCode::PageDown => from.saturating_add(self.room),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => from,
        };
        *(if is_table { &mut self.selected } else { &mut self.scrolled }) = to.min(last);
    }
}

/// Returns the rows with this text in their name, in any case, sorted.
pub(crate) fn shown<'a>(
    rows: &'a [Row],
    filter: &str,
    sort: Column,
    is_reversed: bool,
) -> Vec<&'a Row> {
    let filter = filter.to_lowercase();
    let fits = |row: &&Row| row.key.name.to_lowercase().contains(&filter);
    let mut shown: Vec<&Row> = rows.iter().filter(fits).collect();
    sort.sort(&mut shown, is_reversed);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let mut view = View::new("u".to_owned(), &TopOptions::default());
        let row = |name: &str| Row {
            key: ModelKey { name: name.to_owned(), version: "1".to_owned() },
            ..Row::default()
        };
        let rows = ["b", "a", "Cat"].map(row).to_vec();
        view.take(Ok(Observation { rows, ..Observation::default() }));
        view
    }

    fn press(view: &mut View, codes: impl IntoIterator<Item = KeyCode>) -> Command {
        codes.into_iter().map(|code| view.key(code.into())).last().expect("a key")
    }

    fn names(view: &View) -> Vec<&str> {
        view.rows().iter().map(|row| row.key.name.as_str()).collect()
    }

    #[test]
    fn keys_sort_filter_and_move() {
        let mut view = view();
        assert_eq!(names(&view), ["Cat", "a", "b"]);
        press(&mut view, [KeyCode::Char('r')]);
        assert_eq!(names(&view), ["b", "a", "Cat"]);
        press(&mut view, [KeyCode::Char('>')]);
        assert_eq!(view.sort, Column::Failed);
        press(&mut view, [KeyCode::Left, KeyCode::Left]);
        assert_eq!(view.sort, Column::State);
        press(&mut view, [KeyCode::End, KeyCode::Down]);
        assert_eq!(view.selected, 2);
        press(&mut view, "/cA".chars().map(KeyCode::Char));
        assert_eq!((names(&view), view.selected), (vec!["Cat"], 0));
        press(&mut view, [KeyCode::Enter, KeyCode::Enter]);
        assert!(matches!(&view.page, ViewPage::Model(key) if key.name == "Cat"));
        assert_eq!(press(&mut view, [KeyCode::Char('q')]), Command::Draw);
        assert_eq!(press(&mut view, [KeyCode::Char('q')]), Command::Quit);
    }

    #[test]
    fn control_keys_work_in_every_mode() {
        let mut view = view();
        press(&mut view, [KeyCode::Char('/')]);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(view.key(control('z')), Command::Suspend);
        assert_eq!(view.key(control('c')), Command::Quit);
    }

    #[test]
    fn a_paused_view_stays_and_failed_polls_are_counted() {
        let mut view = view();
        press(&mut view, [KeyCode::Char('p')]);
        view.take(Ok(Observation::default()));
        assert_eq!(view.rows().len(), 3);
        view.take(Err("gone".to_owned()));
        view.take(Err("gone".to_owned()));
        assert_eq!(view.away, Some(("gone".to_owned(), 2)));
        press(&mut view, [KeyCode::Char('p')]);
        view.take(Ok(Observation::default()));
        assert!(view.rows().is_empty() && view.away.is_none());
    }
}
