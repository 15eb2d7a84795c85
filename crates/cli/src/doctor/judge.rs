//! What is wrong, in words, with what to do about it.

use std::time::Duration;

use rota_core::contract::NodeId;
use rota_net::Transport;
use rota_node::NodeConfig;

use super::host::Host;
use super::talk::{Peer, Seen as Answers};

/// The clocks of two hosts may differ by this much, in milliseconds, before it is said: certificates and logs are compared
/// by them, and the order of messages is not.
const CLOCKS_MS: f64 = 1000.0;

/// The part of a host's time that a hypervisor may give to others, in percent.
const STOLEN_PERCENT: f64 = 2.0;

/// The part of what is sent that may be lost, in percent.
const LOST_PERCENT: f64 = 1.0;

/// A host may stand still for this part of the time after which the others take it for gone.
const PAUSES: u32 = 4;

/// Fewer datagrams say nothing about losses.
const FEW: u32 = 10;

/// Everything that is known at the end.
#[derive(Debug)]
pub struct Seen<'a> {
    pub config: &'a NodeConfig,
    pub me: NodeId,
    pub datagram_bytes: usize,
    pub token_loss: Duration,
    pub host: &'a Host,
    pub peers: &'a [Peer],
}

/// How data goes.
pub fn way(config: &NodeConfig) -> String {
    match config.transport {
        Transport::Unicast => "unicast".to_owned(),
        Transport::Multicast(group) => format!("multicast {group}"),
    }
}

/// The sentences, those about the network first; none if all is well.
pub fn judge(seen: &Seen<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let lost_small = |peer: &&Peer| {
        peer.seen
            .is_some_and(|answers| arrives_nothing(small(&answers)))
    };
    let answering = seen.peers.iter().filter(|peer| peer.seen.is_some());
    let deaf = answering.clone().filter(lost_small).count();
    let is_deaf_to_all = deaf > 0 && deaf == answering.count();
    if is_deaf_to_all {
        found.push(match seen.config.transport {
            Transport::Multicast(group) => format!(
                "multicast does not pass: nothing that this node sends to {group} reaches a node that answers: IGMP in the \
                 switches, `interface`, firewalls; transport = \"unicast\" does without"
            ),
            Transport::Unicast => format!(
                "data does not pass: nothing that node {} sends to the data ports reaches a node that answers: firewalls",
                seen.me
            ),
        });
    }
    for peer in seen.peers {
        match &peer.seen {
            None => found.push(silent(peer)),
            Some(answers) => {
                network(seen, (peer.node, answers), is_deaf_to_all, &mut found);
                pauses(seen, peer.node, answers, &mut found);
            }
        }
    }
    own(seen, &mut found);
    found
}

fn silent(peer: &Peer) -> String {
    let (node, address) = (peer.node, peer.address);
    if peer.heard_data {
        format!(
            "node {node} does not answer at {address}, though its data comes: a firewall does not let its token port through"
        )
    } else {
        format!(
            "node {node} does not answer at {address}: is rota doctor running there at the same time, and does UDP pass in \
             both directions?"
        )
    }
}

const fn small(answers: &Answers) -> (u32, u32) {
    (answers.small_sent, answers.small_arrived)
}

const fn full(answers: &Answers) -> (u32, u32) {
    (answers.full_sent, answers.full_arrived)
}

const fn arrives_nothing((sent, arrived): (u32, u32)) -> bool {
    sent >= FEW && arrived == 0
}

/// The part that was lost, in percent, where enough was sent to say so.
fn lost((sent, arrived): (u32, u32)) -> Option<f64> {
    let lost = sent.saturating_sub(arrived);
    let percent = 100.0 * f64::from(lost) / f64::from(sent.max(1));
    // One of few is no rate.
    (sent >= FEW && lost > 1 && percent > LOST_PERCENT).then_some(percent)
}

