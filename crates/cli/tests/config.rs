//! `rota config check`, as a person runs it.

use std::io::Write as _;
use std::process::{Command, Output};

fn check(settings: &str, address: &str, options: &[&str]) -> Output {
    let mut text = format!("cluster = 7\ninsecure = true\ntransport = \"unicast\"\n{settings}\n");
    for id in [1, 2] {
        let ports = format!("data_port = {}\ntoken_port = {}\n", 2000 + id, 3000 + id);
        text += &format!("[[node]]\nid = {id}\naddress = \"{address}\"\n{ports}");
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["config", "check"])
        .arg(file.path())
        .args(options)
        .output()
        .unwrap()
}

/// The line about datagrams' size.
fn datagram_bytes(settings: &str, address: &str, options: &[&str]) -> String {
    let output = check(settings, address, options);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("datagram_bytes"));
    line.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
}

#[test]
fn the_size_of_datagrams_comes_with_where_it_is_from() {
    for options in [&[][..], &["--node", "2"]] {
        let derived = datagram_bytes("", "127.0.0.1", options);
        assert!(derived.starts_with("1472 (path MTU of "), "{derived}");
        let path = " towards 127.0.0.1, used up to 1500)";
        assert!(derived.ends_with(path), "{derived}");
    }
    let set = datagram_bytes("datagram_bytes = 8972", "127.0.0.1", &[]);
    assert_eq!(set, "8972 (set)");
    // An address for documentation, which no host has.
    let elsewhere = datagram_bytes("", "192.0.2.1", &[]);
    let assumed = "1472 (no path is known here: a path MTU of 1500 is assumed)";
    assert_eq!(elsewhere, assumed);
}

