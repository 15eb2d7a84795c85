//! The amount of what happened in a run: properties that hold of nothing prove nothing.

use rota_core::contract::{ConfigurationKind, Service};
use serde::Serialize;

use crate::trace::Step;
use crate::trace::clients::Saw;
use crate::view::{End, Tenure, View, is_ordered};

/// The numbers of the events that the properties speak of. A campaign in which one of them stays 0 has not tested what
/// it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Events of all processes and clients.
    pub events: u64,
    /// Processes that saw something.
    pub processes: u64,
    /// Of these, later lives of a node.
    pub restarts: u64,
    /// Of these, killed, or followed by another life of their node.
    pub crashed: u64,
    /// Of these, gone of their own will.
    pub left: u64,
    /// Of these, not known to be alive at the end: they may have failed.
    pub unknown_ends: u64,
    /// Processes that others name, but that saw nothing: their traces are missing.
    pub untraced: u64,
    /// Regular configurations that anybody delivered.
    pub configurations: u64,
    /// Transitional ones.
    pub transitional_configurations: u64,
    /// Regular configurations to which members of two old rings came.
    pub merges: u64,
    /// Of these, those to which at least two members came from each of two old rings.
    pub merges_of_groups: u64,
    /// Rings that ended in more than one transitional configuration.
    pub splits: u64,
    /// Tenures of rings in which the process crashed, left, or was not seen any more.
    pub failed_tenures: u64,
    /// Reports of a configuration as primary, at all processes.
    pub primary_reports: u64,
    /// Messages accepted from applications.
    pub sends: u64,
    /// Messages that got their place, or were accepted for broadcast.
    pub originated: u64,
    /// Messages delivered, at all processes.
    pub deliveries: u64,
    /// Of these, reliable ones.
    pub reliable: u64,
    /// Of these, fifo ones.
    pub fifo: u64,
    /// Of these, causal ones.
    pub causal: u64,
    /// Of these, agreed ones.
    pub agreed: u64,
    /// Of these, safe ones.
    pub safe: u64,
    /// Deliveries in transitional configurations.
    pub transitional_deliveries: u64,
    /// Of these, safe ones.
    pub transitional_safe: u64,
    /// Of these, in the total order, after an earlier message of the ring was left out.
    pub post_hole: u64,
    /// Messages of the total order that were left out behind the first one missing, by processes that
    /// went on to another ring.
    pub post_hole_left_out: u64,
    /// Reliable and fifo messages delivered before a message of the total order that has an earlier
    /// place.
    pub early: u64,
    /// Clients, each from its connecting to its end.
    pub clients: u64,
    /// Of these, disconnected.
    pub clients_disconnected: u64,
    /// Different views of groups that clients were given.
    pub group_views: u64,
    /// Of these, such with two sets or more: merges.
    pub group_merges: u64,
    /// Transitions that clients were told of.
    pub group_transitions: u64,
    /// Messages delivered to clients.
    pub client_deliveries: u64,
}

