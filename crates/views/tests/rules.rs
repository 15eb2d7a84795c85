//! Rules of the data paths that their pages list and no run shows by itself: one member, whose neighbours are the test.

use bytes::Bytes;
use rota_core::contract::{Class, Incarnation, NodeId, Process, RingId, Service, Time};
use rota_core::wire::{SEAL_BYTES, push_whole, start_frame};
use rota_ring::RingConfig;
use rota_views::fastcast::{
    FastCast, FastConfig, FastControl, FastHead, FastPacket, FastRequest, FastRun,
};
use rota_views::lcr::{self, Lcr};
use rota_views::{Backlog, DataPath, Load, View};

fn process(index: u16) -> Process {
    Process {
        node: NodeId::new(index + 1).expect("not 0"),
        incarnation: Incarnation(7),
    }
}

fn ring() -> RingId {
    RingId {
        ring_seq: 5,
        rep: process(0).node,
        incarnation: Incarnation(7),
    }
}

fn view(count: u16, me: usize) -> View {
    View {
        ring: ring(),
        members: (0..count).map(process).collect(),
        me,
    }
}

/// FastCast at member 1 of three, in no view yet; member 0 leads.
fn fastcast() -> FastCast {
    let nodes = (0..3).map(|index| process(index).node).collect();
    let mut path = FastCast::new(FastConfig::beside(&RingConfig::new(1, nodes)));
    path.start(process(1), 1);
    path
}

fn install(path: &mut FastCast, now: Time) {
    let notes = vec![Bytes::from(path.note()); 3];
    path.install(now, &view(3, 1), &notes);
}

/// What the member sends now.
fn sends(path: &mut FastCast, now: Time, backlog: &mut Backlog) -> Vec<FastPacket> {
    let outputs = std::iter::from_fn(|| path.poll_output(now, backlog));
    let bursts = outputs.filter_map(|output| match output {
        rota_core::contract::Output::Send { burst, .. } => Some(burst),
        _ => None,
    });
    let mut packets = Vec::new();
    for burst in bursts {
        packets.extend(burst.datagrams().map(|datagram| {
            let packet = FastPacket::decode(Bytes::copy_from_slice(datagram), SEAL_BYTES);
            packet.expect("it sends valid packets")
        }));
    }
    packets
}

fn data(sender: u16, number: u64) -> Bytes {
    let head = FastHead {
        cluster: 1,
        ring: ring(),
        sender: process(sender).node,
        number,
        following: 0,
        load: Load::Messages(Service::Safe),
        places: None,
    };
    let mut frame = Vec::new();
    start_frame(&mut frame, number);
    push_whole(&mut frame, b"message");
    let mut datagram = Vec::new();
    head.encode_into(&frame, &mut datagram, SEAL_BYTES);
    datagram.into()
}

fn control(sender: u16, runs: Vec<FastRun>, requests: Vec<FastRequest>) -> Bytes {
    let control = FastControl {
        cluster: 1,
        ring: ring(),
        sender: process(sender).node,
        acked: 0,
        delivered: 0,
        ask: 0,
        have: vec![0; 3],
        first: 1,
        runs,
        requests,
        applied: Vec::new(),
    };
    let mut datagram = Vec::new();
    control.encode_into(&mut datagram, SEAL_BYTES);
    datagram.into()
}

fn backlog(path: &lcr::Config, frames: usize) -> Backlog {
    let mut backlog = Backlog::new(path.frame_bytes, 1000, 1 << 20);
    for _ in 0..frames {
        let pushed = backlog.push(Service::Safe, &[7; 30]);
        pushed.expect("there is room");
    }
    backlog
}

#[test]
fn a_packet_is_not_sent_twice_within_half_a_round_trip() {
    let (mut path, now) = (fastcast(), Time(1_000_000));
    install(&mut path, now);
    let mut backlog = Backlog::new(1000, 1000, 10_000);
    backlog.push(Service::Safe, b"own").expect("there is room");
    let first = sends(&mut path, now, &mut backlog);
    assert!(matches!(first[..], [FastPacket::Data(_)]), "{first:?}");
    let request = |path: &mut FastCast, from: u16, at: Time| {
        let request = FastRequest {
            to: 1,
            of: Some(1),
            first: 1,
            count: 1,
        };
        path.on_datagram(at, Class::Token, control(from, vec![], vec![request]));
        sends(path, at, &mut Backlog::new(1000, 1000, 10_000));
        path.counters().fast_packets_resent
    };
    assert_eq!(request(&mut path, 2, now.after(1000)), 1);
    assert_eq!(
        request(&mut path, 2, now.after(2000)),
        1,
        "it is on its way"
    );
    assert_eq!(request(&mut path, 0, now.after(3000)), 2, "not to this one");
    assert_eq!(request(&mut path, 2, now.after(3_000_000_000)), 3);
}

#[test]
fn datagrams_of_a_view_to_come_are_kept_up_to_64() {
    let (mut path, now) = (fastcast(), Time(1_000_000));
    for number in 1..=70 {
        path.on_datagram(now, Class::Data, data(0, number));
    }
    assert_eq!(path.counters().fast_datagrams_foreign_view, 6);
    install(&mut path, now);
    // The second time it asks for the places of what it has.
    let mut backlog = Backlog::new(1000, 1000, 10_000);
    let mut sent = sends(&mut path, now.after(1_000_000), &mut backlog);
    sent.extend(sends(&mut path, now.after(1_000_000_000), &mut backlog));
    let have = sent.iter().find_map(|packet| match packet {
        FastPacket::Control(control) => Some(control.have[0]),
        FastPacket::Data(_) => None,
    });
    assert_eq!(have, Some(64));
}

#[test]
fn data_is_read_first_while_a_place_has_no_packet() {
    let (mut path, now) = (fastcast(), Time(1_000_000));
    install(&mut path, now);
    assert_eq!(path.reading(), Class::Token);
    let run = FastRun {
        sender: 2,
        count: 1,
    };
    path.on_datagram(now, Class::Token, control(0, vec![run], vec![]));
    assert_eq!(path.reading(), Class::Data);
    path.on_datagram(now, Class::Data, data(2, 1));
    sends(&mut path, now, &mut Backlog::new(1000, 1000, 10_000));
    assert_eq!(path.reading(), Class::Token);
}

/// The number of packets that a member alone in its view has under way at once, if these are the windows: its own, and
/// that of a note.
fn under_way(own: usize, other: usize) -> usize {
    let config = |window_bytes| lcr::Config {
        frame_bytes: 40,
        window_bytes,
        ..lcr::Config::default()
    };
    let notes: Vec<Bytes> = [own, other]
        .map(|window| Lcr::new(config(window)).note().into())
        .to_vec();
    let mut path = Lcr::new(config(own));
    path.start(process(0), 1);
    path.install(Time(1), &view(1, 0), &notes);
    let mut backlog = backlog(&config(own), 200);
    assert!(path.poll_output(Time(1), &mut backlog).is_none());
    std::iter::from_fn(|| path.poll_packet()).count()
}

#[test]
fn the_smallest_window_of_the_members_counts() {
    let (small, large) = (600, 6000);
    let least = under_way(small, small);
    assert_eq!(under_way(large, small), least, "that of another member");
    assert_eq!(under_way(small, large), least, "the own");
    assert!(under_way(large, large) > 5 * least, "{least}");
}
