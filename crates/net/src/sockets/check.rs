//! From bursts as they were read to datagrams that may be handed in.

use bytes::Bytes;
use rota_core::contract::Class;
use std::collections::VecDeque;
use std::net::SocketAddr;

use super::{Arrival, Sockets};
use crate::runs::kept_runs;
use crate::seal::OpenError;
use crate::socket::RawBurst;

impl Sockets {
    /// Checks a burst; wrong datagrams are counted and cut out.
    pub(super) fn open_burst(
        &mut self,
        class: Class,
        raw: RawBurst,
        arrivals: &mut VecDeque<Arrival>,
    ) {
        let RawBurst {
            bytes,
            segment,
            source,
        } = raw;
        match source {
            Some(source) if source == self.own_data => {
                self.stats.own += 1;
                return;
            }
            Some(source) if class == Class::Token && self.peers.is_open() => {
                self.open_each(&bytes, segment.max(1), Some(source), arrivals);
                return;
            }
            Some(source) if self.peers.has(source.ip()) => {}
            _ => {
                self.stats.foreign_source += 1;
                return;
            }
        }
        // An empty datagram has no segment size.
        let segment = segment.max(1);
        if self.bursts.are_sound(&bytes, segment) {
            self.stats.datagrams_in += bytes.len().div_ceil(segment) as u64;
            arrivals.push_back(Arrival { bytes, segment });
            return;
        }
        let before = self.stats.datagrams_in;
        self.open_each(&bytes, segment, None, arrivals);
        if self.stats.datagrams_in - before == bytes.len().div_ceil(segment) as u64 {
            self.bursts.learn(&bytes, segment);
        }
    }

    /// Checks the datagrams of a burst one by one; with `learn_from`, an address that anybody may have, looks
    /// also who sent them.
    fn open_each(
        &mut self,
        bytes: &Bytes,
        segment: usize,
        learn_from: Option<SocketAddr>,
        arrivals: &mut VecDeque<Arrival>,
    ) {
        let Self {
            seal, stats, peers, ..
        } = self;
        let keep = |_: usize, datagram: &[u8]| match seal.open(datagram) {
            Ok(()) if learn_from.is_some_and(|source| !peers.learn(datagram, source)) => {
                stats.foreign_source += 1;
                false
            }
            Ok(()) => {
                stats.datagrams_in += 1;
                true
            }
            Err(OpenError::Short) => {
                stats.short += 1;
                false
            }
            Err(OpenError::Checksum) => {
                stats.checksum_errors += 1;
                false
            }
        };
        kept_runs(bytes, segment, keep, |bytes| {
            let segment = segment.min(bytes.len());
            arrivals.push_back(Arrival { bytes, segment });
        });
    }
}
