//! The way from bursts as they were read to datagrams that may be handed in.

use bytes::Bytes;
use rota_core::contract::Class;
use std::collections::VecDeque;
use std::net::SocketAddr;

use super::{Arrival, Seal, Sockets};
use crate::runs::kept_runs;
use crate::seal::OpenError;
use crate::seal::checksum;
use crate::socket::RawBurst;
use crate::stats::NetStats;
use crate::sys;

impl Sockets {
    /// Checks a burst; wrong datagrams are counted and cut out.
    pub(super) fn open_burst(
        &mut self,
        class: Class,
        raw: RawBurst,
        arrivals: &mut VecDeque<Arrival>,
    ) {
        let learn_from = match raw.source {
            Some(source) if source == self.own_data => {
                self.stats.own += 1;
                return;
            }
            Some(source) if class == Class::Token && self.peers.may_learn_from(source) => {
                Some(source)
            }
            Some(source) if self.peers.hear(source.ip()) => None,
            _ => {
                self.stats.foreign_source += 1;
                return;
            }
        };
        if raw.len == 0 {
            return;
        }
        match self.seal {
            Seal::Plain(_) => self.check_burst(class, raw, learn_from, arrivals),
            Seal::Keyed(_) => self.decrypt_burst(class, raw, learn_from, arrivals),
        }
    }

    /// By checksum.
    fn check_burst(
        &mut self,
        class: Class,
        RawBurst { len, segment, .. }: RawBurst,
        learn_from: Option<SocketAddr>,
        arrivals: &mut VecDeque<Arrival>,
    ) {
        let bytes = self.ports.receiver(class).take_read(len);
        let datagrams = len.div_ceil(segment) as u64;
        if learn_from.is_none()
            && let Seal::Plain(bursts) = &self.seal
            && bursts.are_sound(&bytes, segment)
        {
            self.stats.datagrams_in += datagrams;
            arrivals.push_back(Arrival { bytes, segment });
            return;
        }
        let before = self.stats.datagrams_in;
        self.keep(&bytes, segment, learn_from, arrivals, |_, datagram| {
            checksum::open(datagram)
        });
        if learn_from.is_none()
            && self.stats.datagrams_in - before == datagrams
            && let Seal::Plain(bursts) = &mut self.seal
        {
            bursts.learn(&bytes, segment);
        }
    }

    /// By key: in the buffer where it was read to.
    fn decrypt_burst(
        &mut self,
        class: Class,
        RawBurst { len, segment, .. }: RawBurst,
        learn_from: Option<SocketAddr>,
        arrivals: &mut VecDeque<Arrival>,
    ) {
        let Self { seal, ports, .. } = self;
        let Seal::Keyed(seal) = seal else { return };
        let port = ports.receiver(class);
        let mut opening = seal.opening(sys::monotonic(), class);
        let mut wrong = Vec::new();
        for (at, datagram) in port.read_mut(len).chunks_mut(segment).enumerate() {
            if let Err(error) = opening.open(datagram) {
                wrong.push((at, error));
            }
        }
        let bytes = port.take_read(len);
        if wrong.is_empty() && learn_from.is_none() {
            self.stats.datagrams_in += len.div_ceil(segment) as u64;
            arrivals.push_back(Arrival { bytes, segment });
            return;
        }
        let mut wrong = wrong.into_iter().peekable();
        let is_wrong = |at: usize, _: &[u8]| match wrong.next_if(|(wrong_at, _)| *wrong_at == at) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        };
        self.keep(&bytes, segment, learn_from, arrivals, is_wrong);
    }

    /// Looks at the datagrams of a burst one by one; with `learn_from`, an address that anybody may have, also learns
    /// their senders.
    fn keep(
        &mut self,
        bytes: &Bytes,
        segment: usize,
        learn_from: Option<SocketAddr>,
        arrivals: &mut VecDeque<Arrival>,
        mut open: impl FnMut(usize, &[u8]) -> Result<(), OpenError>,
    ) {
        let Self { stats, peers, .. } = self;
        let keep = |at: usize, datagram: &[u8]| match open(at, datagram) {
            Ok(()) if learn_from.is_some_and(|source| !peers.learn(datagram, source)) => {
                stats.foreign_source += 1;
                false
            }
            Ok(()) => {
                stats.datagrams_in += 1;
                true
            }
            Err(error) => {
                count(stats, error);
                false
            }
        };
        kept_runs(bytes, segment, keep, |bytes| {
            let segment = segment.min(bytes.len());
            arrivals.push_back(Arrival { bytes, segment });
        });
    }
}

/// Counts a datagram that is dropped.
const fn count(stats: &mut NetStats, error: OpenError) {
    let counter = match error {
        OpenError::Short => &mut stats.short,
        OpenError::Checksum => &mut stats.checksum_errors,
        OpenError::UnknownSender => &mut stats.foreign_source,
        OpenError::UnknownKey => &mut stats.seal_unknown_key,
        OpenError::Forged => &mut stats.seal_forged,
        OpenError::Old => &mut stats.seal_old,
        OpenError::Seen => &mut stats.seal_seen,
        OpenError::Misdirected => &mut stats.seal_misdirected,
        OpenError::OldLife => &mut stats.seal_old_life,
        OpenError::Unchecked => &mut stats.seal_unchecked,
    };
    *counter += 1;
}
