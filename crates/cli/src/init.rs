//! `rota init`: the configuration and the key of a new cluster.

mod hosts;
mod owner;
mod text;

use std::fmt::Display;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_core::EngineName;
use rota_daemon::DaemonConfig;
use rota_net::{KeyRing, random_u64, whole_path};
use rota_node::NodeConfig;
use serde::Serialize;

use crate::client::Failure;
use crate::say::{print, print_json};
use hosts::Host;
use owner::Owner;
use text::Plan;

/// The name of the configuration in its directory.
const CONFIG: &str = "rota.toml";

/// The name of the key file in the same directory.
const KEY: &str = "cluster.key";

/// The permissions of the configuration, which holds no secret.
const CONFIG_MODE: u32 = 0o644;

/// Options of `rota init`.
#[derive(Clone, Debug, clap::Args)]
pub struct InitOptions {
    /// The hosts, separated by commas: NAME=ADDRESS or ADDRESS, for node 1, node 2 and so on
    #[arg(
        long,
        required = true,
        value_name = "NAME=ADDRESS,...",
        value_delimiter = ','
    )]
    hosts: Vec<Host>,
    /// The protocol that orders the messages
    #[arg(long, value_name = "ENGINE", default_value_t = EngineName::default())]
    engine: EngineName,
    /// Send data once to all by multicast, to this group or to one of the cluster's own; the default is a copy to each node
    #[arg(long, value_name = "GROUP:PORT", num_args = 0..=1)]
    multicast: Option<Option<SocketAddr>>,
    /// The interface for multicast [default: the one that has the node's address]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The UDP port for data; the next one is for tokens. Nodes at one address get the ports behind these
    #[arg(long, value_name = "PORT", default_value_t = 7701, value_parser = clap::value_parser!(u16).range(1..65_535))]
    port: u16,
    /// Tells clusters on one network apart [default: a random number]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    cluster: Option<u32>,
    /// Where rota.toml and cluster.key are to be: in this directory on all hosts
    #[arg(long, value_name = "DIR", default_value = "/etc/rota")]
    output: PathBuf,
    /// Where nodes keep what they must not forget
    #[arg(long, value_name = "DIR", default_value = "/var/lib/rota")]
    state_dir: PathBuf,
    /// Where the daemon's sockets are to be
    #[arg(long, value_name = "DIR", default_value = "/run/rota")]
    run_dir: PathBuf,
    /// All daemons run on this host, as in namespaces: names of their sockets carry the node's number
    #[arg(long)]
    one_host: bool,
    /// Who the key file is for: the user that daemons run as [default: rota, if root runs this and there is such a user]
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The files that were written.
#[derive(Debug, Serialize)]
struct Written<'a> {
    config: &'a Path,
    key: &'a Path,
    cluster: u32,
    engine: &'static str,
    nodes: Vec<WrittenNode>,
}

#[derive(Debug, Serialize)]
struct WrittenNode {
    id: usize,
    name: Option<String>,
    address: String,
}

