//! The deliveries of earlier rings that the application has not taken yet: A9, rules R1 to R5.
//!
//! Installing a ring is one step for the protocol. The application takes its deliveries when it has room, so the
//! deliveries of the rings before wait here, in order.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::{Context, Ended, Ordering};
use rota_core::contract::{Configuration, Delivery};

#[derive(Clone, Debug, Default)]
pub(super) struct Stages {
    waiting: VecDeque<Stage>,
}

#[derive(Clone, Debug)]
enum Stage {
    Ended(Box<EndedRing>),
    Configuration(Configuration),
}

/// A ring that is no more.
#[derive(Clone, Debug)]
struct EndedRing {
    ordering: Ordering,
    ended: Ended,
    /// `None` once it was delivered.
    transitional: Option<Configuration>,
}

impl Stages {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number of rings and configurations that the application has not seen the end of.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The rings that are no more and not forgotten.
    pub fn rings(&self) -> impl Iterator<Item = &Ordering> {
        self.waiting.iter().filter_map(|stage| match stage {
            Stage::Ended(ring) => Some(&ring.ordering),
            Stage::Configuration(_) => None,
        })
    }

    /// Adds a ring that ends, and whose members go on as `transitional`.
    pub fn end(&mut self, mut ordering: Ordering, ended: Ended, transitional: Configuration) {
        ordering.end_regular(&ended);
        self.waiting.push_back(Stage::Ended(Box::new(EndedRing {
            ordering,
            ended,
            transitional: Some(transitional),
        })));
    }

    /// Adds a regular configuration that begins (R5).
    pub fn begin(&mut self, regular: Configuration) {
        self.waiting.push_back(Stage::Configuration(regular));
    }

    /// The next delivery.
    pub fn poll(&mut self, ctx: &mut Context<'_>) -> Option<Delivery> {
        loop {
            match self.waiting.pop_front()? {
                Stage::Configuration(regular) => return Some(Delivery::Configuration(regular)),
                Stage::Ended(mut ring) => {
                    if let Some(delivery) = ring.poll(ctx) {
                        self.waiting.push_front(Stage::Ended(ring));
                        return Some(delivery);
                    }
                }
            }
        }
    }
}

impl Stages {
    /// Their invariants.
    pub fn check(&self) {
        let begins = |stage: &Stage| matches!(stage, Stage::Configuration(_));
        assert!(
            self.waiting.back().is_none_or(begins),
            "a ring that ends is followed by one that begins"
        );
    }
}

impl EndedRing {
    fn poll(&mut self, ctx: &mut Context<'_>) -> Option<Delivery> {
        if let Some(message) = self.ordering.poll_message(ctx) {
            return Some(Delivery::Message(message));
        }
        let transitional = self.transitional.take()?;
        self.ordering.end_transitional(&self.ended);
        Some(Delivery::Configuration(transitional))
    }
}
