//! Users, with the commands of a store.

use bytes::Bytes;
use rota_front::access::{User, UserError, UserSection, Users};

use super::{TABLE, find};

/// Of "secret".
const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

fn section(name: &str, keys: Option<&[&str]>, read_only: bool) -> UserSection {
    UserSection {
        name: name.to_owned(),
        password_sha256: HASH.to_owned(),
        keys: keys.map(|keys| keys.iter().map(ToString::to_string).collect()),
        read_only,
    }
}

fn refused(user: &User, line: &str) -> bool {
    let mut words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
    let name = words.next().expect("a name");
    let words: Vec<Bytes> = words.collect();
    user.refusal(find(&name).expect("a command"), &words)
        .is_some()
}

#[test]
fn only_the_right_password_opens() {
    let users = Users::new(&[section("app", None, false)]).expect("a user");
    assert!(users.login(b"app", b"secret").is_some());
    for (name, password) in [
        ("app", "Secret"),
        ("app", ""),
        ("default", "secret"),
        ("", ""),
    ] {
        assert!(users.login(name.as_bytes(), password.as_bytes()).is_none());
    }
    assert!(!users.is_open() && Users::default().is_open());
}

#[test]
fn a_user_has_its_keys_and_no_others() {
    let users = Users::new(&[section("app", Some(&["app:*", "one"]), false)]);
    let users = users.expect("a user");
    let user = users.login(b"app", b"secret").expect("it is");
    for line in [
        "GET app:1",
        "SET one 1",
        "MSET app:1 x app:2 y",
        "DEL app:1 one",
        "PING",
        "RANGE app: app;",
        "RANGE app:1 app:2 LIMIT 3",
        "ROTA.CHANGES app: FROM $",
        "ROTA.CHANGES app:1 FROM 0",
        "WATCH one",
    ] {
        assert!(!refused(&user, line), "{line}");
    }
    for line in [
        "GET apple",
        "GET oneself",
        "MSET app:1 x other y",
        "MGET app:1 other",
        "HSET other f v",
        "WATCH other",
        "PLACE other",
        "RANGE app: +",
        "ROTA.CHANGES app FROM $",
        "ROTA.CHANGES one FROM $",
        "RANGE a app;",
        "RANGE one one",
        "SCAN 0",
        "DBSIZE",
        "FLUSHALL",
        "ROTA MOVE 2 0-9",
        "RINGS",
    ] {
        assert!(refused(&user, line), "{line}");
    }
}

#[test]
fn a_range_to_the_last_key_is_of_all_keys_that_follow() {
    let plus = Users::new(&[section("app", Some(&["+*"]), false)]).expect("a user");
    let plus = plus.login(b"app", b"secret").expect("it is");
    assert!(refused(&plus, "RANGE + + LIMIT 9") && !refused(&plus, "RANGE +a +b"));
    let all = Users::new(&[section("app", Some(&["*"]), false)]).expect("a user");
    let all = all.login(b"app", b"secret").expect("it is");
    assert!(!refused(&all, "RANGE a +"));
}

#[test]
fn who_only_reads_changes_nothing() {
    let users = Users::new(&[section("eye", None, true)]).expect("a user");
    let user = users.login(b"eye", b"secret").expect("it is");
    for entry in TABLE {
        let refusal = user.refusal(entry, &[]).is_some();
        assert_eq!(refusal, entry.writes(), "{}", entry.name);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let same = [section("app", None, false), section("app", None, true)];
    assert!(matches!(Users::new(&same), Err(UserError::Name(_))));
    assert!(Users::new(&[section("", None, false)]).is_err());
    let pattern = Users::new(&[section("app", Some(&["a*b"]), false)]);
    assert!(matches!(pattern, Err(UserError::Pattern(..))));
    let mut short = section("app", None, false);
    short.password_sha256.pop();
    assert!(matches!(Users::new(&[short]), Err(UserError::Password(_))));
}
