//! Checks the caller's law in debug builds.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::link_law::LinkLaw;
use super::turn_law::TurnLaw;

use super::{
    Class, Delivery, Engine, Input, LogRecord, MOST_PERSISTING, MOST_RECORD, NodeId, Output,
    PersistId, RingId, Seq, Service, Status, SubmitError, Time, TimerReason,
};

/// Wraps an engine and asserts that its caller keeps the law of the module page. In release builds
/// it only forwards.
#[derive(Debug)]
pub struct Checked<E> {
    engine: E,
    started: bool,
    now: Time,
    /// True once `poll_output` has said `None` since the last output or input.
    drained: bool,
    /// True while a handed-out output may still be on its way.
    output_pending: bool,
    /// Requests without an answer, and their bytes.
    requests: VecDeque<(PersistId, usize)>,
    /// The newest request.
    asked: Option<PersistId>,
    links: LinkLaw,
    turn: TurnLaw,
}

impl<E: Engine> Checked<E> {
    /// Wraps `engine`, which must not have been started yet.
    pub const fn new(engine: E) -> Self {
        Self {
            engine,
            started: false,
            now: Time(0),
            drained: true,
            output_pending: false,
            requests: VecDeque::new(),
            asked: None,
            links: LinkLaw::new(),
            turn: TurnLaw::new(),
        }
    }

    /// The engine inside.
    pub const fn get(&self) -> &E {
        &self.engine
    }

    /// The engine inside, for what the contract does not cover.
    pub const fn get_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Gives the engine a command of its own, one that not all engines have, by the same law as a submission: `command`
    /// changes the engine and does not poll it.
    pub fn command<T>(&mut self, now: Time, command: impl FnOnce(&mut E, Time) -> T) -> T {
        debug_assert!(self.started, "commanded before Start");
        debug_assert!(now >= self.now, "time went backwards");
        self.now = now;
        self.drained = false;
        command(&mut self.engine, now)
    }

    /// Asserts that requests ascend, and that records and the requests under way have sizes that drivers take.
    fn check_request(&mut self, output: &Output) {
        match output {
            Output::Persist { id, records } => {
                let bytes = |record: &LogRecord| match record {
                    LogRecord::Put { bytes, .. } => bytes.len(),
                    LogRecord::Trim { .. } => 0,
                };
                let largest = records.iter().map(bytes).max().unwrap_or(0);
                debug_assert!(largest <= MOST_RECORD, "a record of {largest} bytes");
                debug_assert!(
                    self.asked.is_none_or(|asked| asked < *id),
                    "requests of disks do not ascend"
                );
                self.asked = Some(*id);
                let all = records.iter().map(bytes).sum();
                self.requests.push_back((*id, all));
                let all: usize = self.requests.iter().map(|(_, bytes)| bytes).sum();
                debug_assert!(all <= MOST_PERSISTING, "{all} bytes wait to be durable");
            }
            Output::Reopen => self.requests.clear(),
            _ => {}
        }
    }

    fn check_input(&mut self, now: Time, input: &Input) {
        self.links.told(input);
        debug_assert!(
            now >= self.now,
            "time went backwards: {now:?} after {:?}",
            self.now
        );
        match input {
            Input::Start(_) => debug_assert!(!self.started, "started twice"),
            _ => debug_assert!(self.started, "the first input is Start, not {input:?}"),
        }
        self.turn.told(now, input, || self.engine.next_timer());
        match input {
            Input::Persisted { id } => {
                debug_assert!(
                    self.asked.is_some_and(|asked| *id <= asked),
                    "an answer to what was not asked"
                );
                self.requests.retain(|(of, _)| of > id);
            }
            Input::PersistFailed { .. } => self.requests.clear(),
            _ => {}
        }
        if let Input::Datagrams {
            class,
            bytes,
            segment,
            ..
        } = input
        {
            debug_assert!(
                *segment > 0 && !bytes.is_empty(),
                "an empty burst was handed in"
            );
            debug_assert!(
                *class == Class::Data || !self.output_pending,
                "a token was handed in while an output of the previous visit has not left"
            );
            debug_assert!(
                *class == Class::Data || self.drained,
                "a token was handed in before the outputs were drained"
            );
        }
    }
}

impl<E: Engine> Engine for Checked<E> {
    fn handle(&mut self, now: Time, input: Input) {
        if cfg!(debug_assertions) {
            self.check_input(now, &input);
        }
        self.started = true;
        self.now = now;
        self.drained = false;
        self.engine.handle(now, input);
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        debug_assert!(self.started, "submitted before Start");
        debug_assert!(now >= self.now, "time went backwards");
        self.now = now;
        self.drained = false;
        self.engine.submit(now, service, payload)
    }

    fn submit_skips_to(&mut self, now: Time, next: Seq) -> Result<(), SubmitError> {
        debug_assert!(self.started, "submitted before Start");
        debug_assert!(now >= self.now, "time went backwards");
        self.now = now;
        self.drained = false;
        self.engine.submit_skips_to(now, next)
    }

    fn leave(&mut self, now: Time) {
        debug_assert!(now >= self.now, "time went backwards");
        self.now = now;
        self.drained = false;
        self.engine.leave(now);
    }

    fn application_hangs(&mut self, now: Time, hangs: bool) {
        self.turn.hangs(hangs);
        self.now = now;
        self.drained = false;
        self.engine.application_hangs(now, hangs);
    }

    fn look_again(&mut self, now: Time) {
        self.now = now;
        self.drained = false;
        self.engine.look_again(now);
    }

    fn electorates(&self, ring: RingId) -> Option<Vec<Vec<NodeId>>> {
        self.engine.electorates(ring)
    }

    fn carries_on(&mut self, now: Time, ring: RingId) {
        self.now = now;
        self.drained = false;
        self.engine.carries_on(now, ring);
    }

    fn poll_output(&mut self) -> Option<Output> {
        let output = self.engine.poll_output();
        if cfg!(debug_assertions)
            && let Some(output) = &output
        {
            self.check_request(output);
            self.links.asked(output);
        }
        self.output_pending = output.is_some();
        self.drained = output.is_none();
        output
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        debug_assert!(self.started, "a delivery was polled before Start");
        self.turn.polls_delivery();
        let delivery = self.engine.poll_delivery();
        if cfg!(debug_assertions)
            && let Some(delivery) = &delivery
        {
            self.turn.delivered(delivery);
        }
        delivery
    }

    fn reading(&self) -> Class {
        debug_assert!(self.started, "asked what to read before Start");
        self.turn.asked_what_to_read();
        self.engine.reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        debug_assert!(
            self.drained || self.output_pending,
            "the next timer was asked for before the outputs were drained"
        );
        self.engine.next_timer()
    }

    fn wants_links(&self) -> bool {
        self.engine.wants_links()
    }

    fn status(&self) -> Status {
        self.engine.status()
    }
}
