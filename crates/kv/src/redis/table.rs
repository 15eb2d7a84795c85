//! The commands that there are.

use bytes::Bytes;

/// What Redis' clients want to know of a command (`COMMAND`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// In small letters.
    pub name: &'static str,
    /// So many arguments with the name; negative: at least so many.
    pub arity: i64,
    /// What it does.
    pub flags: &'static [&'static str],
    /// Where its first key is; 0: it has none.
    pub first: i64,
    /// Where its last key is; negative: so far from the end.
    pub last: i64,
    /// From key to key.
    pub step: i64,
}

const R: &[&str] = &["readonly", "fast"];
const S: &[&str] = &["readonly"];
const W: &[&str] = &["write", "denyoom", "fast"];
const D: &[&str] = &["write", "fast"];
const C: &[&str] = &["loading", "stale", "fast"];
const T: &[&str] = &["noscript", "loading", "stale", "fast"];
const M: &[&str] = &["write", "admin", "noscript"];
const A: &[&str] = &["loading", "stale"];

const fn of(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    (first, last, step): (i64, i64, i64),
) -> Entry {
    Entry {
        name,
        arity,
        flags,
        first,
        last,
        step,
    }
}

const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);

/// All of them, by name.
pub const TABLE: &[Entry] = &[
    of("append", 3, W, ONE),
    of("auth", -2, T, NONE),
    of("client", -2, A, NONE),
    of("cluster", -2, A, NONE),
    of("command", -1, A, NONE),
    of("config", -2, A, NONE),
    of("dbsize", 1, R, NONE),
    of("decr", 2, W, ONE),
    of("decrby", 3, W, ONE),
    of("del", -2, D, ALL),
    of("discard", 1, T, NONE),
    of("echo", 2, C, NONE),
    of("exec", 1, T, NONE),
    of("exists", -2, R, ALL),
    of("expire", -3, D, ONE),
    of("expireat", -3, D, ONE),
    of("flushall", -1, D, NONE),
    of("flushdb", -1, D, NONE),
    of("get", 2, R, ONE),
    of("getdel", 2, D, ONE),
    of("getex", -2, D, ONE),
    of("getset", 3, W, ONE),
    of("hdel", -3, D, ONE),
    of("hello", -1, T, NONE),
    of("hexists", 3, R, ONE),
    of("hget", 3, R, ONE),
    of("hgetall", 2, S, ONE),
    of("hkeys", 2, S, ONE),
    of("hlen", 2, R, ONE),
    of("hmget", -3, R, ONE),
    of("hmset", -4, W, ONE),
    of("hset", -4, W, ONE),
    of("hvals", 2, S, ONE),
    of("incr", 2, W, ONE),
    of("incrby", 3, W, ONE),
    of("info", -1, A, NONE),
    of("mget", -2, R, ALL),
    of("mset", -3, W, (1, -1, 2)),
    of("msetnx", -3, W, (1, -1, 2)),
    of("multi", 1, T, NONE),
    of("persist", 2, D, ONE),
    of("pexpire", -3, D, ONE),
    of("pexpireat", -3, D, ONE),
    of("ping", -1, C, NONE),
    of("place", 2, R, ONE),
    of("psetex", 4, W, ONE),
    of("pttl", 2, R, ONE),
    of("quit", -1, T, NONE),
    of("range", -3, S, NONE),
    of("readonly", 1, C, NONE),
    of("readwrite", 1, C, NONE),
    of("reset", 1, T, NONE),
    of("rota", -2, M, NONE),
    of("scan", -2, S, NONE),
    of("select", 2, C, NONE),
    of("set", -3, W, ONE),
    of("setex", 4, W, ONE),
    of("setnx", 3, W, ONE),
    of("strlen", 2, R, ONE),
    of("touch", -2, R, ALL),
    of("ttl", 2, R, ONE),
    of("type", 2, R, ONE),
    of("unlink", -2, D, ALL),
    of("unwatch", 1, T, NONE),
    of("wait", 3, T, NONE),
    of("watch", -2, T, ALL),
];

/// The one with this name, in letters of any size.
pub fn find(name: &[u8]) -> Option<&'static Entry> {
    let name = name.to_ascii_lowercase();
    let at = TABLE.binary_search_by(|entry| entry.name.as_bytes().cmp(&name));
    at.ok().map(|at| &TABLE[at])
}

impl Entry {
    /// Whether a command may have so many arguments with its name.
    pub const fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        if self.arity < 0 {
            count >= -self.arity
        } else {
            count == self.arity
        }
    }

    /// The keys among a command's arguments.
    pub fn keys<'a>(&self, arguments: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> + use<'a> {
        let count = arguments.len() as i64;
        let last = match self.last < 0 {
            true => count + self.last + 1,
            false => self.last.min(count),
        };
        // The name is their argument 0.
        let of = |at: i64| usize::try_from(at).unwrap_or_default();
        let (first, step) = (of(self.first - 1), of(self.step).max(1));
        let last = if self.first == 0 { 0 } else { of(last) };
        let keys = arguments.iter().take(last).skip(first);
        keys.step_by(step)
    }

    /// Whether it changes anything.
    pub fn writes(&self) -> bool {
        self.flags.contains(&"write")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_found_in_letters_of_any_size() {
        assert!(TABLE.windows(2).all(|pair| pair[0].name < pair[1].name));
        for entry in TABLE {
            assert_eq!(find(entry.name.to_uppercase().as_bytes()), Some(entry));
        }
        assert_eq!(find(b"get "), None);
    }
}
