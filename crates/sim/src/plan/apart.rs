//! Traits of some seeds of rings and of engines with views beside those that are drawn for all: nodes with settings of
//! their own, lists of the nodes that count in primaries that change from life to life, a member that is ill until the
//! world heals, disks that forget.
//!
//! The traits are drawn from a stream of their own, and faults come behind the others, so that seeds without them are
//! what they always were.

use rota_core::contract::NodeId;
use rota_core::timing::{Timers, Timing};
use rota_ring::Protocol;

use super::{DiskLoss, Fault, FaultKind, LossyLink, MILLIS, Matrix, Plan, PrimaryLayer, Profile};
use crate::rng::Rng;

/// Times that a member stands still, at most.
const MOST_PAUSES: u64 = 40;

/// The differences between nodes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Apart {
    /// The nodes that count in primaries: the first list in each node's first life, and any of them in later ones.
    /// None: all nodes, and nobody says so.
    pub electorates: Vec<Vec<NodeId>>,
    /// The names of these traits that the plan has, as they are counted.
    pub has: Vec<&'static str>,
}

impl Apart {
    /// The nodes that count, as a node is configured in one of its lives.
    pub fn electorate(&self, seed: u64, node: NodeId, life: u32) -> Option<&Vec<NodeId>> {
        if life == 0 {
            return self.electorates.first();
        }
        let lives = u64::from(node.get()) << 32 | u64::from(life);
        let mut rng = Rng::split(seed ^ 22, lives);
        let index = rng.index(self.electorates.len().max(1));
        self.electorates.get(index)
    }
}

impl Plan {
    /// Draws the traits.
    pub fn draw_apart(&mut self, profile: Profile) {
        if !profile.is_whole() || self.uring.is_some() || self.nodes() < 2 {
            return;
        }
        let mut rng = Rng::split(self.seed, 21);
        if rng.percent(20) {
            self.draw_settings(&mut rng);
        }
        let is_static = self.primary == Some(PrimaryLayer::Static);
        if is_static && rng.percent(50) {
            self.draw_electorates(&mut rng);
        }
        if rng.percent(20) {
            self.draw_illness(&mut rng);
        }
        let one_list = is_static && self.apart.electorates.is_empty();
        if self.views.is_some() && one_list && rng.percent(40) {
            self.draw_lost_memories(&mut rng);
        }
    }

    /// Disks of nodes that come back are other ones, or there are none. With lists of their own nodes have to keep which ones they
    /// have met, and by voting what they have voted for.
    fn draw_lost_memories(&mut self, rng: &mut Rng) {
        if let Some(views) = &mut self.views {
            // An order that begins anew where no disk tells the numbers of the old one's views may give them again, and
            // a trace does not say which of two views came first.
            views.amnesia = false;
        }
        let (has, percent) = rng.pick(&[("without_disks", 100), ("with_emptied_disks", 40)]);
        for fault in &mut self.faults {
            if let FaultKind::Kill { disk, .. } = &mut fault.kind
                && rng.percent(percent)
            {
                *disk = DiskLoss::Everything;
            }
        }
        self.apart.has.push(has);
    }

