//! A configuration with all processes on this host.

use std::path::Path;

use rota_node::rings::{LevelingName, RingSection};
use rota_node::{NodeConfig, PaxosConfig, RingsConfig, VoteStorage};

use super::{KvConfig, KvSection, PartitionSection, ProcessSection};

/// The ports of a process beside those of its rings.
const PORTS: u16 = 5;

impl KvConfig {
    /// A store of partitions with the same number of replicas each, from this port on; see [`Self::ports`]. All files
    /// are below the directory.
    pub fn loopback(
        (partitions, replicas): (u16, u16),
        base_port: u16,
        (directory, storage): (&Path, VoteStorage),
    ) -> Self {
        let count = partitions * replicas;
        let mut common = NodeConfig::loopback(count, base_port);
        common.state_dir = Some(directory.join("votes"));
        let global = partitions + 1;
        let first = base_port + offset(count, global);
        let process = |node: u16| {
            let port = first + PORTS * (node - 1);
            ProcessSection {
                node,
                partition: (node - 1) / replicas + 1,
                state_port: port,
                link_port: port + 1,
                redis_port: Some(port + 2),
                cluster_port: Some(port + 3),
                metrics_port: Some(port + 4),
            }
        };
        let partition = |id: u16| PartitionSection {
            id,
            ring: id,
            slots: None,
        };
        let rings = rings((partitions, replicas), storage);
        Self {
            rings: RingsConfig { common, rings },
            kv: KvSection {
                global_ring: global,
                state_dir: directory.join("states"),
                patience_ms: None,
                clients: None,
                partition_mib: None,
                changes_bytes: None,
                insecure_clients: false,
                metrics_insecure: false,
                tls: None,
                user: Vec::new(),
                partition: (1..=partitions).map(partition).collect(),
                process: (1..=count).map(process).collect(),
            },
        }
    }

    /// The number of ports that [`Self::loopback`] takes, from the first on.
    pub const fn ports((partitions, replicas): (u16, u16)) -> u16 {
        let count = partitions * replicas;
        (2 * count + 1) * (partitions + 1) + PORTS * count
    }

    /// The configuration as a file.
    ///
    /// # Errors
    /// The configuration cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut table = toml::Table::try_from(&self.rings.common)?;
        table.insert("engine".to_owned(), "multi-ring".into());
        table.insert("ring".to_owned(), toml::Value::try_from(&self.rings.rings)?);
        table.insert("kv".to_owned(), toml::Value::try_from(&self.kv)?);
        toml::to_string(&table)
    }
}

/// The distance of a ring's ports from those of the first one.
const fn offset(nodes: u16, ring: u16) -> u16 {
    (2 * nodes + 1) * ring
}

/// The rings: one for each partition, and one for all.
fn rings((partitions, replicas): (u16, u16), storage: VoteStorage) -> Vec<RingSection> {
    let count = partitions * replicas;
    let of = |partition: u16| (1..=replicas).map(move |at| (partition - 1) * replicas + at);
    let section = |id: u16, voters: Vec<u16>| RingSection {
        id,
        port_offset: Some(offset(count, id - 1)),
        paxos: Some(PaxosConfig {
            storage,
            acceptors: Some(voters),
            ..PaxosConfig::default()
        }),
        ..RingSection::default()
    };
    let own = |partition: u16| RingSection {
        nodes: Some(of(partition).collect()),
        ..section(partition, of(partition).collect())
    };
    // The acceptors of the ring of all: an odd number, if possible, and of as many partitions as may be.
    let firsts = (1..=partitions).filter_map(|partition| of(partition).next());
    let voters: Vec<u16> = match partitions {
        1 => of(1).collect(),
        2 => firsts.chain(of(1).nth(1)).collect(),
        _ => firsts.take(3).collect(),
    };
    // Commands of one partition do not wait for the ring of all.
    let all = RingSection {
        leveling: LevelingName::Horizon,
        ..section(partitions + 1, voters)
    };
    (1..=partitions).map(own).chain([all]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;

    fn file(change: impl FnOnce(&mut KvConfig)) -> Result<KvConfig, ConfigError> {
        let directory = Path::new("/nowhere");
        let mut config = KvConfig::loopback((3, 3), 20_000, (directory, VoteStorage::Async));
        change(&mut config);
        KvConfig::from_toml(&config.to_toml().expect("a file"))
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        for (partitions, replicas) in [(1, 3), (2, 2), (3, 3), (4, 1)] {
            let of = (partitions, replicas);
            let directory = Path::new("/nowhere");
            let config = KvConfig::loopback(of, 20_000, (directory, VoteStorage::Sync));
            let text = config.to_toml().expect("a file");
            assert_eq!(KvConfig::from_toml(&text).expect("it is sound"), config);
            let last = config
                .kv
                .process
                .iter()
                .filter_map(|process| process.metrics_port);
            assert!(last.max() < Some(20_000 + KvConfig::ports(of)));
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused_in_words() {
        type Change = fn(&mut KvConfig);
        let wrong: [(&str, Change); 10] = [
            ("write `insecure_clients = true`", |config| {
                for node in &mut config.rings.common.nodes {
                    node.address = [10, 0, 0, node.id as u8].into();
                }
            }),
            ("2: partitions have numbers", |config| {
                config.kv.partition[0].id = 2
            }),
            ("is that of two", |config| config.kv.partition[0].ring = 4),
            ("is that of two", |config| config.kv.partition[0].ring = 2),
            ("there is no `[[kv.partition]]` 9", |config| {
                config.kv.process[0].partition = 9;
            }),
            ("node 4 has to be on ring 1", |config| {
                config.kv.process[3].partition = 1;
            }),
            (
                "no `[[kv.process]]` has a replica of partition 1",
                |config| {
                    config.kv.process.drain(..3);
                },
            ),
            ("two things would listen", |config| {
                config.kv.process[0].link_port = config.kv.process[1].link_port;
            }),
            ("each is another one", |config| {
                config.kv.process[0].node = 2
            }),
            ("no partition has slot 0", |config| {
                config.kv.partition[0].slots = Some("1-16383".to_owned());
            }),
        ];
        for (words, change) in wrong {
            let error = file(change).expect_err(words).to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
        let slots = |text: &'static str| {
            file(move |config| config.kv.partition[0].slots = Some(text.to_owned()))
        };
        let error = slots("1-x").expect_err("no slots").to_string();
        assert!(error.contains("slots are numbers"), "{error}");
        assert!(slots("0-16383").is_ok());
    }
}
