//! Commands as Redis' clients say them, on three partitions in this process.

use std::sync::Arc;

use bytes::Bytes;
use rota_kv::access::{UserSection, Users};
use rota_kv::redis::{Connection, Done, NodeView, Step, View, Walk, Work, assemble, done, shown};
use rota_kv::store::{Answer, Answered, Batch, Operation, Outcome, Store};
use rota_kv::{Map, Partition};
use rota_multiring::{Place, Rank};
use rota_replica::{Command, Machine as _};
use rota_resp::{Reply, Version, inline};

/// All partitions, and one client.
struct Desk {
    view: View,
    stores: Vec<Store>,
    connection: Connection,
    at: u64,
    now: u64,
    cursor: Option<Bytes>,
}

impl Desk {
    fn new(is_cluster: bool) -> Self {
        let partitions = [1, 2, 3].map(Partition);
        let map = Map::even(&partitions).expect("three");
        let node = |node: u16| NodeView {
            node,
            partition: Partition((node - 1) / 3 + 1),
            host: "127.0.0.1".to_owned(),
            port: 7000 + node,
            is_up: true,
        };
        let stores = partitions.map(|me| Store::new(me, map.clone()));
        Self {
            view: View {
                cluster: 5,
                me: 1,
                map: Arc::new(map),
                young: u64::MAX,
                nodes: (1..=9).map(node).collect(),
            },
            stores: stores.into(),
            connection: Connection::new(7, is_cluster, true),
            at: 0,
            now: 1_000_000,
            cursor: None,
        }
    }

    /// What each partition has answered, by operations.
    fn order(&mut self, batch: &Batch<'_>) -> Option<Vec<Vec<Outcome>>> {
        self.at += 1;
        let place = Place {
            round: self.at,
            rank: Rank(1),
            instance: self.at,
            index: 0,
        };
        let (map, bytes) = (&self.view.map, batch.alone());
        let mut outcomes = vec![Vec::new(); batch.operations.len()];
        let to = match batch.is_idle() {
            true => map.partitions(),
            false => batch.to(map),
        };
        for partition in to {
            let store = &mut self.stores[usize::from(partition.0) - 1];
            let answer = store.apply(Command {
                place,
                client: 1,
                bytes: &bytes,
            });
            store.check();
            let answered = Answered::decode(&answer).expect("an answer");
            let [answer] = answered.answers.try_into().expect("one");
            match answer {
                Answer::Outcomes(own) => own
                    .into_iter()
                    .for_each(|(at, outcome)| outcomes[at as usize].push(outcome)),
                Answer::Refused => return None,
                other => panic!("{other:?}"),
            }
        }
        Some(outcomes)
    }

    fn work(&mut self, work: Work) -> Reply {
        let works = [work];
        let (mut batch, answering) = assemble(&works, None);
        batch.stamp = self.now;
        batch.epoch = self.view.map.epoch();
        let outcomes = match batch.is_empty() {
            true => Some(Vec::new()),
            false => self.order(&batch),
        };
        match done(&works, answering, outcomes).remove(0) {
            Done::Reply(reply) => reply,
            Done::Watched(keys) => {
                self.connection.on_watched(keys);
                Reply::OK
            }
            Done::Walked(keys, next) => {
                let cursor = i64::from(next.is_some());
                self.cursor = next;
                let keys = keys.into_iter().map(Reply::Bulk).collect();
                Reply::Array(vec![Reply::Integer(cursor), Reply::Array(keys)])
            }
        }
    }

    fn say(&mut self, line: &str) -> Reply {
        let words = inline::words(line.as_bytes()).expect("a request");
        let request = words.into_iter().map(Bytes::from).collect();
        match self.connection.take(request, &self.view) {
            Step::Reply(reply) | Step::End(reply) | Step::Login(_, _, reply) => reply,
            Step::Order(work) => self.work(work),
            Step::Walk(_, walk) => {
                let from = self.cursor.take().expect("a walk");
                self.work(Work::Walk(Walk { from, ..walk }))
            }
            Step::Info(_) => Reply::from("# Server"),
            Step::Map => shown(&self.view.map),
            Step::Move(slots, to) => Reply::from(format!("{slots} to {}", to.0)),
            Step::Rings(ask) => Reply::from(format!("{ask:?}")),
            Step::Changes(asked) => Reply::from(format!("{asked:?}")),
        }
    }

