//! The model beside the measurements of the thesis (ours: the thesis compares them only in words).

use crate::delays::{Load, agreed, safe};
use crate::ring::{Protocol, Ring};

/// The two networks of the thesis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// Gigabit Ethernet, thesis §5.2.1.
    OneGig,
    /// 10-gigabit Ethernet, thesis §5.2.2.
    TenGig,
}

/// A measurement of the library prototype with eight participants and messages of 1350 bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// The network.
    pub network: Network,
    /// The protocol.
    pub protocol: Protocol,
    /// Its personal and accelerated window.
    pub windows: (u32, u32),
    /// Payload ordered, Mbit/s.
    pub mbps: f64,
    /// Mean delay of agreed delivery, in microseconds.
    pub agreed_us: f64,
    /// Mean delay of safe delivery, in microseconds.
    pub safe_us: f64,
    /// The model's two times come from this row.
    pub is_fit: bool,
}

const NODES: u32 = 8;
const MESSAGE: u32 = 1350;

const fn row(
    (network, protocol): (Network, Protocol),
    windows: (u32, u32),
    (mbps, agreed_us, safe_us): (f64, f64, f64),
    is_fit: bool,
) -> Measured {
    Measured {
        network,
        protocol,
        windows,
        mbps,
        agreed_us,
        safe_us,
        is_fit,
    }
}

use Network::{OneGig, TenGig};
use Protocol::{Accelerated, Original};

/// The rows of headlines.csv that say throughput and both delays at full load: t01 to t21; the first is derived from t29 to t31.
pub const MEASURED: [Measured; 9] = [
    row((OneGig, Original), (20, 0), (628.0, 1626.0, 5893.0), false),
    row((OneGig, Original), (30, 0), (713.0, 2140.0, 7675.0), true),
    row((OneGig, Original), (100, 0), (840.0, 5904.0, 23378.0), true),
    row(
        (OneGig, Accelerated),
        (20, 20),
        (980.0, 1252.0, 4891.0),
        false,
    ),
    row(
        (OneGig, Accelerated),
        (30, 20),
        (986.0, 1698.0, 7099.0),
        false,
    ),
    row((TenGig, Original), (40, 0), (2440.0, 803.0, 2883.0), true),
    row((TenGig, Original), (100, 0), (2950.0, 1606.0, 5550.0), true),
    row(
        (TenGig, Accelerated),
        (40, 40),
        (4100.0, 562.0, 2220.0),
        false,
    ),
    row(
        (TenGig, Accelerated),
        (100, 100),
        (4595.0, 1236.0, 4940.0),
        false,
    ),
];

/// A row beside the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judged {
    /// The ring, with the times that the network's two fitted rows give.
    pub ring: Ring,
    /// The time of a rotation, from the measured throughput, in microseconds.
    pub rotation_us: f64,
    /// The time of a rotation in the model, in microseconds.
    pub model_rotation_us: f64,
    /// The throughput in the model, Mbit/s.
    pub model_mbps: f64,
    /// The model's mean delay of agreed delivery, with the measured rotation, in microseconds.
    pub agreed_us: f64,
    /// The model's mean delay of safe delivery, with the measured rotation, in microseconds.
    pub safe_us: f64,
}

/// The model beside a row.
pub fn judge(row: &Measured) -> Judged {
    let (message, hop_us) = fit(row.network);
    let (personal_window, accelerated_window) = row.windows;
    let ring = Ring {
        nodes: NODES,
        personal_window,
        accelerated_window,
        message_bytes: MESSAGE,
        burst_us: message * f64::from(personal_window),
        hop_us,
    };
    let (rotation_us, model_rotation_us) = (rotation(row), ring.rotation_us(row.protocol));
    let load = Load::Full(rotation_us);
    Judged {
        ring,
        rotation_us,
        model_rotation_us,
        model_mbps: ring.throughput_mbps(model_rotation_us),
        agreed_us: agreed(&ring, row.protocol, load).average,
        safe_us: safe(&ring, row.protocol, load).average,
    }
}

/// The time of a rotation that follows from the throughput, in microseconds.
fn rotation(row: &Measured) -> f64 {
    let messages = f64::from(NODES * row.windows.0);
    messages * f64::from(MESSAGE) * 8.0 / row.mbps
}

/// A network's time to send a message, and its time from sending to receipt, in microseconds: two rows of the original
/// ring give both, as a visit takes the first for each message and the second once.
fn fit(network: Network) -> (f64, f64) {
    let mut rows = MEASURED
        .iter()
        .filter(|row| row.is_fit && row.network == network);
    let mut visit = || {
        rows.next().map_or((0.0, 0.0), |row| {
            (f64::from(row.windows.0), rotation(row) / f64::from(NODES))
        })
    };
    let (few, many) = (visit(), visit());
    let message = (many.1 - few.1) / (many.0 - few.0);
    (message, few.1 - message * few.0)
}