fn network(
    seen: &Seen<'_>,
    (node, answers): (u16, &Answers),
    is_deaf_to_all: bool,
    found: &mut Vec<String>,
) {
    let bytes = seen.datagram_bytes;
    if arrives_nothing(small(answers)) {
        if !is_deaf_to_all {
            found.push(format!(
                "what this node sends as data does not reach node {node} ({}), though tokens do: its firewall, its \
                 `interface`, or IGMP in the switches",
                way(seen.config)
            ));
        }
    } else if arrives_nothing(full(answers)) {
        found.push(format!(
            "datagrams of {bytes} bytes do not reach node {node}, and small ones do: the path is narrower; set a smaller \
             `datagram_bytes` everywhere, or raise the MTU on the way"
        ));
    } else if let Some(percent) = lost(full(answers)).or(lost(small(answers))) {
        found.push(format!(
            "{percent:.1} % of the data for node {node} gets lost: a lossy link, a full queue, or a small receive buffer there"
        ));
    } else if let Some(percent) = lost((answers.questions, answers.answers)) {
        found.push(format!(
            "{percent:.1} % of the questions to node {node} are not answered: tokens would get lost"
        ));
    }
    if answers.clock_offset_ms.abs() > CLOCKS_MS {
        let (ahead, seconds) = match answers.clock_offset_ms > 0.0 {
            true => ("ahead of", answers.clock_offset_ms / 1e3),
            false => ("behind", -answers.clock_offset_ms / 1e3),
        };
        found.push(format!(
            "the clock of node {node} is {seconds:.1} s {ahead} this one: set both by NTP; the order does not go by clocks, \
             certificates and logs do"
        ));
    }
    let round_trip = Duration::from_secs_f64(answers.round_trip_ms.max(0.0) / 1e3);
    let nodes = seen.peers.len() as u32 + 1;
    if round_trip * nodes > seen.token_loss / 2 {
        found.push(format!(
            "a token to node {node} and back takes {:.1} ms, and it is lost after {:.0} ms: timing = \"relaxed\"",
            answers.round_trip_ms,
            seen.token_loss.as_secs_f64() * 1e3
        ));
    }
}

/// What a host says of itself.
fn pauses(seen: &Seen<'_>, node: u16, answers: &Answers, found: &mut Vec<String>) {
    stood_still(seen, node, answers.longest_pause_ms, found);
    was_robbed(node, answers.stolen_percent, found);
}

fn stood_still(seen: &Seen<'_>, node: u16, pause_ms: f64, found: &mut Vec<String>) {
    let pause = Duration::from_secs_f64(pause_ms.max(0.0) / 1e3);
    if pause > seen.token_loss / PAUSES {
        found.push(format!(
            "node {node} stood still for {pause_ms:.0} ms, and is taken for gone after {:.0} ms: less beside it, `realtime`, or \
             timing = \"relaxed\"",
            seen.token_loss.as_secs_f64() * 1e3
        ));
    }
}

fn was_robbed(node: u16, percent: f64, found: &mut Vec<String>) {
    if percent > STOLEN_PERCENT {
        found.push(format!(
            "{percent:.1} % of the time of node {node} is stolen: its hypervisor gives it to other machines; tokens will be late"
        ));
    }
}

