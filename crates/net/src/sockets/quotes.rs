//! The datagrams that left lately, by which a true refusal can be told from a forged one.
//!
//! Any host can send an ICMP message that says that nobody listens at a peer's address; the kernel looks at nothing but
//! addresses and ports. A true one quotes the datagram that was refused. A sealed datagram is known to nobody but this
//! node and the hosts on the path, as only control datagrams count, which never go by multicast.

use std::net::SocketAddr;

/// The bytes of a datagram that are compared: header and some of what is sealed. Hosts quote 500 at least.
pub(crate) const COMPARED: usize = 128;

/// The number of datagrams that are remembered: each of a round of joins in a large cluster, and the tokens of some
/// milliseconds.
const REMEMBERED: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Sent {
    to: SocketAddr,
    len: u8,
    start: [u8; COMPARED],
}

/// The beginnings of the datagrams sent last.
#[derive(Debug)]
pub(super) struct Quotes {
    sent: Vec<Sent>,
    next: usize,
}

impl Quotes {
    pub(super) const fn new() -> Self {
        Self {
            sent: Vec::new(),
            next: 0,
        }
    }

    /// Remembers a datagram that leaves.
    pub(super) fn remember(&mut self, to: SocketAddr, datagram: &[u8]) {
        let len = datagram.len().min(COMPARED);
        let mut start = [0; COMPARED];
        start[..len].copy_from_slice(&datagram[..len]);
        let len = len as u8;
        let sent = Sent { to, len, start };
        match self.sent.get_mut(self.next) {
            Some(oldest) => *oldest = sent,
            None => self.sent.push(sent),
        }
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// Whether a refusal by this address quotes something that was sent to it.
    pub(super) fn is_quoted(&self, to: SocketAddr, quote: &[u8]) -> bool {
        let quotes = |sent: &&Sent| {
            let len = usize::from(sent.len);
            sent.to == to && quote.len() >= len && quote[..len] == sent.start[..len]
        };
        self.sent.iter().any(|sent| quotes(&sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], port))
    }

    #[test]
    fn only_what_was_sent_there_is_a_quote() {
        let mut quotes = Quotes::new();
        assert!(!quotes.is_quoted(at(7002), &[]), "nothing was sent");
        let (long, short): (Vec<u8>, Vec<u8>) = ((0..200).collect(), (100..150).collect());
        quotes.remember(at(7002), &long);
        quotes.remember(at(7002), &short);
        assert!(quotes.is_quoted(at(7002), &long));
        assert!(quotes.is_quoted(at(7002), &long[..COMPARED]));
        assert!(quotes.is_quoted(at(7002), &short));
        assert!(!quotes.is_quoted(at(7001), &long), "another port");
        assert!(!quotes.is_quoted(at(7002), &long[..COMPARED - 1]), "cut");
        assert!(!quotes.is_quoted(at(7002), &short[..49]), "cut");
        let mut other = long.clone();
        other[COMPARED - 1] ^= 1;
        assert!(!quotes.is_quoted(at(7002), &other), "another datagram");
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut quotes = Quotes::new();
        for index in 0..=REMEMBERED {
            quotes.remember(at(7002), &index.to_le_bytes());
        }
        assert!(!quotes.is_quoted(at(7002), &0_usize.to_le_bytes()));
        assert!(quotes.is_quoted(at(7002), &1_usize.to_le_bytes()));
        assert!(quotes.is_quoted(at(7002), &REMEMBERED.to_le_bytes()));
    }
}