/// Writes both files, or none of them.
pub fn main(options: &InitOptions) -> ExitCode {
    match init(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

fn init(options: &InitOptions) -> Result<(), Failure> {
    let directory = whole_path(&options.output);
    let (config_path, key_path) = (directory.join(CONFIG), directory.join(KEY));
    let owner = Owner::find(options.owner.as_deref()).map_err(Failure::misused)?;
    let cluster = match options.cluster {
        Some(cluster) => cluster,
        None => draw_cluster().map_err(Failure::failed)?,
    };
    let text = text::write(&Plan {
        cluster,
        engine: options.engine,
        hosts: &options.hosts,
        multicast: options.multicast,
        interface: options.interface.as_deref(),
        port: options.port,
        key: &key_path,
        state_dir: &whole_path(&options.state_dir),
        run_dir: &whole_path(&options.run_dir),
        one_host: options.one_host || hosts::share_an_address(&options.hosts),
    })
    .map_err(Failure::misused)?;
    let config = checked(&text).map_err(Failure::misused)?;
    write(&text, (&config_path, &key_path), owner.as_ref())?;
    report(options, &config, (&config_path, &key_path), owner.as_ref());
    Ok(())
}

/// Writes the configuration and a new key, or nothing.
fn write(text: &str, (config, key): (&Path, &Path), owner: Option<&Owner>) -> Result<(), Failure> {
    let failed =
        |path: &Path, error: &dyn Display| Failure::misused(format!("{}: {error}", path.display()));
    for path in [config, key] {
        if path.symlink_metadata().is_ok() {
            return Err(failed(path, &"it exists, and is not written over"));
        }
    }
    if let Some(directory) = config.parent() {
        fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    }
    let made = KeyRing::generate().and_then(|ring| ring.create(key));
    made.map_err(|error| failed(key, &error))?;
    let rest = give(key, owner)
        .map_err(|error| failed(key, &error))
        .and_then(|()| put(config, text).map_err(|error| failed(config, &error)));
    if rest.is_err() {
        // Without a configuration the key is of no use, and it would be in the way of the next try.
        let _ = fs::remove_file(key);
    }
    rest
}

/// A number that no other cluster on the network is likely to have.
fn draw_cluster() -> io::Result<u32> {
    // TOML's integers are signed, and people have to be able to read it out.
    random_u64().map(|number| (number % 1_000_000_000) as u32 + 1)
}

/// The configuration that daemons will read.
fn checked(text: &str) -> Result<NodeConfig, String> {
    let config = NodeConfig::from_toml(text).map_err(|error| error.to_string())?;
    let daemon = DaemonConfig::from_toml(text).map_err(|error| error.to_string())?;
    for node in config.members() {
        daemon
            .check_paths(node)
            .map_err(|error| error.to_string())?;
    }
    daemon
        .check_ring(&config)
        .map_err(|error| error.to_string())?;
    Ok(config)
}

/// Writes a file that does not exist yet.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => io::Error::other("it exists, and is not written over"),
            _ => error,
        })?;
    // Whatever the umask: the daemon's user has to read it.
    let written = file
        .set_permissions(Permissions::from_mode(CONFIG_MODE))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a configuration would be in the way of a whole one.
        let _ = fs::remove_file(path);
    }
    written
}

/// Gives a file to the user that daemons run as.
fn give(path: &Path, owner: Option<&Owner>) -> io::Result<()> {
    match owner {
        Some(owner) => chown(path, Some(owner.uid), Some(owner.gid)),
        None => Ok(()),
    }
}

fn report(
    options: &InitOptions,
    config: &NodeConfig,
    (config_path, key_path): (&Path, &Path),
    owner: Option<&Owner>,
) {
    if options.json {
        let node = |(at, host): (usize, &Host)| WrittenNode {
            id: at + 1,
            name: host.name.clone(),
            address: host.address.clone(),
        };
        print_json(&Written {
            config: config_path,
            key: key_path,
            cluster: config.cluster,
            engine: config.engine.name(),
            nodes: options.hosts.iter().enumerate().map(node).collect(),
        });
        return;
    }
    let owner = owner.map_or_else(
        || "for the user that has run this".to_owned(),
        |owner| format!("for the user {}", owner.name),
    );
    let (config_path, key_path) = (config_path.display(), key_path.display());
    let nodes = config.nodes.len();
    print(&format!(
        "{config_path}: a cluster of {nodes} nodes with {}\n{key_path}: its key, {owner} and nobody else\n\n\
         Next:\n  1. have the same two files at the same place on all hosts, the key for the same user;\n  \
         2. on each: rota config check {config_path} --node N\n  \
         3. on each: rota daemon --config {config_path}, or, with the package, systemctl enable --now rota",
        config.engine.name(),
    ));
}

#[cfg(test)]
#[path = "init/tests.rs"]
mod tests;
