//! Keys as Kubernetes and systemd hand them over.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// A user who has no name here.
const USER: u32 = 23_456;

fn key(path: &Path) {
    let made = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["key", "new"])
        .arg(path)
        .output()
        .expect("the binary");
    assert!(made.status.success(), "{made:?}");
}

/// A configuration with this key file.
fn config(dir: &Path, key_file: &str) -> std::path::PathBuf {
    let path = dir.join("rota.toml");
    let text = format!(
        "cluster = 7\nkey_file = \"{key_file}\"\ntransport = \"unicast\"\n[[node]]\nid = 1\naddress = \"127.0.0.1\"\n\
         data_port = 2001\ntoken_port = 3001\n"
    );
    fs::write(&path, text).expect("a file");
    path
}

fn check(config: &Path, change: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(["config", "check"]).arg(config);
    change(&mut command);
    command.output().expect("the binary")
}

#[test]
fn a_key_is_found_in_the_directory_of_a_services_credentials() {
    let dir = tempfile::tempdir().expect("a directory");
    let credentials = dir.path().join("credentials");
    fs::create_dir(&credentials).expect("a directory");
    key(&credentials.join("cluster.key"));
    let config = config(dir.path(), "$CREDENTIALS_DIRECTORY/cluster.key");
    let found = check(&config, |command| {
        command.env("CREDENTIALS_DIRECTORY", &credentials);
    });
    assert!(found.status.success(), "{found:?}");
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(
        said.contains("$CREDENTIALS_DIRECTORY/cluster.key (sends with key 1"),
        "{said}"
    );
    let lost = check(&config, |command| {
        command.env_remove("CREDENTIALS_DIRECTORY");
    });
    assert_eq!(lost.status.code(), Some(2));
    let said = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(
        said.starts_with("rota: $CREDENTIALS_DIRECTORY/cluster.key: No such file"),
        "{said}"
    );
}

/// A secret as the kubelet lays it out for a pod with `fsGroup`: root's, readable to the group, behind two links, in a directory
/// that everybody may enter.
#[test]
#[ignore = "needs root, to be another user"]
fn a_key_is_taken_as_kubernetes_mounts_it_and_not_when_others_may_read_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("..2026_11_30");
    fs::create_dir(&data).expect("a directory");
    let file = data.join("cluster.key");
    key(&file);
    symlink("..2026_11_30", dir.path().join("..data")).expect("a link");
    symlink("..data/cluster.key", dir.path().join("cluster.key")).expect("a link");
    for directory in [dir.path(), &*data] {
        fs::set_permissions(directory, Permissions::from_mode(0o755)).expect("it is root's");
    }
    chown(&file, Some(0), Some(USER)).expect("it is root's");
    let config = config(
        dir.path(),
        &dir.path().join("cluster.key").display().to_string(),
    );
    let as_user = |mode| {
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("it is root's");
        // Nobody but root may enter the directory of the binary; a copy can be run by all.
        let copy = dir.path().join("rota");
        if !copy.exists() {
            fs::copy(env!("CARGO_BIN_EXE_rota"), &copy).expect("a copy");
        }
        let output = Command::new("setpriv")
            .args([&format!("--reuid={USER}"), &format!("--regid={USER}")])
            .arg("--clear-groups")
            .arg(copy)
            .args(["config", "check"])
            .arg(&config)
            .output();
        output.expect("setpriv")
    };
    for mode in [0o440, 0o640] {
        let taken = as_user(mode);
        assert!(taken.status.success(), "{mode:o}: {taken:?}");
    }
    let refused = as_user(0o444);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("its permissions are 0444"), "{said}");
}
