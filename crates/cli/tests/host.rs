//! The words of `rota config check --node` on this host are those of the daemon when it starts.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rota_net::Transport;
use rota_node::NodeConfig;

fn rota(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .output();
    output.expect("the binary")
}

/// The configuration of one node, changed, with these settings in `[daemon]`.
fn write(dir: &Path, change: impl FnOnce(&mut NodeConfig), settings: &str) -> String {
    let mut config = NodeConfig::loopback(1, 11_900);
    config.transport = Transport::Unicast;
    change(&mut config);
    let at = dir.display();
    let default = format!("socket = \"{at}/a\"\nadmin = \"{at}/b\"");
    let settings = if settings.is_empty() {
        &default
    } else {
        settings
    };
    let text = config.to_toml().expect("TOML");
    let file = dir.join("rota.toml");
    fs::write(&file, format!("{text}\n[daemon]\n{settings}\n")).expect("a file");
    file.display().to_string()
}

/// Both refuse it, in these words.
fn refused(file: &str, words: &str) {
    for command in [
        &["config", "check", file, "--node", "1"][..],
        &["daemon", "--config", file, "--node", "1"],
    ] {
        let output = rota(command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {errors}");
        assert!(errors.contains(words), "{command:?}: {errors}");
    }
}

#[test]
fn what_this_host_lacks_is_said_by_the_check_as_by_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    let well = write(at, |_| (), "");
    let output = rota(&["config", "check", &well, "--node", "1"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let set_address = |to: &'static str| {
        move |config: &mut NodeConfig| config.nodes[0].address = to.parse().expect("an address")
    };
    for address in ["0.0.0.0", "239.1.2.3", "255.255.255.255"] {
        refused(&write(at, set_address(address), ""), "is none");
    }
    refused(
        &write(at, set_address("192.0.2.77"), ""),
        "cannot use 192.0.2.77:",
    );
    let mixed = |config: &mut NodeConfig| {
        *config = NodeConfig::loopback(2, 11_900);
        config.nodes[1].address = "192.0.2.77".parse().expect("an address");
    };
    refused(&write(at, mixed, ""), "loopback interface");
    let missing = at.join("missing");
    let state = |config: &mut NodeConfig| config.state_dir = Some(missing);
    refused(&write(at, state, ""), "the directory does not exist");
}

#[test]
fn paths_of_sockets_that_cannot_be_are_said_by_the_check_as_by_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    let both = format!("socket = \"{0}/x\"\nadmin = \"{0}/x\"", at.display());
    refused(&write(at, |_| (), &both), "socket and admin are both ");
    let long = format!(
        "socket = \"/tmp/{}\"\nadmin = \"{}/b\"",
        "x".repeat(103),
        at.display()
    );
    refused(&write(at, |_| (), &long), "has at most 107 bytes");
}

#[test]
fn an_interface_that_is_not_there_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let change = |config: &mut NodeConfig| {
        config.transport = Transport::Multicast("239.77.7.7:11950".parse().expect("a group"));
        config.interface = Some("eth77".to_owned());
    };
    let file = write(dir.path(), change, "");
    refused(&file, "there is no network interface \"eth77\"");
}
