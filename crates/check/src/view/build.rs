//! Builds a view of a trace, in a few passes over the events.

use rota_core::contract::{ConfigurationKind, RingId};
use rustc_hash::FxHashMap;

use super::{End, Home, Ring, Span, Tenure, View};
use crate::bits::Bits;
use crate::event::regular_of;
use crate::groups::Groups;
use crate::report::Options;
use crate::trace::{Place, Step, Trace};

impl<'a> View<'a> {
    pub fn new(trace: &'a Trace, options: &'a Options) -> Self {
        let processes = trace.processes().len();
        let (rings, ring_of) = rings(trace);
        let ends = ends(trace, trace.is_quiescent() || options.quiescent);
        let groups = Groups::new(trace, |process| ends[process as usize] == End::Alive);
        let mut view = Self {
            trace,
            options,
            ends,
            lives: vec![Vec::new(); processes],
            tenures: Vec::new(),
            rings,
            ring_of,
            homes: vec![None; trace.messages().len()],
            members: members(trace),
            groups,
        };
        view.find_homes();
        view.rank();
        for process in trace.began() {
            view.find_tenures(*process);
        }
        let tenures = &view.tenures;
        for ring in &mut view.rings {
            ring.tenures
                .sort_by_key(|tenure| tenures[*tenure as usize].process);
        }
        view.note_deliveries();
        view
    }

    fn find_homes(&mut self) {
        // First come originations, then deliveries of messages without one.
        for originated in [true, false] {
            for process in self.trace.began() {
                for step in &self.trace.story(*process).steps {
                    match step {
                        Step::Orig(place) if originated => self.settle(place, true),
                        Step::Deliver(place) if !originated => self.settle(place, false),
                        _ => {}
                    }
                }
            }
        }
    }

    fn settle(&mut self, place: &Place, originated: bool) {
        if self.homes[place.message as usize].is_some() {
            return;
        }
        let sender = self.message(place.message).process;
        self.homes[place.message as usize] = Some(Home {
            ring: self.ring_of[place.conf as usize],
            rank: 0,
            position: place.position,
            hash: place.hash,
            sender: self.trace.process_number(sender).unwrap_or(u32::MAX),
            service: place.service,
            originated,
        });
    }

    fn rank(&mut self) {
        for (message, home) in (0..).zip(&self.homes) {
            if let Some(home) = home {
                self.rings[home.ring as usize].order.push(message);
            }
        }
        let homes = &mut self.homes;
        for ring in &mut self.rings {
            let position = |message: &u32| homes[*message as usize].map(|home| home.position);
            ring.order
                .sort_by_key(|message| (position(message), *message));
            for (rank, message) in (0..).zip(&ring.order) {
                if let Some(home) = &mut homes[*message as usize] {
                    home.rank = rank;
                }
            }
        }
    }

    fn find_tenures(&mut self, process: u32) {
        let mine = self.tenures.len();
        for span in self.spans(process) {
            let ring = self.ring_of[span.conf as usize];
            let regular = matches!(self.id(span.conf), ConfigurationKind::Regular(_));
            let last = self.tenures[mine..].last_mut();
            if regular {
                if let Some(last) = last {
                    last.next = Some(ring);
                }
                self.add_tenure(process, ring, Some(span), None);
            } else if let Some(last) = last
                && last.ring == ring
                && last.transitional.is_none()
            {
                last.transitional = Some(span);
            } else {
                // C3 reports the configuration; deliveries in it are looked at all the same.
                self.add_tenure(process, ring, None, Some(span));
            }
        }
        let failed = self.end(process) != End::Alive;
        if let Some(last) = self.tenures[mine..].last_mut() {
            last.failed = failed;
        }
    }

    fn add_tenure(
        &mut self,
        process: u32,
        ring: u32,
        regular: Option<Span>,
        transitional: Option<Span>,
    ) {
        let number = self.tenures.len() as u32;
        let delivered = Bits::new(self.rings[ring as usize].order.len());
        self.tenures.push(Tenure {
            process,
            ring,
            regular,
            transitional,
            next: None,
            failed: false,
            delivered,
        });
        self.lives[process as usize].push(number);
        self.rings[ring as usize].tenures.push(number);
    }

    fn spans(&self, process: u32) -> Vec<Span> {
        let steps = self.steps(process);
        let mut spans: Vec<Span> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            if let Step::Conf { conf, members } = *step {
                if let Some(last) = spans.last_mut() {
                    last.end = at;
                }
                spans.push(Span {
                    conf,
                    members,
                    start: at,
                    end: steps.len(),
                });
            }
        }
        spans
    }

    fn note_deliveries(&mut self) {
        for number in 0..self.tenures.len() {
            let mut delivered = std::mem::take(&mut self.tenures[number].delivered);
            let tenure = &self.tenures[number];
            for span in tenure.spans() {
                for message in self.deliveries(tenure, span) {
                    delivered.insert(message.rank);
                }
            }
            self.tenures[number].delivered = delivered;
        }
    }
}

/// All rings that a configuration names, and by configuration the ring that it is or ends.
fn rings(trace: &Trace) -> (Vec<Ring>, Vec<u32>) {
    let mut rings: Vec<Ring> = Vec::new();
    let mut numbers: FxHashMap<RingId, u32> = FxHashMap::default();
    let ring_of = trace.configurations().iter().map(|conf| {
        let id = regular_of(*conf);
        *numbers.entry(id).or_insert_with(|| {
            rings.push(Ring {
                id,
                order: Vec::new(),
                tenures: Vec::new(),
            });
            rings.len() as u32 - 1
        })
    });
    let ring_of = ring_of.collect();
    (rings, ring_of)
}

fn members(trace: &Trace) -> Vec<Vec<u32>> {
    let lists = trace.member_lists().iter();
    let sorted = lists.map(|list| {
        let members = list
            .iter()
            .filter_map(|member| trace.process_number(*member));
        let mut members: Vec<u32> = members.collect();
        members.sort_unstable();
        members
    });
    sorted.collect()
}

/// The end of the trace of each process.
fn ends(trace: &Trace, quiescent: bool) -> Vec<End> {
    let mut ends = vec![End::Untraced; trace.processes().len()];
    let mut latest = FxHashMap::default();
    let at_rest = if quiescent { End::Alive } else { End::Unknown };
    for process in trace.began() {
        let end = trace
            .story(*process)
            .steps
            .iter()
            .find_map(|step| match step {
                Step::Crash => Some(End::Crashed),
                Step::Leave => Some(End::Left),
                _ => None,
            });
        ends[*process as usize] = end.unwrap_or(at_rest);
        // A node lives one life at a time, even if no event says that one ended.
        let node = trace.processes()[*process as usize].node;
        if let Some(earlier) = latest.insert(node, *process) {
            let end = &mut ends[earlier as usize];
            if *end != End::Left {
                *end = End::Crashed;
            }
        }
    }
    ends
}
