//! The requests of clients, and the events that they are told.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_check::event::{ClientEvent, ClientSaw, EventKind, Post};
use rota_core::contract::{MessageId, Process, Service};
use rota_core::groups::{
    Cause, ClientName, Connection, Destination, Event, GroupName, Groups, Member, Phase, Send,
};

use super::{System, World};
use crate::groups::{Ask, Given, private, saw};

impl<S: System> World<'_, S> {
    /// A client of a host asks for something; says whether there was room for it.
    pub(super) fn ask(&mut self, at: usize) -> Option<bool> {
        self.hold(at);
        let excluded = self.is_excluded(at)?;
        let host = &mut self.hosts[at];
        let desk = host.life.as_mut()?.desk.as_mut()?;
        match desk.draw(&mut host.rng) {
            Ask::Connect(name) => {
                let connection = self.request(at, |groups| groups.connect(name))?.ok()?;
                self.hosts[at]
                    .life
                    .as_mut()?
                    .desk
                    .as_mut()?
                    .connected(connection, name);
                self.tally.add("clients_greeted", excluded.into());
                return Some(true);
            }
            Ask::Join(connection, groups) => {
                for group in groups {
                    let joined = self.request(at, |groups| groups.join(connection, group))?;
                    if joined.is_err() {
                        return Some(false);
                    }
                    self.hosts[at]
                        .life
                        .as_mut()?
                        .desk
                        .as_mut()?
                        .joins(connection, group);
                    self.saw(at, connection, ClientSaw::Join(group.to_string()));
                }
            }
            Ask::Leave(connection, group) => {
                let left = self.request(at, |groups| groups.leave(connection, group))?;
                if left.is_err() {
                    return Some(false);
                }
                self.hosts[at]
                    .life
                    .as_mut()?
                    .desk
                    .as_mut()?
                    .leaves(connection, group);
                self.saw(at, connection, ClientSaw::Leave(group.to_string()));
            }
            Ask::Disconnect(connection) => self.disconnect(at, connection),
            Ask::Sleep(connection) => {
                let longest = self.plan.ring.timers.token_loss;
                let until = self.now + host.rng.range(longest / 20, 2 * longest);
                desk.sleeps(connection, until);
            }
            Ask::Send { from, to, discard } => {
                if !self.post(at, from, to, discard)? {
                    return Some(false);
                }
            }
        }
        self.tally.add("asked_while_excluded", excluded.into());
        Some(true)
    }

    /// Whether clients of a host's process have been told that it is in no view.
    fn is_excluded(&self, at: usize) -> Option<bool> {
        let life = self.hosts[at].life.as_ref()?;
        let layer = self.system.groups(life.engine.get())?;
        Some(layer.groups().is_excluded())
    }

    fn post(
        &mut self,
        at: usize,
        from: Connection,
        to: Vec<Destination>,
        self_discard: bool,
    ) -> Option<bool> {
        let now = self.local(at);
        if self
            .request(at, |groups| groups.waits(from, &to, now))?
            .is_some()
        {
            self.tally.cover("messages_held");
            return Some(false);
        }
        let (service, body) = self.draw_message(at);
        let life = self.hosts[at].life.as_ref()?;
        let id = MessageId {
            process: life.process,
            counter: life.desk.as_ref()?.sent + 1,
        };
        let payload = Bytes::from([&id.counter.to_le_bytes()[..], &body].concat());
        let send = Send {
            big_endian: false,
            number: Some(id.counter),
            service,
            self_discard,
            kind: 7,
            to,
            payload: payload.clone(),
        };
        let sent = self.request(at, |groups| groups.send(from, send.clone()))?;
        if sent.is_err() {
            return Some(false);
        }
        self.hosts[at].life.as_mut()?.desk.as_mut()?.sent += 1;
        let several = send.to.len() > 1;
        self.tally.add("messages_to_several_groups", several.into());
        let hash = self.posts.submitted(id, service, payload)?;
        let post = Post::new(id, &send.to, service, hash, &mut private);
        let discard = self_discard;
        self.saw(at, from, ClientSaw::Send { post, discard });
        Some(true)
    }

    /// Others are to wait for clients that sleep, or not any more.
    fn hold(&mut self, at: usize) -> Option<()> {
        let most_ms = self.plan.groups?.throttle_ms;
        let now = self.now;
        let holds = self.hosts[at].life.as_mut()?.desk.as_mut()?.hold(now)?;
        if !holds.is_empty() {
            self.tally.cover("clients_throttling");
        }
        self.request(at, |groups| groups.hold(holds.clone(), most_ms))
    }

    /// Something is asked of the groups of a host's process.
    fn request<T>(&mut self, at: usize, mut ask: impl FnMut(&mut Groups) -> T) -> Option<T> {
        let now = self.local(at);
        let life = self.hosts[at].life.as_mut()?;
        let layer = self.system.layer(life.engine.get_mut())?;
        let mut answer = None;
        layer.request(now, &mut |groups| answer = Some(ask(groups)));
        (life.undrained, life.app.more) = (true, true);
        self.take_submitted(at);
        answer
    }

    /// Messages that the layer has submitted are seen like those of an application.
    pub(super) fn take_submitted(&mut self, at: usize) {
        let system = self.system;
        while let Some(life) = &mut self.hosts[at].life
            && let Some(layer) = system.layer(life.engine.get_mut())
            && let Some((counter, service, payload)) = layer.next_submitted()
        {
            life.app.sent += 1;
            let process = life.process;
            // Only pieces before the last one are no more than reliable.
            let piece = service == Service::Reliable;
            self.tally.add("groups_pieces", piece.into());
            self.submitted(MessageId { process, counter }, service, payload);
        }
    }

    /// Clients are told what there is for them; some of it may be left lying.
    pub(super) fn hear(&mut self, at: usize) {
        let Some(groups) = self.plan.groups else {
            return;
        };
        let lying = if self.healed() {
            0
        } else {
            self.hosts[at].rng.below(groups.behind + 1)
        };
        let system = self.system;
        while let Some(life) = &mut self.hosts[at].life
            && let Some(layer) = system.layer(life.engine.get_mut())
            && layer.waiting_events() as u64 > lying
            && let Some(told) = layer.next_event()
        {
            for &connection in told.to.iter() {
                self.tell(at, connection, &told.event);
            }
        }
        self.hold(at);
    }

    fn tell(&mut self, at: usize, connection: Connection, event: &Event) {
        let now = self.now;
        let life = self.hosts[at].life.as_mut();
        let Some(desk) = life.and_then(|life| life.desk.as_mut()) else {
            return;
        };
        match desk.give(connection, now) {
            Given::To(name) => {
                self.count_told(at, name, event);
                let saw = saw(event, &self.posts);
                self.saw(at, connection, saw);
            }
            Given::Slow => {
                self.tally.cover("clients_too_slow");
                // Both of what may become of them.
                if !connection.0.is_multiple_of(2) || self.skip(at, connection).is_none() {
                    self.disconnect(at, connection);
                }
            }
            Given::Nobody => {}
        }
    }

    fn count_told(&mut self, at: usize, name: ClientName, event: &Event) {
        let me = Destination::Client(name, self.hosts[at].node);
        if matches!(event, Event::View(view) if view.cause == Cause::Network && view.vs_sets.len() > 1)
        {
            self.tally.cover("views_of_several_sets");
        }
        self.tally.cover(match event {
            Event::View(view) => match view.cause {
                Cause::Join(_) => "views_by_join",
                Cause::Leave(_) => "views_by_leave",
                Cause::Disconnect(_) => "views_by_disconnect",
                Cause::Network => "views_by_network",
            },
            Event::Transitional { .. } => "transitional_signals",
            Event::SelfLeave { .. } => "self_leaves",
            Event::Excluded => "clients_excluded",
            Event::Included { missed: true } => "clients_missed",
            Event::Included { missed: false } => "clients_included",
            Event::Message(message) if message.to.contains(&me) => "private_messages",
            Event::Message(_) => "client_deliveries",
        });
    }

    /// A client misses something, and has disconnected and come back for everybody else.
    fn skip(&mut self, at: usize, connection: Connection) -> Option<()> {
        let next = self.request(at, |groups| groups.restart(connection))??;
        self.tally.cover("clients_skipped");
        self.saw(at, connection, ClientSaw::Disconnect);
        let life = self.hosts[at].life.as_mut()?;
        for group in life.desk.as_mut()?.restarted(connection, next) {
            self.saw(at, next, ClientSaw::Join(group.to_string()));
        }
        Some(())
    }

    fn disconnect(&mut self, at: usize, connection: Connection) {
        self.saw(at, connection, ClientSaw::Disconnect);
        self.request(at, |groups| groups.disconnect(connection));
        let life = self.hosts[at].life.as_mut();
        if let Some(desk) = life.and_then(|life| life.desk.as_mut()) {
            desk.disconnected(connection);
        }
    }

    /// A client did or saw something.
    fn saw(&mut self, at: usize, connection: Connection, saw: ClientSaw) {
        let host = &self.hosts[at];
        let Some(life) = &host.life else { return };
        let name = life.desk.as_ref().and_then(|desk| desk.name(connection));
        let Some(name) = name else { return };
        let client = private(name, host.node);
        let process = life.process;
        self.emit(process, EventKind::Client(ClientEvent { client, saw }));
    }

    /// Whether every daemon has done what its clients asked for, and all know of the same groups.
    pub(super) fn settled(&self) -> Result<(), String> {
        let mut wanted: BTreeMap<GroupName, Vec<Member>> = BTreeMap::new();
        let lives = || self.hosts.iter().filter_map(|host| host.life.as_ref());
        for desk in lives().filter_map(|life| life.desk.as_ref()) {
            desk.wanted(&mut wanted);
        }
        wanted
            .values_mut()
            .for_each(|members| members.sort_unstable());
        for life in lives() {
            let Some(layer) = self.system.groups(life.engine.get()) else {
                continue;
            };
            let groups = layer.groups();
            let idle = life.app.pending == 0 && layer.waiting_events() == 0;
            if *groups.phase() != Phase::Operational || groups.has_to_submit() || !idle {
                let (node, phase) = (life.process.node, groups.phase());
                return Err(format!("node {node} has not come to rest: {phase:?}"));
            }
            if let Some(hold) = groups.holds().next() {
                let node = life.process.node;
                return Err(format!("node {node} takes {hold:?} to be held for nobody"));
            }
            same_groups(life.process, groups, &wanted)?;
        }
        Ok(())
    }
}

fn same_groups(
    process: Process,
    groups: &Groups,
    wanted: &BTreeMap<GroupName, Vec<Member>>,
) -> Result<(), String> {
    let node = process.node;
    let known = groups.list_groups();
    for name in wanted.keys().chain(known.keys()) {
        let members = groups.list_members(name);
        let right = wanted.get(name).map_or(&[][..], Vec::as_slice);
        if members != right {
            let lacks = |one: &[Member], other: &[Member]| -> Vec<String> {
                let lacking = one.iter().filter(|member| !other.contains(member));
                lacking
                    .map(
                        |Member {
                             daemon,
                             name,
                             connection,
                         }| {
                            format!("{name} ({}) of {daemon:?}", connection.0)
                        },
                    )
                    .collect()
            };
            let (more, less) = (lacks(&members, right), lacks(right, &members));
            return Err(format!(
                "node {node} takes {more:?} for members of {name} and {less:?} for none"
            ));
        }
    }
    Ok(())
}
