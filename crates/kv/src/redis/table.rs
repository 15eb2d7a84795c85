//! The table of commands.

use rota_front::command::{Entry, Reach};

const R: &[&str] = &["readonly", "fast"];
const S: &[&str] = &["readonly"];
const W: &[&str] = &["write", "denyoom", "fast"];
const D: &[&str] = &["write", "fast"];
const C: &[&str] = &["loading", "stale", "fast"];
const T: &[&str] = &["noscript", "loading", "stale", "fast"];
const M: &[&str] = &["write", "admin", "noscript"];
const B: &[&str] = &["readonly", "blocking", "noscript"];
const A: &[&str] = &["loading", "stale"];

const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);

/// All commands, by name.
pub const TABLE: &[Entry] = &[
    Entry::new("append", 3, W, ONE),
    Entry::new("auth", -2, T, NONE),
    Entry::new("client", -2, A, NONE),
    Entry::new("cluster", -2, A, NONE),
    Entry::new("command", -1, A, NONE),
    Entry::new("config", -2, A, NONE),
    Entry::new("dbsize", 1, R, NONE).of(Reach::All),
    Entry::new("decr", 2, W, ONE),
    Entry::new("decrby", 3, W, ONE),
    Entry::new("del", -2, D, ALL),
    Entry::new("discard", 1, T, NONE),
    Entry::new("echo", 2, C, NONE),
    Entry::new("exec", 1, T, NONE),
    Entry::new("exists", -2, R, ALL),
    Entry::new("expire", -3, D, ONE),
    Entry::new("expireat", -3, D, ONE),
    Entry::new("flushall", -1, D, NONE).of(Reach::All),
    Entry::new("flushdb", -1, D, NONE).of(Reach::All),
    Entry::new("get", 2, R, ONE),
    Entry::new("getdel", 2, D, ONE),
    Entry::new("getex", -2, D, ONE),
    Entry::new("getset", 3, W, ONE),
    Entry::new("hdel", -3, D, ONE),
    Entry::new("hello", -1, T, NONE),
    Entry::new("hexists", 3, R, ONE),
    Entry::new("hget", 3, R, ONE),
    Entry::new("hgetall", 2, S, ONE),
    Entry::new("hkeys", 2, S, ONE),
    Entry::new("hlen", 2, R, ONE),
    Entry::new("hmget", -3, R, ONE),
    Entry::new("hmset", -4, W, ONE),
    Entry::new("hset", -4, W, ONE),
    Entry::new("hvals", 2, S, ONE),
    Entry::new("incr", 2, W, ONE),
    Entry::new("incrby", 3, W, ONE),
    Entry::new("info", -1, A, NONE),
    Entry::new("mget", -2, R, ALL),
    Entry::new("mset", -3, W, (1, -1, 2)),
    Entry::new("msetnx", -3, W, (1, -1, 2)),
    Entry::new("multi", 1, T, NONE),
    Entry::new("persist", 2, D, ONE),
    Entry::new("pexpire", -3, D, ONE),
    Entry::new("pexpireat", -3, D, ONE),
    Entry::new("ping", -1, C, NONE),
    Entry::new("place", 2, R, ONE),
    Entry::new("psetex", 4, W, ONE),
    Entry::new("pttl", 2, R, ONE),
    Entry::new("quit", -1, T, NONE),
    Entry::new("range", -3, S, NONE).of(Reach::Range),
    Entry::new("readonly", 1, C, NONE),
    Entry::new("readwrite", 1, C, NONE),
    Entry::new("reset", 1, T, NONE),
    Entry::new("rings", -1, M, NONE).of(Reach::All),
    Entry::new("rota", -2, M, NONE).of(Reach::All),
    Entry::new("rota.changes", -4, B, NONE).of(Reach::Prefix),
    Entry::new("scan", -2, S, NONE).of(Reach::All),
    Entry::new("select", 2, C, NONE),
    Entry::new("set", -3, W, ONE),
    Entry::new("setex", 4, W, ONE),
    Entry::new("setnx", 3, W, ONE),
    Entry::new("strlen", 2, R, ONE),
    Entry::new("touch", -2, R, ALL),
    Entry::new("ttl", 2, R, ONE),
    Entry::new("type", 2, R, ONE),
    Entry::new("unlink", -2, D, ALL),
    Entry::new("unwatch", 1, T, NONE),
    Entry::new("wait", 3, T, NONE),
    Entry::new("watch", -2, T, ALL),
];

/// The command with this name, in letters of any size.
pub fn find(name: &[u8]) -> Option<&'static Entry> {
    rota_front::command::find(TABLE, name)
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
