//! The section `[daemon]` of a configuration.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use rota_core::contract::NodeId;
use serde::Deserialize;

/// Stands for the node's number in paths, so that all nodes can share one file.
const NODE: &str = "{node}";

/// What a daemon is told beside what every node is.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// Clients that may be connected.
    pub clients: usize,
    /// Bytes that may wait for a client that does not read. One for whom more would wait is disconnected.
    pub client_queue_bytes: usize,
    /// How long a client may take to say who it is, in milliseconds.
    pub handshake_ms: u64,
    /// Connections that have not said who they are.
    pub handshakes: usize,
    /// The port for Spread's clients; closed if there is no such section.
    pub spread: Option<SpreadConfig>,
}

/// Where Spread's clients connect. Their protocol has no protection.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpreadConfig {
    /// A Unix socket; Spread's own is `/tmp/4803`. `{node}` stands for the node's number.
    pub socket: Option<PathBuf>,
    /// Addresses to listen at; Spread's port is 4803.
    pub tcp: Vec<SocketAddr>,
    /// Who may connect by TCP. Needed where one of the addresses is not of the loopback interface.
    pub allow: Vec<IpNet>,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            clients: 4096,
            client_queue_bytes: 16 << 20,
            handshake_ms: 10_000,
            handshakes: 256,
            spread: None,
        }
    }
}

impl SpreadConfig {
    /// Whether a client at this address may connect.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self.allow.is_empty() {
            true => address.is_loopback(),
            false => self.allow.iter().any(|net| net.contains(&address)),
        }
    }
}

/// What is wrong with the section.
#[derive(Debug)]
pub enum DaemonConfigError {
    /// An unknown setting, or a value of the wrong kind.
    Syntax(Box<toml::de::Error>),
    /// There are no clients, no room for them or no time.
    Zero(&'static str),
    /// The port for Spread's clients is open to other hosts, and `allow` does not say to which.
    OpenToAll(SocketAddr),
    /// No way for clients to connect.
    NoPort,
}

impl fmt::Display for DaemonConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(f),
            Self::Zero(name) => write!(f, "[daemon]: {name} must not be 0"),
            Self::OpenToAll(address) => write!(
                f,
                "[daemon.spread]: {address} can be reached from other hosts, and its clients are not \
                 protected: say with `allow` from which networks they may come"
            ),
            Self::NoPort => f.write_str(
                "[daemon]: clients cannot connect: there is neither a socket nor an address for them",
            ),
        }
    }
}

impl std::error::Error for DaemonConfigError {}

/// The sections of a file that this crate reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    daemon: DaemonConfig,
}

impl DaemonConfig {
    /// Reads the section of a configuration file; the defaults where there is none.
    ///
    /// # Errors
    /// [`DaemonConfigError`], with the line where that is known.
    pub fn from_toml(text: &str) -> Result<Self, DaemonConfigError> {
        let file: File =
            toml::from_str(text).map_err(|error| DaemonConfigError::Syntax(Box::new(error)))?;
        file.daemon.check()?;
        Ok(file.daemon)
    }

    /// Whether a daemon can run with this.
    ///
    /// # Errors
    /// [`DaemonConfigError`]: the first thing that is wrong.
    pub fn check(&self) -> Result<(), DaemonConfigError> {
        let not_zero = [
            ("clients", self.clients),
            ("client_queue_bytes", self.client_queue_bytes),
            ("handshake_ms", self.handshake_ms as usize),
            ("handshakes", self.handshakes),
        ];
        if let Some((name, _)) = not_zero.into_iter().find(|(_, value)| *value == 0) {
            return Err(DaemonConfigError::Zero(name));
        }
        if let Some(spread) = &self.spread {
            let beyond = |address: &&SocketAddr| !address.ip().is_loopback();
            if spread.allow.is_empty()
                && let Some(address) = spread.tcp.iter().find(beyond)
            {
                return Err(DaemonConfigError::OpenToAll(*address));
            }
        }
        Ok(())
    }

    /// Whether clients can connect.
    ///
    /// # Errors
    /// [`DaemonConfigError::NoPort`].
    pub fn check_ports(&self) -> Result<(), DaemonConfigError> {
        let spread = self.spread.as_ref();
        let open = spread.is_some_and(|spread| spread.socket.is_some() || !spread.tcp.is_empty());
        if open {
            Ok(())
        } else {
            Err(DaemonConfigError::NoPort)
        }
    }
}

/// A path of this node's own.
pub(crate) fn path_of(path: &Path, node: NodeId) -> PathBuf {
    match path.to_str() {
        Some(text) => PathBuf::from(text.replace(NODE, &node.to_string())),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_the_section_has_the_defaults() {
        let config = DaemonConfig::from_toml("cluster = 7").expect("defaults");
        assert_eq!(config, DaemonConfig::default());
        assert!(matches!(
            config.check_ports(),
            Err(DaemonConfigError::NoPort)
        ));
    }

    #[test]
    fn spreads_port_is_open_to_other_hosts_only_if_it_says_to_which() {
        let file = |allow: &str| {
            format!("[daemon.spread]\ntcp = [\"127.0.0.1:4803\", \"10.0.0.1:4803\"]\n{allow}")
        };
        let refused = DaemonConfig::from_toml(&file(""));
        assert!(
            matches!(refused, Err(DaemonConfigError::OpenToAll(address)) if address.port() == 4803)
        );
        let config = DaemonConfig::from_toml(&file("allow = [\"10.0.0.0/8\"]")).expect("a list");
        let spread = config.spread.expect("the section");
        let may = |address: &str| spread.allows(address.parse().expect("an address"));
        assert!(may("10.9.9.9") && may("::ffff:10.0.0.7"));
        assert!(!may("11.0.0.1") && !may("127.0.0.1") && !may("::1"));
    }

    #[test]
    fn without_a_list_only_this_host_may_connect() {
        let spread = SpreadConfig::default();
        assert!(spread.allows(IpAddr::from([127, 0, 0, 1])));
        assert!(!spread.allows(IpAddr::from([10, 0, 0, 1])));
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text: &str| match DaemonConfig::from_toml(text) {
            Err(error) => error.to_string(),
            Ok(config) => panic!("{config:?}"),
        };
        assert!(wrong("[daemon]\nclients = 0").contains("clients must not be 0"));
        assert!(wrong("[daemon]\nclient = 1").contains("unknown field `client`"));
        assert!(wrong("[daemon.spread]\nallow = [\"ten\"]").contains("line 2"));
    }

    #[test]
    fn a_path_may_name_its_node() {
        let node = NodeId::new(7).expect("not 0");
        let path = path_of(Path::new("/run/rota/{node}.sock"), node);
        assert_eq!(path, Path::new("/run/rota/7.sock"));
    }
}
