//! The view on a terminal: handles looks at the server, keys and signals together.

use std::{io, thread};

use crossterm::event::{self, Event, KeyEventKind};
use rustix::process::{Signal, kill_current_process_group};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task,
    time::{self, MissedTickBehavior},
};

use super::{
    observer::Observer,
    options::TopOptions,
    row::Observation,
    screen::Screen,
    view::{Command, View},
};
use crate::error::CommandError;

/// Most keys that wait.
const MOST_EVENTS: usize = 64;

/// Runs until a key or a signal ends it.
pub(super) async fn watch(
    observer: Observer,
    options: &TopOptions,
    has_color: bool,
) -> Result<(), CommandError> {
    let mut view = View::new(observer.url(), options);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut resumed = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    let mut screen = Screen::take(has_color)?;
    let mut events = events();
    let mut looks = looks(observer, &view);
    loop {
        screen.show(&mut view)?;
        let command = tokio::select! {
            Some(seen) = looks.recv() => {
                view.take(seen);
                Command::Draw
            }
            event = events.recv() => match event {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => view.key(key),
                // Drawing checks the size of the window.
                Some(_) => Command::Draw,
                // The terminal is gone.
                None => Command::Quit,
            },
            _ = resumed.recv() => {
                screen.enter()?;
                Command::Draw
            }
            _ = terminate.recv() => Command::Quit,
            _ = interrupt.recv() => Command::Quit,
            _ = hang_up.recv() => Command::Quit,
        };
        match command {
            Command::Draw => {}
            Command::Redraw => screen.enter()?,
            Command::Quit => return Ok(()),
            Command::Suspend => {
                screen.leave();
                // Returns when the program continues; at once if no shell could continue it.
                kill_current_process_group(Signal::TSTP).map_err(io::Error::from)?;
                screen.enter()?;
            }
        }
    }
}

/// Reads keys and changes of the window in a thread of their own.
fn events() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(MOST_EVENTS);
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Observes the server in a task of its own, so that keys need not wait for it.
fn looks(mut observer: Observer, view: &View) -> mpsc::Receiver<Result<Observation, String>> {
    let (sender, receiver) = mpsc::channel(1);
    let mut ticks = time::interval(view.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    task::spawn_local(async move {
        loop {
            ticks.tick().await;
            let seen = observer.look().await.map_err(|error| error.to_string());
            if sender.send(seen).await.is_err() {
                return;
            }
        }
    });
    receiver
}
