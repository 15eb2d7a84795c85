//! What the copies agree on, and its text, the same in all languages.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Machine;

/// The machine, and which commands count.
pub struct State<M> {
    pub machine: M,
    /// Of all views with a majority that the state has been through, the numbers of their rings added up: no state of a side
    /// without a majority has more.
    pub epoch: u64,
    /// Commands that count.
    pub count: u64,
    /// The newest command of each session that counts. A program that runs for years would drop those of long ago.
    sessions: BTreeMap<String, u64>,
}

impl<M: Machine> State<M> {
    pub fn new() -> Self {
        Self {
            machine: M::default(),
            epoch: 0,
            count: 0,
            sessions: BTreeMap::new(),
        }
    }

    /// `EPOCH COUNT`, a line `SESSION NUMBER` for each session, an empty line, and the machine's text.
    pub fn write(&self) -> String {
        let mut text = format!("{} {}\n", self.epoch, self.count);
        for (session, number) in &self.sessions {
            // A string takes it.
            let _ = writeln!(text, "{session} {number}");
        }
        text + "\n" + &self.machine.write()
    }

    /// The opposite of [`Self::write`]; whether it was that.
    pub fn read(&mut self, text: &str) -> Option<()> {
        let (head, machine) = text.split_once("\n\n")?;
        let mut lines = head.lines();
        let (epoch, count) = lines.next()?.split_once(' ')?;
        let session = |line: &str| {
            let (session, number) = line.split_once(' ')?;
            Some((session.to_owned(), number.parse().ok()?))
        };
        self.sessions = lines.map(session).collect::<Option<_>>()?;
        (self.epoch, self.count) = (epoch.parse().ok()?, count.parse().ok()?);
        self.machine.read(machine);
        Some(())
    }

    pub fn digest(&self) -> String {
        digest(&self.write())
    }

    /// The newest command of a session that counts.
    pub fn last(&self, session: &str) -> u64 {
        self.sessions.get(session).copied().unwrap_or_default()
    }

    /// Does a command `SESSION NUMBER TEXT`, unless it counts already; its number and the answer.
    pub fn apply(&mut self, sender: &str, command: &str) -> Option<(u64, String)> {
        let mut words = command.splitn(3, ' ');
        let (session, number, text) = (words.next()?, words.next()?, words.next()?);
        let number: u64 = number.parse().ok()?;
        if number != self.last(session) + 1 {
            return None;
        }
        self.sessions.insert(session.to_owned(), number);
        self.count += 1;
        Some((number, self.machine.apply(sender, text)))
    }
}

/// FNV-1a of 64 bits, in hexadecimal digits: to tell states apart, not to keep anybody from forging one.
fn digest(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}
