//! The terminal: taken over whole, and given back as it was however the program ends.

use std::{
    io::{self, Stdout},
    panic,
    sync::Once,
};

use crossterm::{
    cursor::{Hide, Show},
    execute,
    terminal::{
        self, BeginSynchronizedUpdate, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
        EnterAlternateScreen, LeaveAlternateScreen,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend, layout::Rect};

use super::{draw, view::View};

/// The terminal while it is ours.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    has_color: bool,
}

impl Screen {
    pub fn take(has_color: bool) -> io::Result<Self> {
        restore_on_panic();
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let mut screen = Self { terminal, has_color };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal over, again after the program was stopped.
    pub fn enter(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        // Clears the window; `Terminal::clear` would ask the terminal where its cursor is, and take the answer from the keys.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    pub fn leave(&mut self) {
        restore();
    }

    /// Draws what has changed, and everything where the window has another size.
    pub fn show(&mut self, view: &mut View) -> io::Result<()> {
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        let has_color = self.has_color;
        self.terminal.draw(|frame| {
            draw::draw(view, frame);
            if !has_color {
                draw::remove_colors(frame.buffer_mut());
            }
        })?;
        execute!(io::stdout(), EndSynchronizedUpdate)
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
