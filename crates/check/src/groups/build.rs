//! Finds the stays of clients, in one pass over their events.

use rustc_hash::FxHashMap;

use super::{Ends, Got, Groups, Sent, Stay};
use crate::trace::Trace;
use crate::trace::clients::{Connection, Post, Saw};

impl<'a> Groups<'a> {
    /// The stays of a trace; `alive` says of a process, by its number, whether it is known to be alive at the end.
    pub fn new(trace: &'a Trace, alive: impl Fn(u32) -> bool) -> Self {
        let clients = trace.clients();
        let connections = &clients.connections;
        let live = connections.iter();
        let live = live.map(|one| !one.disconnected && !one.is_excluded() && alive(one.process));
        let live: Vec<bool> = live.collect();
        let named = (0..).zip(connections).zip(&live);
        let live_of = named
            .filter(|(_, live)| **live)
            .map(|((number, one), _)| (one.name, number));
        let mut groups = Self {
            trace,
            clients,
            stays: Vec::new(),
            stays_in: vec![Vec::new(); clients.views().len()],
            sent: vec![None; clients.messages().len()],
            live_of: live_of.collect(),
            live,
        };
        for (number, connection) in (0..).zip(connections) {
            groups.note_sent(number, connection);
            groups.find_stays(number, connection);
        }
        groups
    }

    fn note_sent(&mut self, number: u32, connection: &Connection) {
        for saw in &connection.saw {
            if let Saw::Send { post, discard } = *saw {
                self.sent[post.message as usize].get_or_insert(Sent {
                    connection: number,
                    post,
                    discard,
                });
            }
        }
    }

    fn find_stays(&mut self, number: u32, connection: &Connection) {
        // The stay of each group that is not over.
        let mut open: FxHashMap<u32, u32> = FxHashMap::default();
        for saw in &connection.saw {
            match *saw {
                Saw::View(view) => {
                    let stay = self.begin(number, view);
                    if let Some(before) = open.insert(self.view_of(view).group, stay) {
                        self.stays[before as usize].ends = Ends::Next(view);
                    }
                }
                Saw::SelfLeave { group } => {
                    if let Some(stay) = open.remove(&group) {
                        self.stays[stay as usize].ends = Ends::SelfLeave;
                    }
                }
                Saw::Transition { group, .. } => {
                    if let Some(stay) = open.get(&group) {
                        self.stays[*stay as usize].reduced = true;
                    }
                }
                Saw::Included { missed: true } => {
                    for stay in open.values() {
                        self.stays[*stay as usize].missed = true;
                    }
                }
                Saw::Deliver(post) => self.note_delivery(&open, post),
                _ => {}
            }
        }
        let failed = !self.live[number as usize];
        for stay in open.values() {
            self.stays[*stay as usize].failed = failed;
        }
    }

    fn begin(&mut self, connection: u32, view: u32) -> u32 {
        let number = self.stays.len() as u32;
        self.stays.push(Stay {
            connection,
            view,
            ends: Ends::Open,
            failed: false,
            reduced: false,
            missed: false,
            got: Vec::new(),
        });
        self.stays_in[view as usize].push(number);
        number
    }

    fn note_delivery(&mut self, open: &FxHashMap<u32, u32>, post: Post) {
        for group in self.clients.groups(post.groups) {
            if let Some(stay) = open.get(group) {
                let stay = &mut self.stays[*stay as usize];
                stay.got.push(Got {
                    message: post.message,
                    service: post.service,
                    reduced: stay.reduced,
                });
            }
        }
    }
}
