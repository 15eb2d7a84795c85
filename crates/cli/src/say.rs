//! Output to people and programs.
//!
//! A reader that has gone away (`| head`) is no error: there is nobody who misses anything. A full disk is one: whoever
//! reads the file believes that it is all there was.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use serde::Serialize;

/// The reason why standard output takes nothing more: in words, or none if its reader has gone.
static OVER: OnceLock<Option<String>> = OnceLock::new();

/// Prints text; [`ended`] tells what comes of it.
pub fn print(text: &impl Display) {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        failed(&error);
    }
}

/// Standard output does not take what was written.
pub fn failed(error: &io::Error) {
    let words = (error.kind() != ErrorKind::BrokenPipe).then(|| error.to_string());
    // Only the first failure says why.
    let _ = OVER.set(words);
}

/// Whether standard output takes nothing more: its reader has gone, or its disk is full.
pub fn is_over() -> bool {
    OVER.get().is_some()
}

/// The exit status of a command that would have had this one: 1 if its output was lost, and it says so.
pub fn ended(code: ExitCode) -> ExitCode {
    let Some(Some(words)) = OVER.get() else {
        return code;
    };
    complain(&format!("standard output: {words}: some of it is lost"));
    ExitCode::FAILURE
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
    let _ = writeln!(io::stderr(), "rota: {what}");
}

/// Says on standard error how it goes.
pub fn tell(what: &impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}
