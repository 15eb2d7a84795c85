//! Speeds on the command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ParseError, wrong};

/// A number of bits per second: `100mbit`, `2.5gbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(pub u64);

impl FromStr for BitRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let hint = "a rate; write it like 100mbit or 2.5gbit";
        if text == "0" {
            return Ok(Self(0));
        }
        let digits = text
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit.to_ascii_lowercase().as_str() {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => return wrong(text, hint),
        };
        match number.parse::<f64>() {
            Ok(n) if n >= 0.0 && n * factor < 1e15 => Ok(Self((n * factor).round() as u64)),
            _ => wrong(text, hint),
        }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factor, unit) = match self.0 {
            n if n >= 1_000_000_000 => (1e9, "gbit"),
            n if n >= 1_000_000 => (1e6, "mbit"),
            n if n >= 1_000 => (1e3, "kbit"),
            _ => (1.0, "bit"),
        };
        write!(f, "{}{unit}", self.0 as f64 / factor)
    }
}