impl Counters {
    /// The rare ones, by name: a campaign must have seen each of them.
    pub fn rare(&self) -> [(&'static str, u64); 7] {
        [
            ("merges", self.merges),
            ("merges_of_groups", self.merges_of_groups),
            ("splits", self.splits),
            ("transitional_safe", self.transitional_safe),
            ("post_hole", self.post_hole),
            ("post_hole_left_out", self.post_hole_left_out),
            ("early", self.early),
        ]
    }

    pub(crate) fn of(view: &View<'_>) -> Self {
        let mut counters = Self::default();
        counters.count_processes(view);
        for (_, _, step) in view.all_steps() {
            counters.count_step(step);
        }
        counters.count_configurations(view);
        for tenure in &view.tenures {
            counters.count_tenure(view, tenure);
        }
        counters.count_clients(view);
        counters
    }

    fn count_processes(&mut self, view: &View<'_>) {
        self.processes = view.trace.began().len() as u64;
        let nodes = view.trace.began().iter();
        let mut nodes: Vec<_> = nodes.map(|process| view.process(*process).node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        self.restarts = self.processes - nodes.len() as u64;
        for end in &view.ends {
            match end {
                End::Alive => {}
                End::Crashed => self.crashed += 1,
                End::Left => self.left += 1,
                End::Unknown => self.unknown_ends += 1,
                End::Untraced => self.untraced += 1,
            }
        }
    }

    fn count_step(&mut self, step: &Step) {
        self.events += 1;
        match step {
            Step::Send { .. } => self.sends += 1,
            Step::Orig(_) | Step::Broadcast { .. } => self.originated += 1,
            Step::Deliver(place) => {
                self.deliveries += 1;
                *match place.service {
                    Service::Reliable => &mut self.reliable,
                    Service::Fifo => &mut self.fifo,
                    Service::Causal => &mut self.causal,
                    Service::Agreed => &mut self.agreed,
                    Service::Safe => &mut self.safe,
                } += 1;
            }
            Step::Primary { .. } => self.primary_reports += 1,
            Step::Start
            | Step::Conf { .. }
            | Step::Excluded { .. }
            | Step::Missed { .. }
            | Step::Crash
            | Step::Leave => {}
        }
    }

    fn count_clients(&mut self, view: &View<'_>) {
        for (_, connection) in view.groups.connections() {
            self.clients += 1;
            self.clients_disconnected += u64::from(connection.disconnected);
            for saw in &connection.saw {
                self.group_transitions += u64::from(matches!(saw, Saw::Transition { .. }));
                self.client_deliveries += u64::from(matches!(saw, Saw::Deliver(_)));
            }
        }
        let views = view.groups.clients.views();
        self.group_views = views.len() as u64;
        self.group_merges = views.iter().filter(|one| one.sets.len() >= 2).count() as u64;
    }

    fn count_configurations(&mut self, view: &View<'_>) {
        let mut delivered = vec![false; view.trace.configurations().len()];
        // By new ring: the old rings, and how many came from each.
        let mut came: Vec<Vec<(u32, u32)>> = vec![Vec::new(); view.rings.len()];
        for tenure in &view.tenures {
            for span in tenure.spans() {
                delivered[span.conf as usize] = true;
            }
            if let (Some(_), Some(next)) = (&tenure.transitional, tenure.next) {
                let came = &mut came[next as usize];
                match came.iter_mut().find(|(old, _)| *old == tenure.ring) {
                    Some((_, count)) => *count += 1,
                    None => came.push((tenure.ring, 1)),
                }
            }
        }
        for (conf, _) in (0..).zip(&delivered).filter(|(_, delivered)| **delivered) {
            match view.id(conf) {
                ConfigurationKind::Regular(_) => self.configurations += 1,
                ConfigurationKind::Transitional { .. } => self.transitional_configurations += 1,
            }
        }
        for came in &came {
            self.merges += u64::from(came.len() >= 2);
            let groups = came.iter().filter(|(_, count)| *count >= 2).count();
            self.merges_of_groups += u64::from(groups >= 2);
        }
        for ring in 0..view.rings.len() {
            let spans = view
                .tenures_of(ring)
                .filter_map(|tenure| tenure.transitional.as_ref());
            let mut ways: Vec<u32> = spans.map(|span| span.conf).collect();
            ways.sort_unstable();
            ways.dedup();
            self.splits += u64::from(ways.len() >= 2);
        }
    }

    fn count_tenure(&mut self, view: &View<'_>, tenure: &Tenure) {
        self.failed_tenures += u64::from(tenure.failed);
        self.count_early(view, tenure);
        let Some(span) = &tenure.transitional else {
            return;
        };
        let hole = first_hole(view, tenure);
        for delivered in view.deliveries(tenure, span) {
            self.transitional_deliveries += 1;
            self.transitional_safe += u64::from(delivered.service == Service::Safe);
            let post_hole = is_ordered(delivered.service) && delivered.rank > hole;
            self.post_hole += u64::from(post_hole);
        }
        if tenure.next.is_some() {
            let order = &view.rings[tenure.ring as usize].order;
            let behind = (0..).zip(order).skip(hole as usize + 1);
            let left_out = behind.filter(|(rank, message)| {
                let home = view.homes[**message as usize];
                !tenure.delivered.contains(*rank)
                    && home.is_some_and(|home| is_ordered(home.service))
            });
            self.post_hole_left_out += left_out.count() as u64;
        }
    }

    fn count_early(&mut self, view: &View<'_>, tenure: &Tenure) {
        // From the last delivery back: the lowest rank of the total order still to come.
        let deliveries = tenure
            .spans()
            .flat_map(|span| view.deliveries(tenure, span));
        let deliveries: Vec<_> = deliveries.collect();
        let mut to_come = u32::MAX;
        for delivered in deliveries.iter().rev() {
            if is_ordered(delivered.service) {
                to_come = to_come.min(delivered.rank);
            } else {
                self.early += u64::from(delivered.rank > to_come);
            }
        }
    }
}

/// The lowest rank in the total order that the process did not deliver.
fn first_hole(view: &View<'_>, tenure: &Tenure) -> u32 {
    let order = (0..).zip(&view.rings[tenure.ring as usize].order);
    let mut holes = order.filter(|(rank, message)| {
        let home = view.homes[**message as usize];
        !tenure.delivered.contains(*rank) && home.is_some_and(|home| is_ordered(home.service))
    });
    holes.next().map_or(u32::MAX - 1, |(rank, _)| rank)
}
