//! Flow control: the number of new packets that a visit may send.

use super::RingConfig;
use rota_core::contract::Seq;
use rota_core::mutants::{self, Mutant};

/// Flow control of one member.
#[derive(Clone, Hash, Debug)]
pub(super) struct Flow {
    personal: u64,
    global: u64,
    outstanding: u64,
    /// The packets that this member sent in its last visit, retransmissions included.
    sent_last: u32,
    /// The new packets that this member wanted to send in its last visit.
    wanted_last: u32,
    /// The rest of its shares that this member did not send, in parts of a packet. A packet has as many parts as all
    /// members together want packets.
    credit: u64,
}

/// The facts on which a member decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Packets waiting.
    pub backlog: usize,
    /// The received token's `fcc`.
    pub fcc: u32,
    /// The received token's `backlog`.
    pub wanted: u32,
    /// The received token's `seq`.
    pub seq: Seq,
    /// The sequence number up to which all members are known to have every packet.
    pub safe_line: Seq,
    /// Packets sent again in this visit.
    pub resent: u32,
}

impl Flow {
    pub const fn new(config: &RingConfig) -> Self {
        Self {
            personal: config.windows.personal as u64,
            global: config.windows.global as u64,
            outstanding: config.windows.outstanding as u64,
            sent_last: 0,
            wanted_last: 0,
            credit: 0,
        }
    }

    /// The most packets a visit may send again.
    pub const fn retransmission_limit(&self) -> u64 {
        self.global
    }

    /// `min(backlog, personal_window, global_window − (fcc − sent last) − resent)`, never below 0,
    /// and never further beyond the safe line than the outstanding window. Report §III-B1 forgets to
    /// take off what this member itself sent in the last rotation, which would hold a full ring
    /// below its window; the thesis (§3.1.2.1) allows a personal window too much.
    ///
    /// Alone, that rule lets the first members of a large ring use up the global window in every rotation and starves
    /// the last. So when all together want more than the global window, each gets its share of it; the token carries
    /// the sum of the packets that all want, as Totem's does. The part of a share that is less than a packet, or did
    /// not fit, counts in the next visit: rounded up, the shares would be more than the window, and the last members
    /// would get nothing; rounded down, a share below one packet would never be one.
    pub fn allowed(&mut self, demand: &Demand) -> u64 {
        let others = u64::from(demand.fcc.saturating_sub(self.sent_last));
        let global = self
            .global
            .saturating_sub(others)
            .saturating_sub(u64::from(demand.resent));
        let ahead = demand.seq.saturating_sub(demand.safe_line);
        let outstanding = self.outstanding.saturating_sub(ahead);
        let wants = self.wants(demand).min(global).min(outstanding);
        let all = self.all_want(demand);
        if all <= self.global {
            self.credit = 0;
            return wants;
        }
        let given = self.credit + self.global * self.wants(demand);
        let share = match mutants::on(Mutant::M41) {
            true => given.div_ceil(all),
            false => given / all,
        };
        let allowed = wants.min(share);
        // At most one packet is owed: a member that could not send for long would otherwise crowd the others out.
        self.credit = given.saturating_sub(allowed * all).min(all);
        allowed
    }

    fn wants(&self, demand: &Demand) -> u64 {
        (demand.backlog as u64).min(self.personal)
    }

    /// The packets that all members want to send, this one counted with what it wants now.
    fn all_want(&self, demand: &Demand) -> u64 {
        u64::from(demand.wanted.saturating_sub(self.wanted_last)) + self.wants(demand)
    }

    /// Whether the windows shared with others kept packets back.
    pub fn throttled(&self, demand: &Demand, allowed: u64) -> bool {
        allowed < self.wants(demand)
    }

    /// The `backlog` to pass on, given the packets that wait in this visit.
    pub fn pass_on_wanted(&mut self, demand: &Demand) -> u32 {
        let wanted = u32::try_from(self.all_want(demand)).unwrap_or(u32::MAX);
        self.wanted_last = u32::try_from(self.wants(demand)).unwrap_or(u32::MAX);
        wanted
    }

    /// The `fcc` to pass on, having sent `sent` packets in this visit.
    pub const fn pass_on(&mut self, fcc: u32, sent: u32) -> u32 {
        let fcc = fcc.saturating_sub(self.sent_last).saturating_add(sent);
        self.sent_last = sent;
        fcc
    }
}

impl Flow {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.personal >= 1 && self.global >= 1 && self.outstanding >= 1,
            "a member may send"
        );
        assert!(
            u64::from(self.sent_last) <= self.personal + self.retransmission_limit(),
            "no more was sent than allowed"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn flow(personal: u32, global: u32) -> Flow {
        let mut config = RingConfig::new(1, vec![]);
        config.windows.personal = personal;
        config.windows.global = global;
        config.windows.outstanding = 100;
        Flow::new(&config)
    }

    const DEMAND: Demand = Demand {
        backlog: 50,
        fcc: 0,
        wanted: 0,
        seq: 0,
        safe_line: 0,
        resent: 0,
    };

    #[test]
    fn the_three_rules_for_the_global_window_differ_here() {
        // Window 20, personal 10; the last rotation sent 18 in all, 8 of them this member's.
        let mut flow = flow(10, 20);
        flow.pass_on(0, 8);
        let demand = Demand {
            fcc: 18,
            resent: 2,
            ..DEMAND
        };
        let report = 20_u64.saturating_sub(18).saturating_sub(2);
        let thesis = flow.personal.min(20 + 10 - 18);
        assert_eq!((report, thesis, flow.allowed(&demand)), (0, 10, 8));
    }

    #[test]
    fn never_below_zero() {
        assert_eq!(
            flow(10, 20).allowed(&Demand {
                fcc: 500,
                resent: 7,
                ..DEMAND
            }),
            0
        );
    }

    #[test]
    fn one_who_lags_throttles_everybody() {
        let at = |seq| {
            flow(10, 200).allowed(&Demand {
                seq,
                safe_line: 0,
                ..DEMAND
            })
        };
        assert_eq!(
            (at(89), at(90), at(95), at(100), at(101)),
            (10, 10, 5, 0, 0)
        );
    }

    #[test]
    fn when_all_want_more_than_the_window_each_gets_a_share() {
        let mut flow = flow(10, 20);
        assert_eq!(
            flow.pass_on_wanted(&Demand {
                wanted: 30,
                ..DEMAND
            }),
            40
        );
        assert_eq!(
            flow.allowed(&Demand {
                wanted: 40,
                ..DEMAND
            }),
            5
        );
        assert_eq!(
            flow.allowed(&Demand {
                wanted: 20,
                ..DEMAND
            }),
            10
        );
    }

    #[test]
    fn parts_of_packets_add_up() {
        // A share of two thirds of a packet.
        let mut flow = flow(10, 20);
        flow.pass_on_wanted(&DEMAND);
        let demand = Demand {
            wanted: 300,
            ..DEMAND
        };
        let mut visit = || flow.allowed(&demand);
        assert_eq!([visit(), visit(), visit(), visit()], [0, 1, 1, 0]);
    }

    #[test]
    fn fcc_is_what_the_last_rotation_sent() {
        let mut flow = flow(10, 20);
        assert_eq!(flow.pass_on(12, 5), 17);
        assert_eq!(flow.pass_on(17, 3), 15);
    }
}
