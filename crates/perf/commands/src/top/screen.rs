//! The terminal in full-screen mode, restored however the program ends.

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

/// The terminal in full-screen mode.
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

    /// Enters full-screen mode, also after the program was suspended.
    pub fn enter(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        // Clears the window. `Terminal::clear` would ask the terminal for its cursor, and read the answer from the keys.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    pub fn leave(&mut self) {
        restore();
    }

    /// Draws the changes, or everything if the window has another size.
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

/// Restores the terminal. Errors are ignored: the terminal is gone.
fn restore() {
    let _ =
        execute!(io::stdout(), EndSynchronizedUpdate, EnableLineWrap, Show, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}

/// Restores the terminal before a panic message, which would be lost with the screen.
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
