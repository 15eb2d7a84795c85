//! Output to people and programs.

use std::fmt::Display;
use std::io::Write;

use serde::Serialize;

/// Prints text. A reader that has gone away (`| head`) is no error.
pub fn print(text: &impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints one JSON object on a line.
pub fn print_json(object: &impl Serialize) {
    match serde_json::to_string(object) {
        Ok(line) => print(&line),
        Err(error) => complain(&error),
    }
}

/// Says on standard error what is wrong.
pub fn complain(what: &impl Display) {
    let _ = writeln!(std::io::stderr(), "rota: {what}");
}

/// Says on standard error how it goes.
pub fn tell(what: &impl Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}