fn own(seen: &Seen<'_>, found: &mut Vec<String>) {
    let host = seen.host;
    let me = seen.me.get();
    stood_still(seen, me, host.longest_pause_ms, found);
    was_robbed(me, host.stolen_percent, found);
    if host.receive_buffer_bytes < host.receive_buffer_wanted_bytes {
        found.push(format!(
            "the kernel gives a receive buffer of {} bytes instead of {}: raise net.core.rmem_max, or give the daemon \
             CAP_NET_ADMIN",
            host.receive_buffer_bytes, host.receive_buffer_wanted_bytes
        ));
    }
    if host.descriptors < host.descriptors_wanted {
        found.push(format!(
            "a process may have {} descriptors here, and `clients` need {}: raise ulimit -Hn (LimitNOFILE=), or lower `clients`",
            host.descriptors, host.descriptors_wanted
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a node that answers, changed, to a node that sends this way.
    fn said(
        transport: Transport,
        change: impl Fn(&mut Peer, &mut Answers, &mut Host),
    ) -> Vec<String> {
        let mut config = NodeConfig::loopback(3, 7700);
        config.transport = transport;
        let mut host = Host {
            receive_buffer_bytes: 8 << 20,
            receive_buffer_wanted_bytes: 8 << 20,
            descriptors: 16_384,
            descriptors_wanted: 4452,
            longest_pause_ms: 0.3,
            stolen_percent: 0.0,
        };
        let well = Answers {
            questions: 99,
            answers: 98,
            round_trip_ms: 0.1,
            clock_offset_ms: -3.0,
            small_sent: 99,
            small_arrived: 99,
            full_sent: 99,
            full_arrived: 98,
            longest_pause_ms: 2.0,
            stolen_percent: 0.5,
        };
        let peer = |node: u16| Peer {
            node,
            address: config.nodes[usize::from(node) - 1].token(),
            heard_data: true,
            seen: Some(well),
        };
        let mut peers = vec![peer(2), peer(3)];
        let mut answers = well;
        change(&mut peers[0], &mut answers, &mut host);
        if peers[0].seen.is_some() {
            peers[0].seen = Some(answers);
        }
        judge(&Seen {
            config: &config,
            me: NodeId::new(1).expect("not 0"),
            datagram_bytes: 1472,
            token_loss: Duration::from_millis(100),
            host: &host,
            peers: &peers,
        })
    }

    fn one(change: impl Fn(&mut Peer, &mut Answers, &mut Host)) -> String {
        let found = said(Transport::loopback(7700), change);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap_or_default()
    }

    #[test]
    fn nothing_is_said_where_all_is_well() {
        assert_eq!(said(Transport::Unicast, |_, _, _| ()), [""; 0]);
    }

    #[test]
    fn what_does_not_arrive_is_told_apart() {
        let silent = one(|peer, _, _| {
            peer.seen = None;
            peer.heard_data = false;
        });
        assert!(
            silent.starts_with("node 2 does not answer at 127.0.0.1:7704: is rota doctor"),
            "{silent}"
        );
        let token = one(|peer, _, _| peer.seen = None);
        assert!(
            token.contains("does not let its token port through"),
            "{token}"
        );
        let data = one(|_, answers, _| {
            answers.small_arrived = 0;
            answers.full_arrived = 0;
        });
        assert!(
            data.contains("does not reach node 2 (multicast 239.192.30.20:7700)"),
            "{data}"
        );
        let narrow = one(|_, answers, _| answers.full_arrived = 0);
        assert!(
            narrow.starts_with("datagrams of 1472 bytes do not reach node 2"),
            "{narrow}"
        );
        let lossy = one(|_, answers, _| answers.full_arrived = 90);
        assert!(lossy.starts_with("9.1 % of the data for node 2"), "{lossy}");
        let tokens = one(|_, answers, _| answers.answers = 80);
        assert!(
            tokens.starts_with("19.2 % of the questions to node 2"),
            "{tokens}"
        );
    }

    #[test]
    fn what_reaches_nobody_is_said_once_and_of_all() {
        let found = said(Transport::loopback(7700), |peer, answers, _| {
            peer.seen = None;
            answers.small_arrived = 0;
        });
        // Node 3 gets everything.
        assert_eq!(found.len(), 1, "{found:?}");
        let mut config = NodeConfig::loopback(2, 7700);
        let answers = Answers {
            small_sent: 50,
            full_sent: 50,
            questions: 50,
            answers: 50,
            ..Answers::default()
        };
        let peer = Peer {
            node: 2,
            address: config.nodes[1].token(),
            heard_data: false,
            seen: Some(answers),
        };
        let host = Host {
            receive_buffer_bytes: 1,
            receive_buffer_wanted_bytes: 1,
            descriptors: 1,
            descriptors_wanted: 1,
            longest_pause_ms: 0.0,
            stolen_percent: 0.0,
        };
        for (transport, word) in [
            (Transport::loopback(7700), "multicast does not pass"),
            (Transport::Unicast, "data does not pass"),
        ] {
            config.transport = transport;
            let found = judge(&Seen {
                config: &config,
                me: NodeId::new(1).expect("not 0"),
                datagram_bytes: 1472,
                token_loss: Duration::from_millis(100),
                host: &host,
                peers: std::slice::from_ref(&peer),
            });
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(word), "{found:?}");
        }
    }

    #[test]
    fn hosts_that_are_late_poor_or_in_another_time_are_named() {
        for (change, words) in [
            (
                (|_, answers, _| answers.clock_offset_ms = -2500.0)
                    as fn(&mut Peer, &mut Answers, &mut Host),
                "the clock of node 2 is 2.5 s behind this one",
            ),
            (
                |_, answers, _| answers.longest_pause_ms = 26.0,
                "node 2 stood still for 26 ms",
            ),
            (
                |_, answers, _| answers.stolen_percent = 2.1,
                "2.1 % of the time of node 2 is stolen",
            ),
            (
                |_, answers, _| answers.round_trip_ms = 20.0,
                "a token to node 2 and back takes 20.0 ms",
            ),
            (
                |_, _, host| host.longest_pause_ms = 30.0,
                "node 1 stood still for 30 ms",
            ),
            (
                |_, _, host| host.receive_buffer_bytes = 212_992,
                "the kernel gives a receive buffer of 212992 bytes",
            ),
            (
                |_, _, host| host.descriptors = 1024,
                "a process may have 1024 descriptors here",
            ),
        ] {
            let sentence = one(change);
            assert!(sentence.starts_with(words), "{sentence}");
        }
    }
}
