//! The terms on which clients are let in, which may change; and clients whose certificates are revoked while they are
//! connected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustls::ServerConfig;

use super::TlsError;
use super::door::{News, Terms, TlsCounters};
use super::link::{Caller, Link};
use super::thread::Relays;

/// Clients that are looked at in one turn of the loop.
const AT_ONCE: usize = 16;

/// The terms in force, and the clients whose certificates are still to be looked at by them.
#[derive(Debug)]
pub(super) struct InForce {
    terms: Terms,
    /// The number of times that certificates were adopted.
    number: u64,
    /// Links whose clients' certificates may have been revoked, by key and number.
    rechecks: VecDeque<(usize, u64)>,
}

impl InForce {
    pub const fn new(terms: Terms) -> Self {
        Self {
            terms,
            number: 0,
            rechecks: VecDeque::new(),
        }
    }

    /// Other terms are in force, once they are adopted.
    pub fn replace(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// Reads the certificates again if their files have changed; whether they had.
    fn refresh(&mut self) -> Result<bool, TlsError> {
        self.terms.certificates.refresh(Instant::now())
    }

    /// The certificates, for a handshake that begins now.
    fn current(&self) -> Arc<ServerConfig> {
        self.terms.certificates.current()
    }

    /// The number of the certificates with which a handshake begins now.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The time that a handshake may take, or a client to take its last frames.
    pub const fn patience(&self) -> Duration {
        self.terms.patience
    }

    /// Handshakes at once.
    pub const fn handshakes(&self) -> usize {
        self.terms.handshakes
    }

    /// Clients at once, with those whose handshake is not done.
    pub const fn most(&self) -> usize {
        self.terms.most
    }

    /// Adopts new certificates: new lists of revoked ones hold for connected clients, too.
    fn adopt(&mut self, shown: impl Iterator<Item = (usize, u64)>, counters: &TlsCounters) {
        let lists = self.terms.certificates.lists_end();
        let expires = lists.map_or(0, |until| until.unix_seconds());
        counters.lists_end.store(expires, Ordering::Relaxed);
        let end = self.terms.certificates.end();
        counters.end.store(end, Ordering::Relaxed);
        self.number += 1;
        self.rechecks.clear();
        if lists.is_some() {
            self.rechecks.extend(shown);
        }
    }

    /// Whether there are clients to look at.
    pub fn has_rechecks(&self) -> bool {
        !self.rechecks.is_empty()
    }

    /// The next one to look at.
    fn next_recheck(&mut self) -> Option<(usize, u64)> {
        self.rechecks.pop_front()
    }

    /// Whether the handshake of this client began with other certificates.
    pub const fn are_newer_than(&self, caller: &Caller) -> bool {
        caller.terms < self.number
    }

    /// Whether the certificate of the client is revoked by now.
    pub fn are_revoked(&self, link: &Link) -> bool {
        let chain = link.certificates().unwrap_or_default();
        let since = link.caller().since;
        self.terms.certificates.are_revoked(chain, since)
    }
}

impl Relays {
    /// Takes other terms, if there are any.
    pub(super) fn take_terms(&mut self) {
        if let Some(terms) = self.shared.take_terms() {
            self.terms.replace(terms);
            self.adopt();
        }
    }

    /// The certificates, read again if the files have changed.
    pub(super) fn certificates(&mut self) -> Arc<ServerConfig> {
        match self.terms.refresh() {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!("the certificates for TLS have been read again");
                self.adopt();
            }
            Err(error) => {
                let reason =
                    "the certificates for TLS have changed and cannot be used: the old ones hold";
                self.complaints.say(reason, &"the daemon", &error);
            }
        }
        self.terms.current()
    }

    /// Adopts new certificates.
    pub(super) fn adopt(&mut self) {
        let shown = self.links.all_shown();
        self.terms.adopt(shown, &self.counters);
    }

    /// Looks at some of the clients whose certificates may have been revoked.
    pub(super) fn recheck_some(&mut self) {
        for _ in 0..AT_ONCE {
            let Some((key, number)) = self.terms.next_recheck() else {
                return;
            };
            let link = self.links.shown(key, number);
            if link.is_some_and(|link| self.terms.are_revoked(link)) {
                self.note_revoked(key);
                self.out.send(News::Revoked(number));
            }
        }
    }

    /// The certificate of a client is revoked: that is counted and said.
    pub(super) fn note_revoked(&mut self, key: usize) {
        self.counters.revoked.fetch_add(1, Ordering::Relaxed);
        if let Some(link) = self.links.get_mut(key) {
            let reason = "a TLS client is disconnected: its certificate has been revoked";
            self.complaints.say(reason, &link.caller().address, &"");
        }
    }
}
