//! What nobody could measure: more nodes and faster links, with the machines of the papers.

use rota_core::contract::Service;
use rota_ring::Protocol;

use crate::case::{Case, Network, System};
use crate::lab::Lab;
use crate::workers;

/// A prediction: the library at full load, a personal window of 40, the accelerated window as large.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// The network's rate, Gbit/s.
    pub gigabits: u32,
    /// Nodes.
    pub nodes: usize,
    /// Which protocol.
    pub protocol: Protocol,
    /// Rota's bursts instead of one datagram a call.
    pub is_in_bursts: bool,
    /// Payload delivered at a node, Mbit/s.
    pub mbps: f64,
    /// Mean delay of agreed and safe messages, microseconds.
    pub agreed: f64,
    /// The same, safe.
    pub safe: f64,
}

const NODES: [usize; 4] = [8, 16, 32, 64];
const NETWORKS: [u32; 3] = [10, 25, 100];
const WINDOW: u32 = 40;

/// All predictions, by network, nodes and protocol.
pub fn predictions(lab: &Lab, jobs: usize) -> Vec<Prediction> {
    let mut wanted = Vec::new();
    for gigabits in NETWORKS {
        for nodes in NODES {
            for (protocol, is_in_bursts) in [
                (Protocol::Original, false),
                (Protocol::Accelerated, false),
                (Protocol::Accelerated, true),
            ] {
                wanted.push((gigabits, nodes, protocol, is_in_bursts));
            }
        }
    }
    workers::each(jobs, &wanted, |wanted| predict(lab, *wanted))
}

fn predict(
    lab: &Lab,
    (gigabits, nodes, protocol, is_in_bursts): (u32, usize, Protocol, bool),
) -> Prediction {
    let network = match gigabits {
        10 => Network::TenGig,
        more => Network::Future(more),
    };
    let case = Case {
        network,
        system: System::Library,
        protocol,
        nodes,
        senders: nodes,
        payload: 1350,
        service: Service::Agreed,
        windows: Some((WINDOW, WINDOW)),
        loss: None,
        is_in_bursts,
    };
    let agreed = lab.full(&case, 1);
    let safe = lab.full(
        &Case {
            service: Service::Safe,
            ..case
        },
        1,
    );
    Prediction {
        gigabits,
        nodes,
        protocol,
        is_in_bursts,
        mbps: agreed.mbps,
        agreed: agreed.delay,
        safe: safe.delay,
    }
}
