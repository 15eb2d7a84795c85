//! The lives of a node, as its trace tells them.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use rota_net::monotonic;
use serde_json::{Value, json};

/// Writes the last line of a trace for a process that could not.
pub fn note_crash(trace: &Path, node: u16) {
    let incarnation = incarnation(trace);
    let t = monotonic().0;
    let mut file = File::options().append(true).open(trace).expect("its trace");
    // The last line may have been cut off.
    let crash = json!({ "t": t, "node": node, "inc": incarnation, "ev": "crash" });
    let text = fs::read(trace).expect("its trace");
    let start = if text.ends_with(b"\n") { "" } else { "\n" };
    file.write_all(format!("{start}{crash}\n").as_bytes())
        .expect("room");
}

/// The latest incarnation of a node: it may have said nothing yet.
pub fn incarnation(trace: &Path) -> u64 {
    let trace = fs::read_to_string(trace).expect("a trace");
    let mut starts = trace
        .lines()
        .rev()
        .filter(|line| line.contains("\"start\""));
    let start: Value = serde_json::from_str(starts.next().expect("a start")).expect("JSON");
    start["inc"].as_u64().expect("a number")
}
