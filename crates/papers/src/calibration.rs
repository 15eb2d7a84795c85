//! The calibration: what simulated machines and networks are.

use std::fmt;

use rota_wire::{Costs, Interface, WirePlan};
use serde::Deserialize;
use sha2::{Digest, Sha256};

const FILE: &str = include_str!("../../../docs/papers/calibration.toml");

/// All numbers of `docs/papers/calibration.toml`, in the units of their names.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the file says what its numbers are")]
pub struct Calibration {
    pub one_gig: NetworkNumbers,
    pub ten_gig: NetworkNumbers,
    pub machine: MachineNumbers,
    pub daemon: DaemonNumbers,
    pub spread: SpreadNumbers,
    pub fastcast: ClusterNumbers,
    pub bursts: BurstNumbers,
    pub regions: RegionNumbers,
    pub disks: DiskNumbers,
}

/// A network.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkNumbers {
    pub rate_mbps: f64,
    pub path_us: f64,
    pub switch_us: f64,
    pub cut_through: bool,
    pub port_kb: f64,
}

/// A machine with the library prototype.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineNumbers {
    pub send_us: f64,
    pub receive_us: f64,
    pub token_us: f64,
    pub byte_ns: f64,
    pub card_kb: f64,
    pub socket_kb: f64,
}

/// What a daemon adds.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonNumbers {
    pub message_us: f64,
    pub client_us: f64,
}

/// What Spread adds.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadNumbers {
    pub message_us: f64,
}

/// FastCast's cluster.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNumbers {
    pub path_us: f64,
    pub slower: f64,
    pub port_kb: f64,
}

/// Rota's bursts.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstNumbers {
    pub call_share: f64,
}

/// The round trips between the regions of Multi-Ring's paper.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionNumbers {
    pub e1_w1_ms: f64,
    pub e1_w2_ms: f64,
    pub e1_eu_ms: f64,
    pub w1_w2_ms: f64,
    pub eu_w1_ms: f64,
    pub eu_w2_ms: f64,
    pub even_ms: f64,
}

/// The disks of Multi-Ring's paper.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskNumbers {
    pub mbytes: f64,
    pub write_us: f64,
}

/// A number of the calibration.
pub type Number = fn(&mut Calibration) -> &mut f64;

/// The numbers that verdicts may hang on, with their names in the file.
pub const NUMBERS: [(&str, Number); 14] = [
    ("one_gig.path_us", |all| &mut all.one_gig.path_us),
    ("one_gig.switch_us", |all| &mut all.one_gig.switch_us),
    ("one_gig.port_kb", |all| &mut all.one_gig.port_kb),
    ("ten_gig.path_us", |all| &mut all.ten_gig.path_us),
    ("ten_gig.switch_us", |all| &mut all.ten_gig.switch_us),
    ("machine.send_us", |all| &mut all.machine.send_us),
    ("machine.receive_us", |all| &mut all.machine.receive_us),
    ("machine.token_us", |all| &mut all.machine.token_us),
    ("machine.byte_ns", |all| &mut all.machine.byte_ns),
    ("daemon.message_us", |all| &mut all.daemon.message_us),
    ("daemon.client_us", |all| &mut all.daemon.client_us),
    ("spread.message_us", |all| &mut all.spread.message_us),
    ("fastcast.path_us", |all| &mut all.fastcast.path_us),
    ("fastcast.slower", |all| &mut all.fastcast.slower),
];

/// A fault of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CalibrationError(String);

impl fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "docs/papers/calibration.toml: {}", self.0)
    }
}

impl std::error::Error for CalibrationError {}

/// The payload, in bytes, of the messages that a machine's times were fitted with.
const FITTED_PAYLOAD: f64 = 1350.0;

/// Nanoseconds.
fn nanos(us: f64) -> u64 {
    (us * 1000.0).round().max(0.0) as u64
}

impl Calibration {
    /// The numbers that are built in.
    ///
    /// # Errors
    /// The file is not what this program reads.
    pub fn built_in() -> Result<Self, CalibrationError> {
        toml::from_str(FILE).map_err(|error| CalibrationError(error.to_string()))
    }

    /// The hash of the file, SHA-256 in hexadecimal digits.
    pub fn hash() -> String {
        let digest = Sha256::digest(FILE.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The file itself.
    pub const fn file() -> &'static str {
        FILE
    }

    /// A network with these numbers.
    pub fn wire(&self, numbers: &NetworkNumbers) -> WirePlan {
        let bytes = |kb: f64| (kb * 1000.0) as u64;
        WirePlan {
            rate: (numbers.rate_mbps * 1e6) as u64,
            path: nanos(numbers.path_us),
            switch: nanos(numbers.switch_us),
            cut_through: numbers.cut_through,
            port_bytes: bytes(numbers.port_kb),
            pool_bytes: None,
            card_bytes: bytes(self.machine.card_kb),
            mtu: 1500,
            socket_bytes: bytes(self.machine.socket_kb) as usize,
            far: Vec::new(),
        }
    }

    /// The network of FastCast's cluster.
    pub fn cluster_wire(&self) -> WirePlan {
        self.wire(&NetworkNumbers {
            path_us: self.fastcast.path_us,
            port_kb: self.fastcast.port_kb,
            ..self.one_gig
        })
    }

    /// The work of a machine on which messages cost so much more each, and clients are so far away.
    pub fn costs(&self, message_us: f64, client_us: f64) -> Costs {
        let machine = &self.machine;
        let of_bytes = machine.byte_ns * FITTED_PAYLOAD / 1000.0;
        let fixed = |us: f64| nanos((us - of_bytes).max(0.0));
        Costs {
            interface: Interface::Single,
            send: fixed(machine.send_us),
            receive: fixed(machine.receive_us),
            call: 0,
            send_byte: nanos(machine.byte_ns),
            receive_byte: nanos(machine.byte_ns),
            token: nanos(machine.token_us),
            submit: nanos(message_us),
            deliver: nanos(message_us),
            deliver_byte: 0,
            wake: 0,
            client: nanos(client_us),
        }
    }

    /// The same with Rota's bursts.
    pub fn with_bursts(&self, costs: Costs) -> Costs {
        let least = costs.send.min(costs.receive);
        Costs {
            interface: Interface::Bursts,
            call: (least as f64 * self.bursts.call_share) as u64,
            ..costs
        }
    }

    /// The work of a machine of FastCast's cluster.
    pub fn cluster_costs(&self) -> Costs {
        let costs = self.costs(0.0, 0.0);
        let slower = |nanos: u64| (nanos as f64 * self.fastcast.slower) as u64;
        Costs {
            send: slower(costs.send),
            receive: slower(costs.receive),
            send_byte: slower(costs.send_byte),
            receive_byte: slower(costs.receive_byte),
            token: slower(costs.token),
            ..costs
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_each_number_says_where_it_is_from() {
        Calibration::built_in().expect("the file");
        for line in FILE
            .lines()
            .filter(|line| line.contains(" = ") && !line.starts_with('#'))
        {
            let sources = [
                "calibrated",
                "published",
                "assumption",
                "derived",
                "the network's name",
                "Catalyst",
            ];
            assert!(sources.iter().any(|source| line.contains(source)), "{line}");
        }
    }

    #[test]
    fn times_for_the_fitted_payload_are_those_of_the_file() {
        let calibration = Calibration::built_in().expect("the file");
        let costs = calibration.costs(0.0, 0.0);
        let sent = costs.send + costs.send_byte * 1350 / 1000;
        assert!(sent.abs_diff(nanos(calibration.machine.send_us)) < 3);
    }
}
