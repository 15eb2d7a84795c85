//! A replicated store with checkpoints: `cargo run --example store -- ADDRESS NAME GROUP COPIES JOURNAL`, `COPIES` times.
//!
//! Commands are `set KEY VALUE`, `add KEY NUMBER`, `get KEY`; `replicated` says how the copies stay equal. `store.py` of
//! `python/examples` is another copy of the same.

#[allow(clippy::duplicate_mod, reason = "a test has all three examples")]
mod replicated;

use std::collections::BTreeMap;
use std::error::Error;

use replicated::{Machine, Standing};

#[derive(Default)]
struct Store(BTreeMap<String, String>);

impl Machine for Store {
    fn apply(&mut self, _: &str, command: &str) -> String {
        let words: Vec<&str> = command.splitn(3, ' ').collect();
        match words[..] {
            ["set", key, value] => {
                self.0.insert(key.to_owned(), value.to_owned());
                value.to_owned()
            }
            ["add", key, _] => {
                let number = |text: &str| text.parse::<i64>().unwrap_or_default();
                let old = self.0.get(key).map_or(0, |old| number(old));
                let sum = old.wrapping_add(number(words[2])).to_string();
                self.0.insert(key.to_owned(), sum.clone());
                sum
            }
            ["get", key] => self.0.get(key).cloned().unwrap_or_else(|| "-".to_owned()),
            _ => "what?".to_owned(),
        }
    }

    fn members(&mut self, _: &[String]) {}

    fn write(&self) -> String {
        let line = |(key, value): (&String, &String)| format!("{key} {value}\n");
        self.0.iter().map(line).collect()
    }

    fn read(&mut self, text: &str) {
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        self.0 = pairs
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
    }

    fn look(&mut self, _: &str, _: Standing) -> Option<String> {
        None
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<String>>())
}

/// One copy, until its input ends.
pub fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    replicated::run::<Store>(arguments)
}
