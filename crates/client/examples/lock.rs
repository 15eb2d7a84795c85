//! A lock with fencing numbers: `cargo run --example lock -- ADDRESS NAME GROUP COPIES JOURNAL`, `COPIES` times.
//!
//! Commands are `acquire` and `release`. A copy says `granted NUMBER` when its owner has the lock and `lost NUMBER` when it has it no
//! more, or cannot know. Each grant has a larger number than all before. Whoever uses the lock's resource says the number, and the
//! resource refuses any that is smaller than one it has seen: so an owner that was away and does not know that the lock has gone on
//! without it does no harm. `lock` of `clients/go/examples` is another copy of the same.

#[allow(clippy::duplicate_mod, reason = "a test has all three examples")]
mod replicated;

use std::error::Error;

use replicated::{Machine, Standing};

#[derive(Default)]
struct Lock {
    /// Of the newest grant.
    number: u64,
    /// Who waits; the first has the lock.
    queue: Vec<String>,
    /// What the owner of this copy was told, and which number it was told to have lost: no parts of the state.
    told: Option<u64>,
    lost: u64,
    /// The owner was told that it has lost what it may still have: it gives that back.
    gives_back: bool,
}

impl Lock {
    /// Changes the queue; another first member has a new grant.
    fn change(&mut self, change: impl FnOnce(&mut Vec<String>)) {
        let before = self.queue.first().cloned();
        change(&mut self.queue);
        if !self.queue.is_empty() && self.queue.first() != before.as_ref() {
            self.number += 1;
        }
    }
}

impl Machine for Lock {
    fn apply(&mut self, sender: &str, command: &str) -> String {
        match command {
            "acquire" if !self.queue.iter().any(|name| name == sender) => {
                self.change(|queue| queue.push(sender.to_owned()));
            }
            "release" => self.change(|queue| queue.retain(|name| name != sender)),
            _ => {}
        }
        self.queue.len().to_string()
    }

    /// Members that are gone wait no more.
    fn members(&mut self, members: &[String]) {
        self.change(|queue| queue.retain(|name| members.contains(name)));
    }

    fn write(&self) -> String {
        let names = self.queue.iter().map(|name| format!("{name}\n"));
        format!("{}\n", self.number) + &names.collect::<String>()
    }

    fn read(&mut self, text: &str) {
        let mut lines = text.lines();
        let number = lines.next().and_then(|number| number.parse().ok());
        self.number = number.unwrap_or_default();
        self.queue = lines.map(str::to_owned).collect();
    }

    /// While the members agree, there is no news. Who is apart from them counts the lock as lost, and gives it back when it
    /// can: so no number is granted twice.
    fn look(&mut self, me: &str, standing: Standing) -> Option<String> {
        if standing == Standing::Waiting {
            return None;
        }
        let is_sure = standing == Standing::Sure;
        let is_first = self.queue.first().is_some_and(|name| name == me);
        let mine = (is_sure && is_first && self.number > self.lost).then_some(self.number);
        if mine == self.told {
            return None;
        }
        let before = std::mem::replace(&mut self.told, mine);
        if let Some(number) = before {
            self.lost = number;
            self.gives_back = !is_sure;
        }
        let lost = before.map(|number| format!("lost {number}"));
        let granted = mine.map(|number| format!("granted {number}"));
        let news: Vec<String> = lost.into_iter().chain(granted).collect();
        Some(news.join("\n"))
    }

    fn reaction(&mut self) -> Option<String> {
        std::mem::take(&mut self.gives_back).then(|| "release".to_owned())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<String>>())
}

/// One copy, until its input ends.
pub fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    replicated::run::<Lock>(arguments)
}