    /// As Redis' client prints replies.
    fn hear(&mut self, line: &str) -> String {
        let mut out = Vec::new();
        self.say(line).write(Version::Resp2, &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        text.trim_end().replace("\r\n", " ")
    }
}

fn all(desk: &mut Desk, dialogue: &[(&str, &str)]) {
    for (line, reply) in dialogue {
        assert_eq!(desk.hear(line), *reply, "{line}");
    }
}

#[test]
fn texts_and_numbers_as_redis_has_them() {
    all(
        &mut Desk::new(false),
        &[
            ("PING", "+PONG"),
            ("ping hello", "$5 hello"),
            ("GET a", "$-1"),
            ("SET a 1", "+OK"),
            ("SET a 2 NX", "$-1"),
            ("SET a 2 XX GET", "$1 1"),
            ("INCR a", ":3"),
            ("DECRBY a 5", ":-2"),
            ("APPEND a 0", ":3"),
            ("GET a", "$3 -20"),
            ("STRLEN a", ":3"),
            ("GETSET a x", "$3 -20"),
            ("INCR a", "-ERR value is not an integer or out of range"),
            ("SET a 9223372036854775807", "+OK"),
            ("INCR a", "-ERR increment or decrement would overflow"),
            ("INCRBY a x", "-ERR value is not an integer or out of range"),
            (
                "DECRBY a -9223372036854775808",
                "-ERR decrement would overflow",
            ),
            ("GETDEL a", "$19 9223372036854775807"),
            ("SETNX a 1", ":1"),
            ("SETNX a 1", ":0"),
            ("TYPE a", "+string"),
            ("TYPE none", "+none"),
            ("SET a 1 NX XX", "-ERR syntax error"),
            ("SET a 1 EX 0", "-ERR invalid expire time in 'set' command"),
            ("GET", "-ERR wrong number of arguments for 'get' command"),
            (
                "GET a b",
                "-ERR wrong number of arguments for 'get' command",
            ),
            (
                "NONE a",
                "-ERR unknown command 'NONE', with args beginning with: 'a'",
            ),
            ("SELECT 0", "+OK"),
            ("SELECT 1", "-ERR DB index is out of range"),
            ("WAIT 2 100", ":2"),
            ("ECHO x", "$1 x"),
            ("PLACE x", "$9 19.1.19.0"),
        ],
    );
}

#[test]
fn keys_of_all_partitions_are_one_store() {
    all(
        &mut Desk::new(false),
        &[
            ("MSET a 1 b 2 c 3 d 4", "+OK"),
            ("MGET a b none c d", "*5 $1 1 $1 2 $-1 $1 3 $1 4"),
            ("DBSIZE", ":4"),
            ("EXISTS a b c none a", ":4"),
            ("RANGE a c", "*2 *2 $1 a $1 1 *2 $1 b $1 2"),
            ("RANGE b + LIMIT 2", "*2 *2 $1 b $1 2 *2 $1 c $1 3"),
            ("SCAN 0 COUNT 100", "*2 :0 *4 $1 a $1 b $1 c $1 d"),
            ("SCAN 0 COUNT 100 MATCH [bc]", "*2 :0 *2 $1 b $1 c"),
            ("HSET h f 1", ":1"),
            ("SCAN 0 TYPE hash COUNT 9", "*2 :0 *1 $1 h"),
            ("MGET a h", "*2 $1 1 $-1"),
            ("DEL a b none", ":2"),
            ("UNLINK c d h", ":3"),
            ("FLUSHALL", "+OK"),
            ("DBSIZE", ":0"),
        ],
    );
}

#[test]
fn a_walk_shows_each_key_once_whatever_its_steps() {
    for count in [1, 2, 7, 100] {
        let mut desk = Desk::new(false);
        for key in 0..50 {
            desk.hear(&format!("SET key{key} {key}"));
        }
        let (mut seen, mut steps, mut cursor) = (Vec::new(), 0, 0);
        loop {
            let Reply::Array(parts) = desk.say(&format!("SCAN {cursor} COUNT {count}")) else {
                panic!("a walk");
            };
            let [Reply::Integer(next), Reply::Array(keys)] = &parts[..] else {
                panic!("{parts:?}");
            };
            seen.extend(keys.clone());
            (steps, cursor) = (steps + 1, *next);
            if cursor == 0 {
                break;
            }
            assert!(steps < 100, "it comes to an end");
        }
        let mut names: Vec<String> = seen.iter().map(|key| format!("{key:?}")).collect();
        names.sort();
        names.dedup();
        assert_eq!((names.len(), seen.len()), (50, 50), "{count}");
    }
}

#[test]
fn fields_as_redis_has_them() {
    all(
        &mut Desk::new(false),
        &[
            ("HSET h a 1 b 2", ":2"),
            ("HSET h a 3", ":0"),
            ("HGET h a", "$1 3"),
            ("HGET h z", "$-1"),
            ("HMGET h a z b", "*3 $1 3 $-1 $1 2"),
            ("HGETALL h", "*4 $1 a $1 3 $1 b $1 2"),
            ("HKEYS h", "*2 $1 a $1 b"),
            ("HVALS h", "*2 $1 3 $1 2"),
            ("HLEN h", ":2"),
            ("HEXISTS h a", ":1"),
            ("HEXISTS h z", ":0"),
            ("HMSET h c 4", "+OK"),
            ("HDEL h a z c", ":2"),
            ("TYPE h", "+hash"),
            (
                "GET h",
                "-WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            (
                "HSET h a",
                "-ERR wrong number of arguments for 'hset' command",
            ),
            ("HDEL h b", ":1"),
            ("EXISTS h", ":0"),
            ("HGETALL h", "*0"),
        ],
    );
}

#[test]
fn lives_as_redis_has_them() {
    let mut desk = Desk::new(false);
    all(
        &mut desk,
        &[
            ("SET a 1 EX 100", "+OK"),
            ("TTL a", ":100"),
            ("PTTL a", ":100000"),
            ("TTL none", ":-2"),
            ("PERSIST a", ":1"),
            ("PERSIST a", ":0"),
            ("TTL a", ":-1"),
            ("EXPIRE a 10 XX", ":0"),
            ("EXPIRE a 10 NX", ":1"),
            ("EXPIRE a 5 GT", ":0"),
            ("PEXPIRE a 5000 LT", ":1"),
            ("SET a 2 KEEPTTL", "+OK"),
            ("TTL a", ":5"),
            ("GETEX a PERSIST", "$1 2"),
            ("SETEX b 7 x", "+OK"),
            ("PSETEX c 1500 x", "+OK"),
            ("TTL c", ":2"),
            ("GETEX b EX 9", "$1 x"),
            ("TTL b", ":9"),
            ("EXPIRE b 1 FOO", "-ERR Unsupported option FOO"),
            ("EXPIREAT b 1", ":1"),
            ("GET b", "$-1"),
            ("EXPIRE b 10", ":0"),
            ("SETEX b 0 x", "-ERR invalid expire time in 'setex' command"),
        ],
    );
    desk.now += 1_500;
    let passes = Batch {
        stamp: desk.now,
        operations: vec![Operation::Time],
        ..Batch::default()
    };
    desk.order(&passes);
    assert_eq!(desk.hear("GET c"), "$-1");
}

#[test]
fn transactions_as_redis_has_them() {
    let mut desk = Desk::new(false);
    all(
        &mut desk,
        &[
            ("EXEC", "-ERR EXEC without MULTI"),
            ("DISCARD", "-ERR DISCARD without MULTI"),
            ("MULTI", "+OK"),
            ("MULTI", "-ERR MULTI calls can not be nested"),
            ("SET a 1", "+QUEUED"),
            ("SET b 2", "+QUEUED"),
            ("INCR a", "+QUEUED"),
            ("HGET a f", "+QUEUED"),
            ("MGET a b", "+QUEUED"),
            ("PING", "+QUEUED"),
            (
                "EXEC",
                "*6 +OK +OK :2 -WRONGTYPE Operation against a key holding the wrong kind of value \
                 *2 $1 2 $1 2 +PONG",
            ),
            ("MULTI", "+OK"),
            ("EXEC", "*0"),
            ("MULTI", "+OK"),
            ("SET a", "-ERR wrong number of arguments for 'set' command"),
            ("SET a 5", "+QUEUED"),
            (
                "EXEC",
                "-EXECABORT Transaction discarded because of previous errors.",
            ),
            ("GET a", "$1 2"),
            ("MULTI", "+OK"),
            ("SET a 5", "+QUEUED"),
            ("DISCARD", "+OK"),
            ("GET a", "$1 2"),
            ("WATCH a", "+OK"),
            ("MULTI", "+OK"),
            ("WATCH a", "-ERR WATCH inside MULTI is not allowed"),
            ("INCR a", "+QUEUED"),
            ("EXEC", "*1 :3"),
            ("WATCH a", "+OK"),
            ("SET a 9", "+OK"),
            ("MULTI", "+OK"),
            ("UNWATCH", "+QUEUED"),
            ("INCR a", "+QUEUED"),
            ("EXEC", "*-1"),
            ("WATCH a", "+OK"),
            ("SET a 8", "+OK"),
            ("UNWATCH", "+OK"),
            ("MULTI", "+OK"),
            ("INCR a", "+QUEUED"),
            ("EXEC", "*1 :9"),
            ("MSETNX {a}x 1 {a}y 2", ":1"),
            ("MSETNX {a}z 1 {a}y 2", ":0"),
            ("EXISTS {a}z", ":0"),
            ("MULTI", "+OK"),
            ("SET {a}z 1", "+QUEUED"),
            (
                "MSETNX {a}z 2",
                "-ERR Command not allowed inside a transaction",
            ),
            (
                "EXEC",
                "-EXECABORT Transaction discarded because of previous errors.",
            ),
        ],
    );
}

#[test]
fn who_knows_where_keys_are_is_told_where_they_are() {
    let mut desk = Desk::new(true);
    // 12182 is the third partition's, whose first process is the seventh.
    all(
        &mut desk,
        &[
            ("CLUSTER KEYSLOT foo", ":12182"),
            ("GET foo", "-MOVED 12182 127.0.0.1:7007"),
            ("GET hello", "$-1"),
            ("MULTI", "+OK"),
            ("SET foo 1", "-MOVED 12182 127.0.0.1:7007"),
            (
                "EXEC",
                "-EXECABORT Transaction discarded because of previous errors.",
            ),
        ],
    );
    let nodes = desk.hear("CLUSTER NODES");
    assert_eq!(nodes.matches("myself,master").count(), 1);
    assert_eq!(
        nodes.matches(" slave").count() + nodes.matches(",slave").count(),
        6
    );
    assert!(
        nodes.contains("127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5461"),
        "{nodes}"
    );
    let Reply::Array(ranges) = desk.say("CLUSTER SLOTS") else {
        panic!("ranges");
    };
    assert_eq!(ranges.len(), 3);
    assert!(desk.hear("CLUSTER INFO").contains("cluster_state:ok"));
    // A process that is gone is no place to go to.
    desk.view.nodes[6].is_up = false;
    assert_eq!(desk.hear("GET foo"), "-MOVED 12182 127.0.0.1:7008");
    for node in [7, 8] {
        desk.view.nodes[node].is_up = false;
    }
    assert!(desk.hear("CLUSTER INFO").contains("cluster_state:fail"));
}

#[test]
fn who_has_to_say_who_it_is_says_nothing_else_before() {
    let mut desk = Desk::new(false);
    desk.connection = Connection::new(1, false, false);
    all(
        &mut desk,
        &[
            ("GET a", "-NOAUTH Authentication required."),
            ("MULTI", "-NOAUTH Authentication required."),
            ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ],
    );
    assert!(desk.hear("HELLO 3").starts_with("-NOAUTH"));
    let eye = UserSection {
        name: "eye".to_owned(),
        // Of "secret".
        password_sha256: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
            .to_owned(),
        keys: Some(vec!["a*".to_owned()]),
        read_only: true,
    };
    let users = Users::new(&[eye]).expect("a user");
    desk.connection
        .who
        .log_in(users.login(b"eye", b"secret").expect("it is"));
    assert!(desk.hear("HELLO 3").contains("proto :3"));
    assert_eq!(desk.connection.who.version(), Version::Resp3);
    // What it may not do breaks a transaction as any other error.
    all(
        &mut desk,
        &[
            ("GET b", "-NOPERM No permissions to access a key"),
            (
                "SET a 1",
                "-NOPERM User eye has no permissions to run the 'set' command",
            ),
            ("MULTI", "+OK"),
            ("MGET a b", "-NOPERM No permissions to access a key"),
            (
                "EXEC",
                "-EXECABORT Transaction discarded because of previous errors.",
            ),
            ("RESET", "+RESET"),
            ("GET a", "-NOAUTH Authentication required."),
        ],
    );
}

#[test]
fn what_a_client_keeps_is_bounded() {
    let mut desk = Desk::new(false);
    let large = "x".repeat(300_000);
    assert_eq!(desk.hear("MULTI"), "+OK");
    for _ in 0..3 {
        assert_eq!(desk.hear(&format!("SET a {large}")), "+QUEUED");
    }
    assert!(desk.connection.bytes() > 900_000);
    let refused = desk.hear(&format!("SET a {large}"));
    assert_eq!(refused, "-ERR a transaction has no more than 1 MiB");
    // What is not done is not kept, however much more comes.
    for _ in 0..30 {
        assert_eq!(desk.hear(&format!("SET a {large}")), "+QUEUED");
    }
    assert_eq!(desk.connection.bytes(), 0);
    assert!(desk.hear("EXEC").starts_with("-EXECABORT"));
    assert_eq!(desk.hear("MULTI"), "+OK");
    for _ in 0..10_000 {
        assert_eq!(desk.hear("PING"), "+QUEUED");
    }
    assert!(desk.hear("PING").starts_with("-ERR a transaction"));
    assert!(desk.hear("EXEC").starts_with("-EXECABORT"));
    // What is known already takes room, too.
    assert_eq!(desk.hear("MULTI"), "+OK");
    for _ in 0..3 {
        assert_eq!(desk.hear(&format!("ECHO {large}")), "+QUEUED");
    }
    assert!(
        desk.hear(&format!("ECHO {large}"))
            .starts_with("-ERR a transaction")
    );
    assert_eq!(desk.hear("DISCARD"), "+OK");
    let key = "k".repeat(60_000);
    for at in 0..17 {
        assert_eq!(desk.hear(&format!("WATCH {key}{at}")), "+OK");
    }
    assert!(
        desk.hear(&format!("WATCH {key}18"))
            .starts_with("-ERR no more")
    );
    assert_eq!(desk.hear("UNWATCH"), "+OK");
    assert_eq!(desk.connection.bytes(), 0);
}

/// What a partition does not answer is no empty answer: keys would be left out of a walk, and a transaction would watch nothing.
#[test]
fn what_is_too_much_at_once_is_told() {
    use rota_kv::store::{Fault, Found};
    let too_much = |work: Work, outcomes: Vec<Outcome>| {
        let works = [work];
        let (_, answering) = assemble(&works, None);
        let told = done(&works, answering, Some(vec![outcomes])).remove(0);
        matches!(told, Done::Reply(Reply::Error(why)) if why.starts_with("TRYAGAIN"))
    };
    let walk = Walk {
        from: Bytes::new(),
        count: 10,
        pattern: None,
        kind: None,
    };
    let some = Outcome::Entries(vec![(Bytes::from_static(b"a"), Found::Name)], None);
    let fault = Outcome::Fault(Fault::Answer);
    assert!(too_much(
        Work::Walk(walk.clone()),
        vec![some.clone(), fault.clone()]
    ));
    assert!(!too_much(Work::Walk(walk), vec![some]));
    let watch = || Work::Watch(vec![Bytes::from_static(b"a")]);
    assert!(too_much(watch(), vec![fault]));
    assert!(!too_much(watch(), vec![Outcome::Version(None)]));
}
