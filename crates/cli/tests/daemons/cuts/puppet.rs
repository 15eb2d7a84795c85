//! Clients that do what a plan says, and say what they saw: one for each library.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::plan::Plan;
use crate::native::PATIENCE;

/// A message, by who sent it and its place among that one's.
pub type Heard = (String, u32);

/// What a client is told to do.
#[derive(Clone, Debug)]
pub struct Order {
    pub plan: Plan,
    pub address: String,
    /// The root, and a certificate with its key, as files.
    pub files: [String; 3],
}

/// What a client saw.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// It was not let in: why.
    pub refused: Option<String>,
    /// Messages that it was told were taken.
    pub sent: u32,
    pub heard: Vec<Heard>,
    /// What the end of its events was.
    pub lost: Option<String>,
    /// What came of closing: nothing, or why it failed.
    pub closed: Option<Result<(), String>>,
    /// What cannot be.
    pub wrong: Option<String>,
}

/// A client of some library.
pub trait Puppet {
    fn play(&mut self, order: &Order) -> Log;
}

impl Log {
    /// A message has come.
    pub fn hear(&mut self, sender: &str, payload: &[u8]) {
        let number = payload.split(|byte| *byte == b'|').next();
        let text = number.and_then(|number| str::from_utf8(number).ok());
        match text.and_then(|text| text.parse().ok()) {
            Some(number) => self.heard.push((sender.to_owned(), number)),
            None => self.wrong = Some("a payload that nobody sent".to_owned()),
        }
    }

    /// One line of a program; whether it was the last.
    fn read(&mut self, line: &str) -> bool {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "sent" => self.sent = rest.parse().expect("a number"),
            "got" => {
                let (sender, number) = rest.split_once(' ').expect("two words");
                let number = number.parse().expect("a number");
                self.heard.push((sender.to_owned(), number));
            }
            "refused" => self.refused = Some(rest.to_owned()),
            "lost" => self.lost = Some(rest.to_owned()),
            "closed" => self.closed = Some(Ok(())),
            "unclosed" => self.closed = Some(Err(rest.to_owned())),
            "end" => return true,
            _ => self.wrong = Some(line.to_owned()),
        }
        false
    }
}

/// The payload of a client's message.
pub fn payload(plan: &Plan, number: u32) -> Vec<u8> {
    let mut payload = format!("{number}|").into_bytes();
    payload.resize(plan.bytes.max(payload.len()), b'.');
    payload
}

/// A program that reads orders and writes logs, a line for each thing:
/// `sent NUMBER`, `got SENDER NUMBER`, `refused WHY`, `lost WHY`, `closed`, `unclosed WHY`, and `end`.
pub struct Program {
    child: Child,
    orders: ChildStdin,
    lines: Receiver<String>,
}

impl Program {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a program");
        let orders = child.stdin.take().expect("a pipe");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let (tell, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            orders,
            lines,
        }
    }

    /// The Python package's, with an interpreter that has it.
    pub fn python(interpreter: &str, flavour: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/cuts.py");
        let mut command = Command::new(interpreter);
        command.arg("-B").arg(script).arg(flavour);
        Self::start(command)
    }
}

impl Puppet for Program {
    fn play(&mut self, order: &Order) -> Log {
        let plan = &order.plan;
        let words = [
            order.address.clone(),
            plan.name(),
            plan.style.name().to_owned(),
            plan.messages.to_string(),
            plan.bytes.to_string(),
            u8::from(plan.closes).to_string(),
        ];
        let line = [&words[..], &order.files[..]].concat().join(" ");
        writeln!(self.orders, "{line}").expect("the program takes it");
        let mut log = Log::default();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("it hangs, or has ended: {plan:?}"));
            if log.read(&line) {
                return log;
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
