//! An experiment's setting, as a setup of the simulator.

use rota_core::contract::Service;
use rota_ring::{PriorityMethod, Protocol};
use rota_wire::{DiskPlan, EnginePlan, LinkPlan, Load, LossPlan, RingPlan, Setup, Span};

use crate::calibration::{Calibration, NetworkNumbers};
use crate::claims::Claim;
use crate::recipe::Recipe;

/// Nanoseconds in a millisecond.
const MILLIS: u64 = 1_000_000;
/// Bytes around the payload of a message in a datagram of its own.
const AROUND: usize = 72;
/// The largest datagram in one frame, and the one that the report has for 8850 bytes (§IV-A3).
const ONE_FRAME: usize = 1472;
const JUMBO: usize = 9000;

/// A network of the papers, or one to come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Network {
    /// Gigabit Ethernet.
    OneGig,
    /// 10-gigabit Ethernet.
    TenGig,
    /// The 10-gigabit switch with ports of so many Gbit/s.
    Future(u32),
}

/// Where the protocol runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum System {
    /// In the process that sends and receives.
    Library,
    /// In a daemon, with a client that sends and one that receives.
    Daemon,
    /// The same in Spread.
    Spread,
}

/// See the module page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Case {
    /// The network.
    pub network: Network,
    /// Where the protocol runs.
    pub system: System,
    /// Which of the two protocols.
    pub protocol: Protocol,
    /// The number of nodes.
    pub nodes: usize,
    /// How many of them send.
    pub senders: usize,
    /// Bytes of a message.
    pub payload: usize,
    /// The guarantee.
    pub service: Service,
    /// Personal and accelerated window, where the experiment says them.
    pub windows: Option<(u32, u32)>,
    /// Packets dropped by the daemons.
    pub loss: Option<LossPlan>,
    /// Rota's bursts instead of one datagram a call.
    pub is_in_bursts: bool,
}

impl Case {
    /// The setting of a claim, changed by its recipe.
    pub fn of(claim: &Claim, recipe: &Recipe) -> Result<Self, String> {
        let word = |key: &str, or: &str| recipe.get(key).unwrap_or(or).to_owned();
        let nodes = recipe.number("nodes").map(|nodes| nodes as usize);
        let nodes = nodes.or(claim.nodes).unwrap_or(8);
        let senders = match recipe.get("senders") {
            Some("half") => nodes / 2,
            Some(senders) => senders.parse().map_err(|_| format!("senders {senders}"))?,
            None => nodes,
        };
        let payload = recipe.number("payload").map(|bytes| bytes as usize);
        let loss = recipe.number("loss").filter(|percent| *percent > 0.0);
        Ok(Self {
            network: network(&word("network", &claim.network))?,
            system: system(&word("system", &claim.system))?,
            protocol: protocol(&word("protocol", &claim.protocol)),
            nodes,
            senders,
            payload: payload.or(claim.payload).unwrap_or(1350),
            service: service(&word("service", &claim.service)),
            windows: None,
            loss: loss.map(|percent| LossPlan {
                ppm: (percent * 10_000.0) as u32,
                distance: recipe.number("distance").map(|distance| distance as usize),
            }),
            is_in_bursts: false,
        })
    }

    /// The bytes of the largest datagram.
    fn datagram_bytes(&self) -> usize {
        match self.payload + AROUND {
            needs if self.payload == 8850 => needs.max(JUMBO),
            // What does not fit is cut, and what is small is packed, as in Spread.
            needs if !(ONE_FRAME / 2..=ONE_FRAME).contains(&needs) => ONE_FRAME,
            needs => needs,
        }
    }

    fn numbers(&self, calibration: &Calibration) -> NetworkNumbers {
        match self.network {
            Network::OneGig => calibration.one_gig,
            Network::TenGig => calibration.ten_gig,
            Network::Future(gigabits) => NetworkNumbers {
                rate_mbps: f64::from(gigabits) * 1000.0,
                ..calibration.ten_gig
            },
        }
    }

    /// The setup of a load. The windows are 30 and 30 where nobody has said any.
    pub fn setup(&self, calibration: &Calibration, load: Load, seed: u64) -> Setup {
        let (message, client) = match self.system {
            System::Library => (0.0, 0.0),
            System::Daemon => (calibration.daemon.message_us, calibration.daemon.client_us),
            System::Spread => (calibration.spread.message_us, calibration.daemon.client_us),
        };
        let costs = calibration.costs(message, client);
        let costs = if self.is_in_bursts {
            calibration.with_bursts(costs)
        } else {
            costs
        };
        let (personal_window, accelerated_window) = self.windows.unwrap_or((30, 30));
        // The prototypes use the first method, Spread the second (report §III-E).
        let method = match self.system {
            System::Spread => PriorityMethod::Second,
            _ => PriorityMethod::First,
        };
        Setup {
            nodes: self.nodes,
            wire: calibration.wire(&self.numbers(calibration)),
            costs,
            engine: EnginePlan::Ring(RingPlan {
                protocol: self.protocol,
                personal_window,
                accelerated_window,
                method,
                datagram_bytes: self.datagram_bytes(),
            }),
            load,
            senders: self.senders,
            message_bytes: self.payload,
            service: self.service,
            loss: self.loss,
            links: LinkPlan::default(),
            disk: DiskPlan::MEMORY,
            span: self.span(),
            seed,
        }
    }

    const fn span(&self) -> Span {
        let (warm_up, measured) = match self.network {
            // A prediction: many nodes, and no paper that it is set beside.
            _ if self.nodes > 8 => (20, 30),
            Network::OneGig => (100, 250),
            Network::TenGig | Network::Future(_) => (30, 80),
        };
        // Losses are few and dear: a mean of them needs more.
        let longer = if self.loss.is_some() { 4 } else { 1 };
        Span {
            warm_up: warm_up * MILLIS,
            measured: longer * measured * MILLIS,
        }
    }
}

fn network(name: &str) -> Result<Network, String> {
    match name {
        "1g" => Ok(Network::OneGig),
        "10g" => Ok(Network::TenGig),
        _ => Err(format!("no simulated network is called {name}")),
    }
}

fn system(name: &str) -> Result<System, String> {
    match name {
        "library" => Ok(System::Library),
        "daemon" | "prototypes" => Ok(System::Daemon),
        "spread" => Ok(System::Spread),
        _ => Err(format!("no simulated system is called {name}")),
    }
}

fn protocol(name: &str) -> Protocol {
    match name {
        "original" => Protocol::Original,
        _ => Protocol::Accelerated,
    }
}

fn service(name: &str) -> Service {
    match name {
        "safe" => Service::Safe,
        _ => Service::Agreed,
    }
}

/// Bits a second.
pub fn mbps(rate: f64) -> u64 {
    (rate * 1e6) as u64
}
