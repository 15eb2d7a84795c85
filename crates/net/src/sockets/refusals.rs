//! The refusals of this host's kernel to send lately: its own words, and a hint where to look.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use rota_core::contract::Time;
use socket2::SockAddr;

use crate::sys;

/// The time after which a refusal is over.
const LATELY_NANOS: u64 = 10_000_000_000;
/// Addresses that are kept of each kind of refusal: either there are no more nodes than that, or nobody reads all of
/// their names.
const MOST_ADDRESSES: usize = 16;

/// Refusals by their number, with the address and the last time of each.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    by_code: BTreeMap<i32, BTreeMap<IpAddr, Time>>,
}

impl Refusals {
    /// Notes that the kernel has just refused something to this address with this number.
    pub(super) fn note_now(&mut self, code: i32, to: &SockAddr) {
        if let Some(to) = to.as_socket() {
            self.note(sys::monotonic(), code, to.ip());
        }
    }

    /// Notes that the kernel has refused something to this address with this number.
    fn note(&mut self, now: Time, code: i32, to: IpAddr) {
        let addresses = self.by_code.entry(code).or_default();
        if addresses.len() >= MOST_ADDRESSES {
            addresses.retain(|_, at| now.since(*at) < LATELY_NANOS);
        }
        if addresses.len() < MOST_ADDRESSES || addresses.contains_key(&to) {
            addresses.insert(to, now);
        }
    }

    /// A sentence for each kind of refusal of the last seconds.
    pub(super) fn notes(&self, now: Time) -> Vec<String> {
        let sentence = |(code, addresses): (&i32, &BTreeMap<IpAddr, Time>)| {
            let lately = addresses
                .iter()
                .filter(|(_, at)| now.since(**at) < LATELY_NANOS)
                .map(|(to, _)| to.to_string());
            let lately: Vec<String> = lately.collect();
            let error = io::Error::from_raw_os_error(*code);
            (!lately.is_empty()).then(|| {
                format!(
                    "the kernel of its host refuses what it sends to {}: {error}: {}",
                    lately.join(", "),
                    look_at(*code)
                )
            })
        };
        self.by_code.iter().filter_map(sentence).collect()
    }
}

/// The place to look for the cause of a refusal.
fn look_at(code: i32) -> &'static str {
    match code {
        libc::EPERM => {
            "look at the firewall of that host, in its output chain (nft list ruleset, iptables -S OUTPUT)"
        }
        libc::EACCES => {
            "look at the routes of that host for one that prohibits it (ip route get ADDRESS), and at its firewall"
        }
        libc::ENETUNREACH => {
            "that host has no route there: look whether its interface is up and has its address (ip address, ip route)"
        }
        libc::EHOSTUNREACH => {
            "nobody answers at that address, or a route says that nobody is there (ip route get ADDRESS, ip neighbour)"
        }
        libc::ENETDOWN | libc::ENODEV | libc::ENXIO => {
            "the interface of that host is down, or was taken away (ip link): if it was made anew, restart the daemon"
        }
        libc::EADDRNOTAVAIL | libc::EINVAL => {
            "look whether the interface of that host still has its address, and whether `interface` is the one that leads to the \
             others (ip address)"
        }
        libc::EMSGSIZE => {
            "larger than the way there takes: look at the MTU of the interface (ip link), or set a smaller datagram_bytes everywhere"
        }
        _ => {
            "look at the firewall of that host, and whether its interface and its address are still there"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_refusal_is_named_as_the_kernel_does_with_what_to_look_at() {
        for (code, words, look) in [
            (libc::EPERM, "Operation not permitted", "firewall"),
            (libc::ENETUNREACH, "Network is unreachable", "ip route"),
            (libc::EMSGSIZE, "Message too long", "MTU"),
            (libc::ENODEV, "No such device", "ip link"),
            (libc::EIO, "Input/output error", "firewall"),
        ] {
            let mut refusals = Refusals::default();
            refusals.note(Time(SECOND), code, address(2));
            let notes = refusals.notes(Time(SECOND));
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(
                notes[0].contains("10.0.0.2")
                    && notes[0].contains(words)
                    && notes[0].contains(look),
                "{notes:?}"
            );
        }
    }

    #[test]
    fn addresses_that_are_over_make_way() {
        let mut refusals = Refusals::default();
        for last in 1..=MOST_ADDRESSES as u8 {
            refusals.note(Time(SECOND), libc::EPERM, address(last));
        }
        refusals.note(Time(2 * SECOND), libc::EPERM, address(100));
        assert!(!refusals.notes(Time(2 * SECOND))[0].contains("10.0.0.100"));
        refusals.note(Time(12 * SECOND), libc::EPERM, address(100));
        assert!(refusals.notes(Time(12 * SECOND))[0].contains("10.0.0.100"));
    }

    #[test]
    fn refusals_of_one_kind_are_one_sentence_and_end() {
        let mut refusals = Refusals::default();
        refusals.note(Time(SECOND), libc::EPERM, address(2));
        refusals.note(Time(5 * SECOND), libc::EPERM, address(3));
        let notes = refusals.notes(Time(6 * SECOND));
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("10.0.0.2, 10.0.0.3"), "{notes:?}");
        let notes = refusals.notes(Time(12 * SECOND));
        assert!(!notes[0].contains("10.0.0.2"), "{notes:?}");
        assert!(refusals.notes(Time(16 * SECOND)).is_empty());
    }

    #[test]
    fn they_do_not_become_many() {
        let mut refusals = Refusals::default();
        for last in 0..=255 {
            refusals.note(Time(SECOND), libc::EPERM, address(last));
        }
        assert_eq!(refusals.by_code[&libc::EPERM].len(), MOST_ADDRESSES);
    }
}
