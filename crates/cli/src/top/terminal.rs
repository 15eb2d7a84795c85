//! The terminal of `rota top`: keys, changes of its size, and its state before and after.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::answers;
use super::history::{History, Key};
use super::screen::{Look, draw};
use super::table::Interval;
use crate::ask::Place;
use crate::log::may_colour;

/// How long a key may wait to be looked at.
const KEYS: Duration = Duration::from_millis(50);

/// What a key asks for.
enum Asked {
    Quit,
    Key(Key),
    Nothing,
}

/// Shows what daemons do until it is told to end. The terminal is then as it was, also after a panic.
pub fn run(places: Vec<Place>, interval: Duration) -> io::Result<()> {
    let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    let mut history = History::new(places.len(), interval_ms);
    let pace = Arc::new(AtomicU64::new(interval_ms));
    let intervals = looks(places, Arc::clone(&pace))?;
    let look = Look {
        colours: may_colour(std::env::var_os("NO_COLOR")),
    };
    let mut terminal = ratatui::try_init()?;
    let shown = loop {
        if let Err(error) = terminal.draw(|frame| draw(frame, &history, look)) {
            break Err(error);
        }
        match next(&mut history, &intervals) {
            Ok(true) => pace.store(history.interval_ms, Ordering::Relaxed),
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    shown
}

/// Takes keys and intervals until there is something else to show; `false`: it is over.
fn next(history: &mut History, intervals: &Receiver<Interval>) -> io::Result<bool> {
    loop {
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    match asked(key.code, key.modifiers) {
                        Asked::Quit => return Ok(false),
                        Asked::Key(key) => {
                            history.press(key);
                            return Ok(true);
                        }
                        Asked::Nothing => {}
                    }
                }
                Event::Resize(..) => return Ok(true),
                _ => {}
            }
        }
        match intervals.recv_timeout(KEYS) {
            Ok(interval) => {
                history.take(interval);
                return Ok(true);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the daemons are not asked any more"));
            }
        }
    }
}

const fn asked(code: KeyCode, modifiers: KeyModifiers) -> Asked {
    match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Asked::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Asked::Quit,
        KeyCode::Char('p' | ' ') => Asked::Key(Key::Pause),
        KeyCode::Char('k') | KeyCode::Up => Asked::Key(Key::Up),
        KeyCode::Char('j') | KeyCode::Down => Asked::Key(Key::Down),
        KeyCode::Char('+' | '=') => Asked::Key(Key::Faster),
        KeyCode::Char('-') => Asked::Key(Key::Slower),
        KeyCode::Char('c') => Asked::Key(Key::Clear),
        _ => Asked::Nothing,
    }
}

/// Asks daemons in a thread of its own: one that does not answer keeps no key waiting.
fn looks(places: Vec<Place>, pace: Arc<AtomicU64>) -> io::Result<Receiver<Interval>> {
    let (sender, receiver) = mpsc::channel();
    let ask = move || ask_again(&places, &pace, &sender);
    let thread = thread::Builder::new().name("rota-top".to_owned());
    thread.spawn(ask)?;
    Ok(receiver)
}

fn ask_again(places: &[Place], pace: &AtomicU64, sender: &Sender<Interval>) {
    let mut before = answers(places);
    loop {
        thread::sleep(Duration::from_millis(pace.load(Ordering::Relaxed)));
        let after = answers(places);
        let interval = Interval::between(places, &before, &after);
        if sender.send(interval).is_err() {
            return;
        }
        before = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_what_the_first_line_says() {
        let plain = |code| asked(code, KeyModifiers::NONE);
        let key = |code| match plain(code) {
            Asked::Key(key) => Some(key),
            _ => None,
        };
        assert!(matches!(plain(KeyCode::Char('q')), Asked::Quit));
        assert!(matches!(plain(KeyCode::Esc), Asked::Quit));
        let control_c = asked(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(matches!(control_c, Asked::Quit));
        assert_eq!(key(KeyCode::Char('c')), Some(Key::Clear));
        assert_eq!(key(KeyCode::Char('p')), Some(Key::Pause));
        assert_eq!(key(KeyCode::Up), Some(Key::Up));
        assert_eq!(key(KeyCode::Down), Some(Key::Down));
        assert_eq!(key(KeyCode::Char('+')), Some(Key::Faster));
        assert_eq!(key(KeyCode::Char('-')), Some(Key::Slower));
        assert!(matches!(plain(KeyCode::Char('x')), Asked::Nothing));
    }
}
