//! The terminal: taken over whole, drawn on without flicker, and given back as it was however the program ends.

use std::{
    io::{self, Stdout, Write},
    panic,
    sync::Once,
};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    execute, queue,
    style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor},
    terminal::{
        self, BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap,
        EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    },
};
use unicode_width::UnicodeWidthChar;

/// How a text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Reverse,
    Good,
    Warning,
    Bad,
}

/// A line, of texts without control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub parts: Vec<(Style, String)>,
}

impl Line {
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self { parts: vec![(style, text.into())] }
    }

    pub fn and(mut self, style: Style, text: impl Into<String>) -> Self {
        self.parts.push((style, text.into()));
        self
    }

    /// Cut where the window ends.
    fn cut(&self, width: usize) -> Self {
        let mut left = width;
        let mut parts = Vec::new();
        for (style, text) in &self.parts {
            let text = fitted(text, left);
            left -= columns(&text);
            parts.push((*style, text));
        }
        Self { parts }
    }
}

/// How many columns of a terminal the text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or_default()).sum()
}

/// As much of the text as has room, with `…` where something is missing.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(c.width().unwrap_or_default()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut shown: String = text.chars().take_while(fits).collect();
    if width > 0 {
        shown.push('…');
    }
    shown
}

/// The terminal while it is ours.
pub(crate) struct Screen {
    out: Stdout,
    has_color: bool,
    width: u16,
    height: u16,
    shown: Vec<Line>,
}

impl Screen {
    pub fn take(has_color: bool) -> io::Result<Self> {
        restore_on_panic();
        let (width, height) = terminal::size()?;
        let mut screen = Self { out: io::stdout(), has_color, width, height, shown: Vec::new() };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal over, again after the program was stopped.
    pub fn enter(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        execute!(self.out, EnterAlternateScreen, Hide, DisableLineWrap)?;
        let (width, height) = terminal::size()?;
        self.resize(width, height)
    }

    pub fn leave(&mut self) {
        restore();
    }

    pub fn size(&self) -> (usize, usize) {
        (usize::from(self.width), usize::from(self.height))
    }

    /// Everything is drawn anew.
    pub fn resize(&mut self, width: u16, height: u16) -> io::Result<()> {
        (self.width, self.height) = (width, height);
        self.shown.clear();
        execute!(self.out, Clear(ClearType::All))
    }

    /// Draws the lines that have changed.
    pub fn show(&mut self, lines: &[Line]) -> io::Result<()> {
        let lines = lines.iter().take(self.height.into()).map(|line| line.cut(self.width.into()));
        let lines: Vec<Line> = lines.collect();
        queue!(self.out, BeginSynchronizedUpdate)?;
        for (row, at) in (0..self.height).zip(0..) {
            let empty = Line::default();
            let line = lines.get(at).unwrap_or(&empty);
            if self.shown.get(at).unwrap_or(&empty) == line {
                continue;
            }
            queue!(self.out, MoveTo(0, row))?;
            for (style, text) in &line.parts {
                self.print(*style, text)?;
            }
            queue!(self.out, Clear(ClearType::UntilNewLine))?;
        }
        queue!(self.out, EndSynchronizedUpdate)?;
        self.shown = lines;
        self.out.flush()
    }

    fn print(&mut self, style: Style, text: &str) -> io::Result<()> {
        let attribute = match style {
            Style::Bold => Some(Attribute::Bold),
            Style::Dim => Some(Attribute::Dim),
            Style::Reverse => Some(Attribute::Reverse),
            Style::Bad if !self.has_color => Some(Attribute::Bold),
            _ => None,
        };
        let color = match style {
            Style::Good => Some(Color::DarkGreen),
            Style::Warning => Some(Color::DarkYellow),
            Style::Bad => Some(Color::DarkRed),
            _ => None,
        };
        if let Some(attribute) = attribute {
            queue!(self.out, SetAttribute(attribute))?;
        }
        match color.filter(|_| self.has_color) {
            Some(color) => queue!(self.out, SetForegroundColor(color), Print(text), ResetColor)?,
            None => queue!(self.out, Print(text))?,
        }
        if attribute.is_some() {
            queue!(self.out, SetAttribute(Attribute::Reset))?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Nothing can be done where the terminal is gone.
fn restore() {
    let _ =
        execute!(io::stdout(), EndSynchronizedUpdate, EnableLineWrap, Show, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}

/// The message would be lost with the screen that it is written on.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            print(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_columns() {
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted("模型模型", 5), "模型…");
        assert_eq!(fitted("模型", 2), "…");
        assert_eq!(fitted("abc", 0), "");
        let line = Line::new(Style::Bold, "abc").and(Style::Dim, "defg").cut(5);
        assert_eq!(line.parts, [(Style::Bold, "abc".to_owned()), (Style::Dim, "d…".to_owned())]);
    }
}
