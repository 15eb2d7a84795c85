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
fn where_ring_ids_are_kept_is_said_and_what_it_means_if_nowhere() {
    let said = |settings: &str| {
        let output = check(settings, "127.0.0.1", &["--node", "2"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let memory = said("");
    assert!(memory.contains("in memory only"), "{memory}");
    let disk = said("state_dir = \"/var/lib/rota\"");
    assert!(disk.contains("/var/lib/rota/node-2.ring"), "{disk}");
}

#[test]
fn who_counts_in_a_primary_and_where_it_is_kept_is_said() {
    let said = |settings: &str| {
        let output = check(settings, "127.0.0.1", &["--node", "2"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said("").contains("none (no configuration is called primary)"));
    let kept = said("primary = \"dynamic\"\nstate_dir = \"/var/lib/rota\"");
    assert!(kept.contains("1, 2 (all that are listed)"), "{kept}");
    assert!(kept.contains("/var/lib/rota/node-2.primary"), "{kept}");
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
    let with = |sections: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let node = "cluster = 7\ninsecure = true\ntransport = \"unicast\"\n[[node]]\nid = 1\n\
                    address = \"127.0.0.1\"\ndata_port = 2001\ntoken_port = 3001\n";
        write!(file, "{node}{sections}").unwrap();
        Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["config", "check"])
            .arg(file.path())
            .output()
            .unwrap()
    };
    let output = with(
        "[daemon]\nclients = 77\n[daemon.spread]\ntcp = [\"10.0.0.1:4803\"]\n\
         allow = [\"10.0.0.0/8\", \"fd00::/8\"]\n",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    for (name, value) in [
        ("socket", "/run/rota/rota.sock"),
        ("clients", "77"),
        ("client_queue_bytes", "16777216"),
        ("tcp", "10.0.0.1:4803"),
        ("allow", "10.0.0.0/8, fd00::/8"),
    ] {
        let row = format!("{name:<22} {value}");
        assert!(
            text.lines().any(|line| line == row),
            "{row} is not in {text}"
        );
    }
    let output = with("[daemon]\nclients = 0\n");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("clients must not be 0"), "{said}");
}
