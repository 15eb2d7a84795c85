//! The choice of the class to read first, token or data (report §III-D, thesis §3.1.4).
//!
//! After a visit data comes first, so that packets on their way are not taken for lost ones. The
//! token comes first again once the predecessor is known to be in its next visit. Each packet is
//! stamped with its sender's visit: the low bits of the `token_seq` it received. Hops, not
//! rotations, are counted, so the rule is the same for every place on the ring.

use super::{PriorityMethod, Protocol, RingConfig};
use rota_core::contract::{Class, NodeId};

#[derive(Clone, Hash, Debug)]
pub(super) struct Priority {
    predecessor: NodeId,
    method: PriorityMethod,
    protocol: Protocol,
    first: Class,
    /// `token_seq` of the last visit.
    visit: u64,
    /// `token_seq` of the visit before.
    visit_before: u64,
}

impl Priority {
    pub const fn new(config: &RingConfig, predecessor: NodeId) -> Self {
        Self {
            predecessor,
            method: config.priority_method,
            protocol: config.protocol,
            first: Class::Data,
            visit: 0,
            visit_before: 0,
        }
    }

    /// Its invariants, at a member that has had this token last.
    pub fn check(&self, token_seq: u64) {
        assert!(
            self.visit_before <= self.visit && self.visit <= token_seq,
            "visits follow each other"
        );
        assert!(
            self.protocol == Protocol::Accelerated || self.first == Class::Data,
            "the token goes first if it is accelerated"
        );
    }

    pub const fn reading(&self) -> Class {
        self.first
    }

    pub const fn begin_visit(&mut self, token_seq: u64) {
        self.visit_before = self.visit;
        self.visit = token_seq;
        self.first = Class::Data;
    }

    /// Stamp of packets that leave before the token.
    pub const fn stamp_before_token(&self) -> u16 {
        match self.method {
            PriorityMethod::First => self.visit as u16,
            PriorityMethod::Second => self.visit_before as u16,
        }
    }

    /// Stamp of packets that leave after the token.
    pub const fn stamp_after_token(&self) -> u16 {
        self.visit as u16
    }

    /// Notes a packet. Answers whether its sender had the token after this member passed it on: so
    /// that token is not lost.
    pub fn on_data(&mut self, sender: NodeId, round: u16) -> bool {
        let newer = is_newer(round, self.visit as u16);
        if newer && sender == self.predecessor && self.protocol == Protocol::Accelerated {
            self.first = Class::Token;
        }
        newer
    }
}

/// Serial comparison: `a` is later than `b`, both being low bits of a growing number.
const fn is_newer(a: u16, b: u16) -> bool {
    let ahead = a.wrapping_sub(b);
    ahead != 0 && ahead < 0x8000
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const A: NodeId = NodeId::new(1).unwrap();
    const B: NodeId = NodeId::new(2).unwrap();

    fn priority(method: PriorityMethod) -> Priority {
        let mut config = RingConfig::new(1, vec![A, B]);
        config.priority_method = method;
        let mut priority = Priority::new(&config, B);
        priority.begin_visit(10);
        priority
    }

    #[test]
    fn only_the_predecessor_raises_the_token() {
        let mut p = priority(PriorityMethod::First);
        p.on_data(A, 12);
        assert_eq!(p.reading(), Class::Data);
        p.on_data(B, 10);
        assert_eq!(p.reading(), Class::Data);
        p.on_data(B, 12);
        assert_eq!(p.reading(), Class::Token);
        p.begin_visit(13);
        assert_eq!(p.reading(), Class::Data);
    }

    #[test]
    fn the_second_method_stamps_what_leaves_before_the_token_with_the_visit_before() {
        let mut p = priority(PriorityMethod::Second);
        p.begin_visit(13);
        assert_eq!((p.stamp_before_token(), p.stamp_after_token()), (10, 13));
        let mut p = priority(PriorityMethod::First);
        p.begin_visit(13);
        assert_eq!((p.stamp_before_token(), p.stamp_after_token()), (13, 13));
    }

    #[test]
    fn stamps_may_wrap() {
        assert!(is_newer(3, 0xfffe));
        assert!(!is_newer(0xfffe, 3));
        assert!(!is_newer(3, 3));
    }
}
