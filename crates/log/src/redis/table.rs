//! The table of commands.

use rota_front::command::{Entry, Reach};

const R: &[&str] = &["readonly", "fast"];
const S: &[&str] = &["readonly"];
const B: &[&str] = &["readonly", "blocking"];
const W: &[&str] = &["write", "denyoom", "fast"];
const D: &[&str] = &["write", "fast"];
const C: &[&str] = &["loading", "stale", "fast"];
const T: &[&str] = &["noscript", "loading", "stale", "fast"];
const M: &[&str] = &["write", "admin", "noscript"];
const A: &[&str] = &["loading", "stale"];

const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const SECOND: (i64, i64, i64) = (2, 2, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);

/// All commands, by name.
pub const TABLE: &[Entry] = &[
    Entry::new("auth", -2, T, NONE),
    Entry::new("client", -2, A, NONE),
    Entry::new("cluster", -2, A, NONE),
    Entry::new("command", -1, A, NONE),
    Entry::new("config", -2, A, NONE),
    Entry::new("dbsize", 1, R, NONE).of(Reach::All),
    Entry::new("del", -2, D, ALL),
    Entry::new("discard", 1, T, NONE),
    Entry::new("echo", 2, C, NONE),
    Entry::new("exec", 1, T, NONE),
    Entry::new("exists", -2, R, ALL),
    Entry::new("hello", -1, T, NONE),
    Entry::new("info", -1, A, NONE),
    Entry::new("keys", 2, S, NONE).of(Reach::All),
    Entry::new("multi", 1, T, NONE),
    Entry::new("ping", -1, C, NONE),
    Entry::new("quit", -1, T, NONE),
    Entry::new("reset", 1, T, NONE),
    Entry::new("rings", -1, M, NONE).of(Reach::All),
    Entry::new("rota", -3, D, SECOND),
    Entry::new("scan", -2, S, NONE).of(Reach::All),
    Entry::new("select", 2, C, NONE),
    Entry::new("type", 2, R, ONE),
    Entry::new("unlink", -2, D, ALL),
    Entry::new("wait", 3, T, NONE),
    Entry::new("xadd", -5, W, ONE),
    Entry::new("xinfo", -2, S, SECOND),
    Entry::new("xlen", 2, R, ONE),
    Entry::new("xmerge", -4, B, NONE),
    Entry::new("xrange", -4, S, ONE),
    Entry::new("xread", -4, B, NONE),
    Entry::new("xrevrange", -4, S, ONE),
    Entry::new("xtrim", -4, D, ONE),
];

/// The command with this name, in letters of any size.
pub fn find(name: &[u8]) -> Option<&'static Entry> {
    rota_front::command::find(TABLE, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(TABLE.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
