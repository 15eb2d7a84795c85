//! Values by multicast, as the engine does it: what is sent, what has come, and what is asked for.

use alloc::sync::Arc;

use super::cast::{Lack, Lacking};
use super::engine::URing;
use super::parts::{self, Dropped};
use super::rate::Rate;
use super::stream::{Hail, Stream};
use super::word::Word;
use crate::contract::{Channel, Class, Output, Process, Target, Time};
use crate::mutants::{self, Mutant};
use crate::paxos::{Config, Proposers, ValueId};
use crate::wire::Part;

/// What was sent before something that has come is waited for so many times shorter than a heartbeat takes.
const SHORT: u64 = 64;
/// Likewise what nothing was sent behind.
const LONG: u64 = 6;
/// Bytes of own values that leave before others are heard again.
const AT_ONCE: usize = 64 << 10;
/// Own values that leave before all is heard that has come meanwhile: where each is small, others may have sent as many, and
/// an input brings one of them.
const IN_TURN: usize = 16;
/// So many values may be under way at any rate.
const SOME: usize = 4;

/// What may leave yet of own values.
#[derive(Debug, Default)]
pub(super) struct Spare {
    bytes: usize,
    values: usize,
}

impl Spare {
    /// Something was heard.
    pub const fn heard(&mut self) {
        self.bytes = AT_ONCE;
    }

    /// All was heard that had come, or much of it: a driver attends to a timer behind that.
    pub const fn all_heard(&mut self) {
        self.values = IN_TURN;
    }

    const fn is_used(&self) -> bool {
        self.bytes == 0 || self.values == 0
    }

    const fn leaves(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.values = self.values.saturating_sub(1);
    }
}

impl URing {
    /// The ring of a configuration, if this process is in it.
    pub(super) fn stream_of(&self, config: &Config) -> Option<Stream> {
        let (window, frame) = (self.settings.window_bytes, self.settings.frame_bytes);
        let stream = Stream::new(self.now, config, self.me, window)?;
        Some(match self.settings.multicast {
            Some(multicast) => stream
                .multicasts(window, frame)
                .keeps_to(self.now, multicast.capacity),
            None => stream,
        })
    }

    /// Own values that may be under way, in bytes.
    pub(super) fn own_window(&self) -> usize {
        let stream = self.stream.as_ref();
        let cast = stream.and_then(|stream| stream.cast.as_ref());
        let Some(cast) = cast else {
            return self.settings.window_bytes;
        };
        let is_alone = stream.is_none_or(|stream| stream.successor().is_none());
        let rate = cast.rate.as_ref().filter(|_| !is_alone);
        let by_rate = rate.map_or(usize::MAX, Rate::window);
        let some = SOME * self.settings.frame_bytes;
        cast.window().min(by_rate.max(some))
    }

    /// Parts of values that came together.
    pub(super) fn on_datagrams(&mut self, bytes: &[u8], segment: usize) {
        let Some(settings) = self.settings.multicast else {
            return;
        };
        for start in (0..bytes.len()).step_by(segment.max(1)) {
            let datagram = &bytes[start..bytes.len().min(start + segment)];
            match Part::decode(datagram, settings.seal_bytes) {
                Ok(part) => self.on_part(settings.cluster, &part),
                Err(_) => self.counters.uring_messages_refused += 1,
            }
        }
    }

    fn on_part(&mut self, cluster: u32, part: &Part<'_>) {
        self.counters.uring_parts_received += 1;
        let counted = self.counted.counted(part.head.proposer).unwrap_or(0);
        if part.head.counter <= counted {
            return;
        }
        // Nobody has more values under way than bytes.
        let ahead = 2 * self.settings.window_bytes as u64;
        let is_sound = part.head.cluster == cluster && part.head.counter - counted <= ahead;
        if !is_sound || self.take_part(part).is_err() {
            self.counters.uring_parts_dropped += 1;
        }
    }