    /// The differences in the configurations of nodes, a line for each.
    pub fn differences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (node, host) in self.ring.members.iter().zip(&self.hosts) {
            if !self.apart.electorates.is_empty() {
                let lives = (0..6).filter_map(|life| self.apart.electorate(self.seed, *node, life));
                let lives: Vec<String> = lives.map(|nodes| names(nodes)).collect();
                let lives = lives.join(" | ");
                lines.push(format!("node {node} counts, life by life: {lives}"));
            }
            if let Some(own) = &host.own {
                lines.push(format!(
                    "node {node} has windows {} {} {} {}, token loss {} ms, datagrams of {} bytes",
                    own.windows.personal,
                    own.windows.accelerated,
                    own.windows.global,
                    own.windows.outstanding,
                    own.timers.token_loss / MILLIS,
                    own.datagram_bytes,
                ));
            }
        }
        lines
    }

    /// Windows, time-outs and datagrams of each node's own. The plan's time-outs are the longest: by those it is judged.
    fn draw_settings(&mut self, rng: &mut Rng) {
        let timings = [Timing::LanFast, Timing::Default, Timing::Relaxed];
        let nodes = self.ring.members.len();
        let slowest = self.ring.timers;
        for host in &mut self.hosts {
            let mut own = self.ring.clone();
            let timers = Timers::derive(rng.pick(&timings), nodes);
            if timers.token_loss <= slowest.token_loss && rng.percent(60) {
                own.timers = timers;
            }
            own.windows.personal = rng.pick(&[1, 2, 5, 20, 40, 100]);
            own.windows.accelerated = match own.protocol {
                Protocol::Accelerated => rng.below(u64::from(own.windows.personal) + 1) as u32,
                Protocol::Original => 0,
            };
            own.windows.global = rng.pick(&[1, 7, 40, 320, 1000]);
            let outstanding = rng.pick(&[100, 400, 1600, 6000]);
            own.windows.outstanding = outstanding.max(own.windows.personal);
            if rng.percent(30) {
                own.datagram_bytes = own.datagram_bytes.min(rng.pick(&[600, 1000, 1472]));
            }
            host.own = Some(own);
        }
        self.apart.has.push("with_different_settings");
    }

    fn draw_electorates(&mut self, rng: &mut Rng) {
        let all = self.ring.members.clone();
        let mut draw = || {
            let mut nodes = all.clone();
            nodes.retain(|_| rng.percent(65));
            if nodes.is_empty() {
                nodes.push(all[rng.index(all.len())]);
            }
            nodes
        };
        self.apart.electorates = vec![draw(), draw(), draw()];
        // A trace does not say of which list a majority has forgotten.
        if let Some(views) = &mut self.views {
            views.amnesia = false;
        }
        self.apart.has.push("with_different_lists");
    }

    /// One member is ill from some moment on.
    fn draw_illness(&mut self, rng: &mut Rng) {
        let (hosts, token) = (self.nodes(), self.ring.timers.token_loss);
        let host = rng.index(hosts);
        let other = (host + 1 + rng.index(hosts - 1)) % hosts;
        let at = rng.range(self.horizon / 20, self.horizon / 2);
        let until_healed = |kind| Fault {
            at,
            lasts: u64::MAX,
            kind,
        };
        let cut = |shape, links| until_healed(FaultKind::Cut { shape, links });
        let (name, fault) = match rng.below(9) {
            0 | 1 => ("ill_unsteady", None),
            2 => ("ill_hung", Some(until_healed(FaultKind::Stall { host }))),
            3 => ("ill_mute", Some(cut("mute", Matrix::mute(hosts, host)))),
            4 => ("ill_deaf", Some(cut("deaf", Matrix::deaf(hosts, host)))),
            5 => {
                let mut links = Matrix::open(hosts);
                links.cut(host, other);
                ("ill_direction", Some(cut("one direction", links)))
            }
            6 => {
                let links = Matrix::alone(hosts, host);
                let period = rng.spread(token / 4, 4 * token);
                (
                    "ill_port",
                    Some(until_healed(FaultKind::Flap { links, period })),
                )
            }
            7 => (
                "ill_disk",
                Some(until_healed(FaultKind::DiskHangs { host })),
            ),
            _ => ("ill_class", None),
        };
        match name {
            "ill_unsteady" => self.stand_still(rng, host, at),
            "ill_class" if self.links.is_none() => self.lose_a_class(rng, host),
            "ill_class" => return,
            _ => {}
        }
        self.faults.extend(fault);
        self.apart.has.push(name);
    }

    /// The member stands still again and again.
    fn stand_still(&mut self, rng: &mut Rng, host: usize, mut at: u64) {
        let token = self.ring.timers.token_loss;
        let lasts = rng.range(token, 3 * token);
        let every = lasts + rng.range(token / 2, 4 * token);
        for _ in 0..MOST_PAUSES {
            if at >= self.horizon {
                return;
            }
            let kind = FaultKind::Pause { host };
            self.faults.push(Fault { at, lasts, kind });
            at += every;
        }
    }

    /// One class of the member's datagrams hardly arrives anywhere.
    fn lose_a_class(&mut self, rng: &mut Rng, from: usize) {
        let mut loss = [0; 3];
        loss[rng.index(3)] = rng.pick(&[700_000, 900_000, 1_000_000]);
        let others = (0..self.nodes()).filter(|to| *to != from);
        self.net
            .lossy
            .extend(others.map(|to| LossyLink { from, to, loss }));
    }
}

fn names(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    names.join(" ")
}
