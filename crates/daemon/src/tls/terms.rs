//! The terms on which clients are let in, which may change; and clients whose certificates are revoked while they are
//! connected.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustls::ServerConfig;

use super::door::News;
use super::link::Link;
use super::thread::Relays;

/// Clients that are looked at in one turn of the loop.
const AT_ONCE: usize = 16;

impl Relays {
    /// Takes other terms, if there are any.
    pub(super) fn take_terms(&mut self) {
        if let Some(terms) = self.shared.take_terms() {
            self.terms = terms;
            self.adopt();
        }
    }

    /// The certificates, read again if the files have changed.
    pub(super) fn certificates(&mut self) -> Arc<ServerConfig> {
        match self.terms.certificates.refresh(Instant::now()) {
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
        self.terms.certificates.current()
    }

    /// Adopts new certificates: new lists of revoked ones hold for connected clients, too.
    pub(super) fn adopt(&mut self) {
        let lists = self.terms.certificates.lists_end();
        let expires = lists.map_or(0, |until| until.unix_seconds());
        self.counters.lists_end.store(expires, Ordering::Relaxed);
        let end = self.terms.certificates.end();
        self.counters.end.store(end, Ordering::Relaxed);
        self.newest_terms += 1;
        if lists.is_none() {
            return self.rechecks.clear();
        }
        let shown = |(key, link): (usize, &Link)| link.pair.is_some().then_some((key, link.number));
        self.rechecks = self.links.iter().filter_map(shown).collect();
    }

    /// Looks at some of them.
    pub(super) fn recheck_some(&mut self) {
        for _ in 0..AT_ONCE {
            let Some((key, number)) = self.rechecks.pop_front() else {
                return;
            };
            let link = self.links.get(key);
            let here = link.is_some_and(|link| link.number == number && link.pair.is_some());
            if here && self.is_revoked(key) {
                self.out.send(News::Revoked(number));
            }
        }
    }

    /// Whether the client's certificate is revoked by now; then that is counted and said.
    pub(super) fn is_revoked(&mut self, key: usize) -> bool {
        let link = &self.links[key];
        let chain = link.tls.peer_certificates().unwrap_or_default();
        if !self.terms.certificates.are_revoked(chain, link.since) {
            return false;
        }
        self.counters.revoked.fetch_add(1, Ordering::Relaxed);
        let reason = "a TLS client is disconnected: its certificate has been revoked";
        self.complaints.say(reason, &link.address, &"");
        true
    }
}
