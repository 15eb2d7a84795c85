//! Any bytes at all come back from FastCast's decoder as a packet or as an error value, and a member that
//! is given them, as whatever member of its view, keeps no more than its windows and never panics.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rota_core::contract::{Class, Incarnation, NodeId, Process, RingId, Service, Time};
use rota_views::fastcast::{FastCast, FastConfig};
use rota_views::{Backlog, DataPath, View};
use rota_views::fastcast::FastPacket;
use rota_core::wire::{HEADER_BYTES, SEAL_BYTES, VERSION};

const CLUSTER: u32 = 7;
const WINDOW: u32 = 16;

fn process(index: u16) -> Process {
    Process {
        node: NodeId::new(index + 1).expect("not 0"),
        incarnation: Incarnation(1),
    }
}

/// A header of this view before bytes that are anything: kind and service, sender, number, the rest.
fn datagram(bytes: &[u8]) -> Option<Vec<u8>> {
    let (&[kind, sender, number], body) = bytes.split_first_chunk()?;
    let mut datagram = vec![0; HEADER_BYTES];
    datagram[0] = VERSION;
    datagram[1] = kind;
    datagram[4..8].copy_from_slice(&CLUSTER.to_le_bytes());
    datagram[8] = 5;
    datagram[16] = 1;
    datagram[24] = number;
    datagram[32] = sender % 3 + 1;
    datagram[34] = 1;
    datagram.extend_from_slice(body);
    datagram.extend_from_slice(&[0; SEAL_BYTES]);
    Some(datagram)
}

fuzz_target!(|data: &[u8]| {
    let Some((&me, rest)) = data.split_first() else {
        return;
    };
    let _ = FastPacket::decode(Bytes::copy_from_slice(rest), SEAL_BYTES);
    let config = FastConfig {
        cluster: CLUSTER,
        datagram_bytes: 512,
        seal_bytes: SEAL_BYTES,
        window: WINDOW,
        control: Class::Token,
        capacity: None,
        yields: false,
    };
    let mut backlog = Backlog::new(config.frame_bytes(), 1 << 16, 1 << 16);
    let mut path = FastCast::new(config);
    let view = View {
        ring: RingId {
            ring_seq: 5,
            rep: process(0).node,
            incarnation: Incarnation(1),
        },
        members: (0..3).map(process).collect(),
        me: usize::from(me % 3),
    };
    path.start(view.members[view.me], 1);
    path.install(Time(0), &view, &vec![Bytes::new(); 3]);
    let _ = backlog.push(Service::Safe, &[7; 2_000]);
    let mut now = Time(0);
    // Datagrams end at this byte: short inputs make many of them.
    for piece in rest.split(|byte| *byte == 0xff) {
        if let Some(datagram) = datagram(piece) {
            path.on_datagram(now, Class::Data, Bytes::from(datagram));
        }
        while path.poll_output(now, &mut backlog).is_some() {}
        while path.poll_packet().is_some() {}
        if let Some((due, _)) = path.next_timer() {
            now = due.max(now);
            path.on_timer(now);
        }
    }
    let held = path.freeze(now).held.len();
    assert!(held <= 3 * WINDOW as usize, "{held} packets are kept");
});
