//! A configuration with all processes on this host.

use std::path::Path;

use rota_node::rings::RingSection;
use rota_node::{NodeConfig, PaxosConfig, RingsConfig, VoteStorage};

use super::{LogConfig, LogSection, ProcessSection};

/// The ports of a process beside those of its rings.
const PORTS: u16 = 4;

impl LogConfig {
    /// Processes that are all on the same number of rings, from this port on; see [`Self::ports`]. All files are below
    /// the directory.
    pub fn loopback(
        (rings, processes): (u16, u16),
        base_port: u16,
        (directory, storage): (&Path, VoteStorage),
    ) -> Self {
        let mut common = NodeConfig::loopback(processes, base_port);
        common.state_dir = Some(directory.join("votes"));
        let section = |id: u16| RingSection {
            id,
            port_offset: Some(offset(processes, id - 1)),
            paxos: Some(PaxosConfig {
                storage,
                ..PaxosConfig::default()
            }),
            ..RingSection::default()
        };
        let first = base_port + offset(processes, rings);
        let process = |node: u16| {
            let port = first + PORTS * (node - 1);
            ProcessSection {
                node,
                state_port: port,
                link_port: port + 1,
                redis_port: Some(port + 2),
                metrics_port: Some(port + 3),
            }
        };
        Self {
            rings: RingsConfig {
                common,
                rings: (1..=rings).map(section).collect(),
            },
            log: LogSection {
                rings: (1..=rings).collect(),
                state_dir: directory.join("logs"),
                patience_ms: None,
                clients: None,
                cache_mib: None,
                free_mib: None,
                scrub_s: None,
                insecure_clients: false,
                metrics_insecure: false,
                tls: None,
                user: Vec::new(),
                process: (1..=processes).map(process).collect(),
            },
        }
    }

    /// The number of ports that [`Self::loopback`] takes, from the first on.
    pub const fn ports((rings, processes): (u16, u16)) -> u16 {
        offset(processes, rings) + PORTS * processes
    }

    /// The configuration as a file.
    ///
    /// # Errors
    /// The configuration cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut table = toml::Table::try_from(&self.rings.common)?;
        table.insert("engine".to_owned(), "multi-ring".into());
        table.insert("ring".to_owned(), toml::Value::try_from(&self.rings.rings)?);
        table.insert("log".to_owned(), toml::Value::try_from(&self.log)?);
        toml::to_string(&table)
    }
}

/// The distance of a ring's ports from those of the first one.
const fn offset(nodes: u16, ring: u16) -> u16 {
    (2 * nodes + 1) * ring
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;

    fn file(change: impl FnOnce(&mut LogConfig)) -> Result<LogConfig, ConfigError> {
        let directory = Path::new("/nowhere");
        let mut config = LogConfig::loopback((2, 3), 20_000, (directory, VoteStorage::Async));
        change(&mut config);
        LogConfig::from_toml(&config.to_toml().expect("a file"))
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        for of in [(1, 1), (2, 3), (5, 4)] {
            let directory = Path::new("/nowhere");
            let config = LogConfig::loopback(of, 20_000, (directory, VoteStorage::Sync));
            let text = config.to_toml().expect("a file");
            assert_eq!(LogConfig::from_toml(&text).expect("it is sound"), config);
            let ports = config.log.process.iter();
            let last = ports.filter_map(|process| process.metrics_port).max();
            assert_eq!(last, Some(20_000 + LogConfig::ports(of) - 1));
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused_in_words() {
        type Change = fn(&mut LogConfig);
        let wrong: [(&str, Change); 7] = [
            ("write `insecure_clients = true`", |config| {
                for node in &mut config.rings.common.nodes {
                    node.address = [10, 0, 0, node.id as u8].into();
                }
            }),
            ("names no ring", |config| config.log.rings.clear()),
            ("names ring 1 twice", |config| config.log.rings[1] = 1),
            ("node 1 has to be on ring 7", |config| {
                config.log.rings[1] = 7
            }),
            ("there is no `[[log.process]]`", |config| {
                config.log.process.clear();
            }),
            ("two things would listen", |config| {
                config.log.process[0].link_port = config.log.process[1].link_port;
            }),
            ("each is another one", |config| {
                config.log.process[0].node = 2
            }),
        ];
        for (words, change) in wrong {
            let error = file(change).expect_err(words).to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