    /// Who is not in the ring has no use for any.
    fn take_part(&mut self, part: &Part<'_>) -> Result<(), Dropped> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let Some((id, frame)) = stream.on_part(self.now, part)? else {
            return Ok(());
        };
        if !super::value::is_sound(&frame) {
            return Err(Dropped);
        }
        // Without room for it, it is asked for later.
        let _ = self.on_value(id, frame);
        Ok(())
    }

    /// The next datagrams of own values, after everything else that there is to say, and not all at once: who does
    /// nothing but send is taken for dead.
    pub(super) fn next_burst(&mut self) -> Option<Output> {
        let settings = self.settings.multicast?;
        if self.bursts.is_empty() {
            let stream = self.stream.as_mut().filter(|_| !self.spare.is_used())?;
            stream.successor()?;
            let (id, frame) = stream.next_own(self.now)?;
            // The coordinator may propose it now.
            self.submitted |= stream.leads();
            self.spare.leaves(frame.len());
            self.bursts.extend(parts::cut(&settings, id, &frame));
        }
        let burst = self.bursts.pop_front()?;
        if let Some(rate) = self.stream.as_mut().and_then(Stream::rate) {
            rate.leaves(self.now, burst.bytes.len());
        }
        Some(Output::Send {
            class: Class::Data,
            channel: Channel::default(),
            to: Target::Others,
            burst,
            after: None,
            pace: None,
        })
    }

    /// Whether own values wait to leave, that others may come first.
    pub(super) fn has_more(&self) -> bool {
        let has_own = |stream: &Stream| stream.cast.is_some() && stream.has_own();
        self.spare.is_used() && self.stream.as_ref().is_some_and(has_own)
    }

    /// Proposals that have waited for their values.
    pub(super) fn release(&mut self) {
        while let Some(stream) = &mut self.stream
            && let Some((first, proposed)) = stream.release()
        {
            self.adopt_next(first, proposed);
        }
    }

    /// Looks what is missing, so that it is asked for in time.
    pub(super) fn watch(&mut self) {
        let patience = self.settings.patience;
        let leading = self.leading.as_ref();
        let begun = self.learner.round() == self.number();
        let Some(stream) = &mut self.stream else {
            return;
        };
        if stream.cast.is_none() {
            return;
        }
        let lack = stream.lack(leading.and_then(super::lead::Leading::table));
        let first = stream.first_own().map(|(id, _)| id.counter);
        let first = first.filter(|_| begun && !stream.leads());
        let Some(cast) = &mut stream.cast else {
            return;
        };
        // On a slow link a value takes long, and names come before it.
        let most = 2 * self.settings.frame_bytes;
        let rate = cast.rate.as_ref();
        let on_links = rate.map_or(0, |rate| rate.takes_on_links(most));
        let own = rate.map_or(0, |rate| rate.takes(most));
        let long = |takes: u64| patience.heartbeat / LONG + takes.min(patience.silence);
        let wait = |has_come: bool| match has_come {
            true => patience.heartbeat / SHORT,
            false => long(on_links),
        };
        cast.watch(
            self.now,
            lack.map(|(lack, has_come)| (lack, wait(has_come))),
        );
        cast.late = match (cast.late, first) {
            (Some((old, at, pause)), Some(first)) if old == first => Some((old, at, pause)),
            (_, Some(first)) => Some((first, self.now.after(long(own)), long(own))),
            (_, None) => None,
        };
    }

    /// When something is to be asked for, or sent once more.
    pub(super) fn multicast_at(&self) -> Option<Time> {
        let cast = self.stream.as_ref()?.cast.as_ref()?;
        let lack = cast.lack.map(|lacking| lacking.at);
        let late = cast.late.map(|(_, at, _)| at);
        let rate = cast.rate.as_ref().and_then(Rate::next_time);
        lack.into_iter().chain(late).chain(rate).min()
    }

    pub(super) fn on_multicast_timer(&mut self) {
        let now = self.now;
        let Some(cast) = self.stream.as_ref().and_then(|stream| stream.cast.as_ref()) else {
            return;
        };
        let (lack, late) = (cast.lack, cast.late);
        if let Some(lacking) = lack.filter(|lacking| lacking.at <= now) {
            self.ask_for(lacking);
        }
        if let Some((_, _, pause)) = late.filter(|(_, at, _)| *at <= now) {
            self.send_late(pause);
        }
    }

    fn ask_for(&mut self, lacking: Lacking) {
        let patience = self.settings.patience;
        let pause = (2 * lacking.pause).clamp(patience.heartbeat / LONG, patience.heartbeat);
        let at = self.now.after(pause);
        let Some(cast) = self.stream.as_mut().and_then(|stream| stream.cast.as_mut()) else {
            return;
        };
        cast.lack = Some(Lacking {
            at,
            pause,
            ..lacking
        });
        let is_asked = match lacking.lack {
            Lack::Of(_) => self.ask_predecessor(),
            Lack::Next(..) => self.ask_proposers(),
        };
        if !is_asked {
            // There is nobody to ask. That is no loss for which others should slow down.
            return;
        }
        if let Some(stream) = &mut self.stream {
            stream.lost_here();
        }
        self.counters.uring_values_asked_for += 1;
        self.slow_down();
    }

    /// The predecessor has the values that it named.
    fn ask_predecessor(&mut self) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let has_link = stream.predecessor().is_some_and(|who| self.peers.has(who));
        if has_link {
            stream.hail = Hail::Due;
        }
        has_link
    }

    /// The coordinator asks for what it has not proposed.
    fn ask_proposers(&mut self) -> bool {
        let table = self.leading.as_ref().and_then(super::lead::Leading::table);
        let wanted = |table: &Proposers| Some(self.stream.as_ref()?.wanted(table));
        let mut wanted = table.and_then(wanted).unwrap_or_default();
        wanted.retain(|(process, _)| self.peers.has(*process));
        let is_asked = !wanted.is_empty();
        for (process, counters) in wanted {
            self.say(process.node, Word::Want(counters));
        }
        is_asked
    }

    /// The coordinator seems not to have had an own value: it is sent that by its link.
    fn send_late(&mut self, pause: u64) {
        let (Some(stream), Some(config)) = (&mut self.stream, &self.config) else {
            return;
        };
        let to = config.coordinator;
        let Some((id, frame)) = stream.first_own() else {
            return;
        };
        let next = (2 * pause).min(self.settings.patience.silence);
        if let Some(cast) = &mut stream.cast {
            cast.late = Some((id.counter, self.now.after(next), next));
        }
        if mutants::on(Mutant::U31) {
            return;
        }
        match self.peers.process(to) {
            None => stream.goes_along(id),
            // It may be among them.
            Some(peer) if peer.has_words() => return,
            Some(peer) => peer.say(&Word::Value(id.counter, frame)),
        }
        self.counters.uring_values_sent_again += 1;
    }

    /// The coordinator lacks own values.
    pub(super) fn on_want(&mut self, process: Process, counters: &[u64]) {
        let is_asked = |config: &Arc<Config>| config.coordinator == process;
        if !self.config.as_ref().is_some_and(is_asked) {
            self.counters.uring_messages_stale += 1;
            return;
        }
        let peer = self.peers.process(process);
        // What waits may be an answer; and it is asked for again.
        let Some(peer) = peer.filter(|peer| !peer.has_words()) else {
            return;
        };
        let mut room = self.settings.word_bytes;
        for counter in counters {
            let Some(frame) = self.own.value(*counter) else {
                continue;
            };
            self.counters.uring_values_sent_again += 1;
            room = room.saturating_sub(frame.len());
            peer.say(&Word::Value(*counter, frame));
            if room == 0 {
                return;
            }
        }
    }

    /// Somebody had to ask for values, and says how often.
    pub(super) fn on_lost(&mut self, place: usize, count: u64) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let is_own = stream.place(self.me) == Some(place);
        let Some(cast) = &mut stream.cast else {
            return false;
        };
        if place >= cast.losses.len() || is_own {
            return false;
        }
        if cast.on_losses(place, count) {
            self.slow_down();
        }
        true
    }

    fn slow_down(&mut self) {
        let pause = self.settings.patience.heartbeat / LONG;
        let stream = self.stream.as_mut();
        if let Some(cast) = stream.and_then(|stream| stream.cast.as_mut()) {
            cast.slow_down(self.now, pause);
        }
    }

    /// An own value has counted.
    pub(super) fn grow(&mut self, id: ValueId, bytes: usize) {
        let stream = self.stream.as_mut().filter(|_| id.process == self.me);
        if let Some(cast) = stream.and_then(|stream| stream.cast.as_mut()) {
            cast.on_counted(bytes);
            if let Some(rate) = &mut cast.rate {
                rate.on_counted(self.now, id.counter);
            }
        }
    }
}