#[test]
fn ports_that_a_firewall_has_to_let_through_are_all_said() {
    let said = |engine: &str| {
        let output = check(&format!("engine = \"{engine}\""), "127.0.0.1", &[]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lcr = "data 127.0.0.1:2002, token 127.0.0.1:3002, links tcp 127.0.0.1:3002";
    assert!(said("lcr").contains(lcr), "{}", said("lcr"));
    let paxos = said("u-ring-paxos\"\npaxos.storage = \"memory");
    assert!(paxos.contains(lcr), "{paxos}");
    assert!(!said("fastcast").contains("links tcp"));
}

#[test]
fn where_ring_ids_are_kept_is_said_and_what_it_means_if_nowhere() {
    let said = |settings: &str| {
        let output = check(settings, "127.0.0.1", &["--node", "2"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let memory = said("");
    assert!(memory.contains("in memory only"), "{memory}");
    let disk = said("state_dir = \"/tmp\"");
    assert!(disk.contains("/tmp/node-2.ring"), "{disk}");
}

#[test]
fn who_counts_in_a_primary_and_where_it_is_kept_is_said() {
    let said = |settings: &str| {
        let output = check(settings, "127.0.0.1", &["--node", "2"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said("").contains("none (no configuration is called primary)"));
    let kept = said("primary = \"dynamic\"\nstate_dir = \"/tmp\"");
    assert!(kept.contains("1, 2 (all that are listed)"), "{kept}");
    assert!(kept.contains("/tmp/node-2.primary"), "{kept}");
    let fixed = said("primary = \"static\"\nprimary_nodes = [1, 2, 3]\nmessage_bytes = 5000");
    assert!(fixed.contains("1, 2, 3 (set)"), "{fixed}");
    let limit = fixed.lines().find(|line| line.starts_with("message_bytes"));
    assert!(limit.is_some_and(|line| line.ends_with(" 5000")), "{fixed}");
    let output = check("primary = \"dynamic\"", "127.0.0.1", &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("set `state_dir`"), "{said}");
}

#[test]
fn what_is_wrong_is_said_and_the_status_is_2() {
    let output = check("datagram_bytes = 511", "127.0.0.1", &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("datagram_bytes must be between 512"),
        "{said}"
    );
}

#[test]
fn the_sections_of_the_daemon_are_checked_and_said() {
    let output = check_sections(
        "[daemon]\nclients = 77\n[daemon.spread]\ntcp = [\"10.0.0.1:4803\"]\n\
         allow = [\"10.0.0.0/8\", \"fd00::/8\"]\n",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    for (name, value) in [
        ("socket", "/run/rota/rota.sock"),
        ("clients", "77"),
        ("client_queue_bytes", "16777216"),
        ("slow_clients", "disconnect"),
        ("throttle_ms", "2000"),
        ("throttle_then", "disconnect"),
        ("metrics", "none"),
        ("realtime", "off"),
        ("tcp", "10.0.0.1:4803"),
        ("allow", "10.0.0.0/8, fd00::/8"),
    ] {
        let row = format!("{name:<22} {value}");
        assert!(
            text.lines().any(|line| line == row),
            "{row} is not in {text}"
        );
    }
    let output = check_sections("[daemon]\nclients = 0\n");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("clients must not be 0"), "{said}");
}

/// The whole file with these sections of a daemon.
fn check_sections(sections: &str) -> Output {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let node = "cluster = 7\ninsecure = true\ntransport = \"unicast\"\n[[node]]\nid = 1\n\
                address = \"127.0.0.1\"\ndata_port = 2001\ntoken_port = 3001\n";
    write!(file, "{node}{sections}").unwrap();
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["config", "check"])
        .arg(file.path())
        .output()
        .unwrap()
}

#[test]
fn rules_that_cannot_work_are_refused_with_their_number() {
    let wrong = |rule: &str| {
        let first = "[[daemon.access]]\nwho = { user = \"root\" }\n";
        let output = check_sections(&format!("{first}[[daemon.access]]\n{rule}\n"));
        assert_eq!(output.status.code(), Some(2), "{rule}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (rule, expected) in [
        (
            "who = { user = \"no-such-name\" }",
            "rule 2: this host has no user",
        ),
        (
            "who = { group = \"no-such-name\" }",
            "rule 2: this host has no group",
        ),
        ("who = {}", "rule 2: `who` says nothing"),
        (
            "who = { anyone = true, uid = 1 }",
            "rule 2: `anyone` and somebody",
        ),
        ("who = { anyone = false }", "rule 2: `who` says nothing"),
        (
            "who = { user = \"root\", uid = 0 }",
            "rule 2: say a user or a uid",
        ),
        (
            "who = { uid = 1, certificate = \"a\" }",
            "rule 2: it can never match",
        ),
        (
            "who = { certificate = \"a\" }",
            "rule 2: it can never match",
        ),
        (
            "who = { address = \"10.0.0.0/8\" }",
            "rule 2: it can never match",
        ),
        (
            "who = { uid = 1 }\nconnect = false",
            "rule 2: it gives nothing",
        ),
        (
            "who = { uid = 1 }\nconnect = false\njoin = [\"a\"]",
            "who may `connect`",
        ),
        ("who = { uid = 1 }\njoin = [\"a*b\"]", "at the end only"),
        (
            "who = { uid = 1 }\njoin = [\"two words\"]",
            "can never match",
        ),
        (
            "who = { uid = 1 }\njoin = [\"#a#n1\"]",
            "only groups are joined",
        ),
        ("who = { uid = 1 }\nsend = [\"#a\"]", "can never match"),
        ("who = { uid = 1 }\nsed = [\"a\"]", "unknown field `sed`"),
        ("who = { usr = \"root\" }", "unknown field `usr`"),
        ("join = [\"a\"]", "missing field `who`"),
    ] {
        let said = wrong(rule);
        assert!(said.contains(expected), "{rule}: {said}");
    }
    let far = "[daemon.spread]\ntcp = [\"10.0.0.1:4803\"]\nallow = [\"10.0.0.0/8\"]\n";
    let at = |net: &str| {
        let rule = format!("[[daemon.access]]\nwho = {{ address = \"{net}\" }}\nadmin = true\n");
        let output = check_sections(&format!("{rule}{far}"));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(at("11.0.0.0/8").contains("nobody can connect from 11.0.0.0/8"));
    assert!(at("10.1.0.0/16").contains("the admin socket is a Unix socket"));
}

#[test]
fn rules_are_printed_as_they_are_understood() {
    let output = check_sections(
        "[[daemon.access]]\nwho = { user = \"root\", gid = 7 }\njoin = [\"a*\", \"b\"]\nsend = [\"*\"]\n\
         [[daemon.access]]\nwho = { anyone = true }\nconnect = false\nadmin = true\n",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    for (name, value) in [
        ("user root, gid 7", "connect, join a* b, send *"),
        ("anyone", "admin"),
    ] {
        let row = format!("{name:<22} {value}");
        assert!(
            text.lines().any(|line| line == row),
            "{row} is not in {text}"
        );
    }
    let open = String::from_utf8(check_sections("").stdout).unwrap();
    assert!(
        open.contains("whoever can open a socket may do everything"),
        "{open}"
    );
}

#[test]
fn tls_is_open_to_nobody_by_mistake() {
    let files = "certificate = \"a.pem\"\nkey = \"a.key\"\n";
    let everywhere = "[daemon.tls]\nlisten = [\"0.0.0.0:4805\"]\n";
    let wrong = |sections: &str| {
        let output = check_sections(sections);
        assert_eq!(output.status.code(), Some(2), "{sections}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (sections, expected) in [
        (format!("{everywhere}{files}"), "say with `client_ca`"),
        (
            format!("{everywhere}{files}anonymous = true\n"),
            "say with rules of [[daemon.access]] what they may do",
        ),
        (
            format!("[daemon.tls]\nlisten = []\n{files}anonymous = true\n"),
            "listen must not be empty",
        ),
        (
            format!("{everywhere}key = \"a.key\"\n"),
            "missing field `certificate`",
        ),
        (
            format!(
                "{everywhere}{files}anonymous = true\n\
                 [[daemon.access]]\nwho = {{ certificate = \"alice\" }}\n"
            ),
            "rule 1: it can never match: certificates are looked at only",
        ),
        (
            format!(
                "[daemon.tls]\nlisten = [\"127.0.0.1:4805\"]\n{files}client_ca = \"ca.pem\"\n\
                 [[daemon.access]]\nwho = {{ certificate = \"alice\", address = \"10.0.0.0/8\" }}\n"
            ),
            "rule 1: it can never match: nobody can connect from 10.0.0.0/8",
        ),
    ] {
        let said = wrong(&sections);
        assert!(said.contains(expected), "{sections}: {said}");
    }
    let output = check_sections(&format!(
        "{everywhere}{files}client_ca = \"ca.pem\"\n\
         [[daemon.access]]\nwho = {{ certificate = \"alice\", address = \"10.0.0.0/8\" }}\n"
    ));
    let text = String::from_utf8(output.stdout).unwrap();
    for (name, value) in [
        ("listen", "0.0.0.0:4805"),
        ("anonymous", "no (clients need a certificate of client_ca)"),
        ("certificate alice, address 10.0.0.0/8", "connect"),
    ] {
        let row = format!("{name:<22} {value}");
        assert!(
            text.lines().any(|line| line == row),
            "{row} is not in {text}"
        );
    }
}

#[test]
fn messages_of_daemons_have_to_fit_the_ring_where_there_is_one() {
    let said = |settings: &str| {
        let output = check(settings, "127.0.0.1", &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let (code, text) = said("message_bytes = 5000\n[daemon]\nclients = 5");
    assert_eq!(code, Some(2));
    assert!(
        text.contains("message_bytes of the ring must be at least"),
        "{text}"
    );
    let fits = said("message_bytes = 5000\n[daemon]\nmessage_bytes = 1000");
    assert_eq!(fits, (Some(0), String::new()));
    // A node in an application's process has no such messages.
    assert_eq!(said("message_bytes = 5000"), (Some(0), String::new()));
}

#[test]
fn who_votes_and_where_is_said_with_what_follows_from_it() {
    let said = |settings: &str, options: &[&str]| {
        let settings = format!("engine = \"u-ring-paxos\"\n{settings}");
        let output = check(&settings, "127.0.0.1", options);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, text) = said("state_dir = \"/tmp\"", &["--node", "2"]);
    assert_eq!(code, Some(0), "{text}");
    for line in [
        "acceptors              1, 2 (all that are listed)",
        "storage                sync (a vote waits for the disk)",
        "votes_directory        /tmp/node-2.votes",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(text.contains("majority               2: so many"), "{text}");
    assert!(text.contains("an odd number is best"), "{text}");
    let (code, text) = said("paxos = { storage = \"memory\", acceptors = [2] }", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("acceptors              2 (set)"), "{text}");
    assert!(!text.contains("odd number") && !text.contains("votes_directory"));
    let embedded = "coordination           embedded";
    assert!(text.contains(embedded), "{text}");
    let etcd = |settings: &str| {
        said(
            &format!("state_dir = \"/tmp\"\npaxos.coordination = \"etcd\"\n{settings}"),
            &[],
        )
    };
    let (code, text) = etcd("paxos.etcd = [\"http://10.0.0.1:2379\", \"http://10.0.0.2:2379\"]");
    assert_eq!(code, Some(0), "{text}");
    let members = "coordination           etcd at http://10.0.0.1:2379, http://10.0.0.2:2379, keys below \
                   /rota/7/configurations/";
    assert!(text.lines().any(|found| found == members), "{text}");
    assert!(!text.contains("founded anew"), "{text}");
    let (code, text) = etcd("paxos.etcd = [\"http://e:2379\"]\npaxos.storage = \"memory\"");
    assert!(code == Some(0) && text.contains("founded anew"), "{text}");
    for (settings, words) in [
        ("", "has to know where etcd is"),
        ("paxos.etcd = []", "has to know where etcd is"),
        ("paxos.etcd = [\"10.0.0.1:2379\"]", "like http://HOST:PORT"),
        (
            "paxos.etcd = [\"https://10.0.0.1:2379\"]",
            "with `etcd_tls`",
        ),
        (
            "paxos.etcd = [\"http://10.0.0.1:2379\"]\npaxos.etcd_tls = { ca = \"ca.pem\" }",
            "like https://HOST:PORT",
        ),
        (
            "paxos.etcd = [\"https://10.0.0.1:2379\"]\npaxos.etcd_tls = { ca = \"ca.pem\", key = \"k\" }",
            "set both or none",
        ),
        (
            "paxos.etcd = [\"http://e:2379\"]\npaxos.etcd_login = { user = \"\", password_file = \"p\" }",
            "has no `user`",
        ),
        (
            "paxos.etcd = [\"http://e:2379\"]\npaxos.etcd_login = { user = \"rota\", password = \"sesame\" }",
            "line 8 is not understood",
        ),
    ] {
        let (code, text) = etcd(settings);
        assert!(code == Some(2) && text.contains(words), "{text}");
        assert!(!text.contains("sesame"), "{text}");
    }
    let tls = "paxos.etcd = [\"https://e:2379\"]\npaxos.etcd_tls = { ca = \"missing-ca.pem\" }";
    assert_eq!(etcd(tls).0, Some(0));
    let settings = format!("paxos.storage = \"memory\"\npaxos.coordination = \"etcd\"\n{tls}");
    let (code, text) = said(&settings, &["--node", "2"]);
    assert!(
        code == Some(2) && text.contains("etcd_tls: /") && text.contains("/missing-ca.pem: "),
        "{text}"
    );
    let login = "paxos.etcd = [\"http://e:2379\"]\npaxos.etcd_login = { user = \"n{node}\", password_file = \"missing-{node}\" }";
    let (code, text) = etcd(login);
    assert!(
        code == Some(0) && text.contains("as n{node}, keys") && text.contains("in the clear"),
        "{text}"
    );
    let settings = format!("paxos.storage = \"memory\"\npaxos.coordination = \"etcd\"\n{login}");
    let (code, text) = said(&settings, &["--node", "2"]);
    assert!(
        code == Some(2) && text.contains("etcd_login: /") && text.contains("/missing-2: "),
        "{text}"
    );
    let unused = "paxos.etcd_login = { user = \"rota\", password_file = \"p\" }";
    let (code, text) = said(&format!("state_dir = \"/tmp\"\n{unused}"), &[]);
    assert!(code == Some(2) && text.contains("is not asked"), "{text}");
    let unused = "state_dir = \"/tmp\"\npaxos.etcd = [\"http://10.0.0.1:2379\"]";
    let (code, text) = said(unused, &[]);
    assert!(code == Some(2) && text.contains("is not asked"), "{text}");
    let (code, text) = said("", &[]);
    assert!(
        code == Some(2) && text.contains("set `state_dir`"),
        "{text}"
    );
}
