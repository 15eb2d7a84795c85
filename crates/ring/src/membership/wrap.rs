//! Packets of an old ring inside packets of a new one (A8).
//!
//! The packet around is a data packet of the new ring with one message: service, `seq` and sender of the packet inside,
//! and its frame. The old ring of the packet inside follows from the member that wraps it: all members know from the
//! commit token which ring each of them comes from.

use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use crate::OldPacket;
use rota_core::contract::{NodeId, Seq};
use rota_core::wire::{Frame, push_whole, service_code, service_of, start_frame};

pub(super) fn wrap(packet: &OldPacket) -> (Seq, Frame) {
    let mut inner = Vec::with_capacity(packet.frame.bytes().len() + 11);
    inner.push(service_code(packet.service));
    inner.extend_from_slice(&packet.seq.to_le_bytes());
    inner.extend_from_slice(&packet.sender.get().to_le_bytes());
    inner.extend_from_slice(packet.frame.bytes());
    let mut outer = Vec::with_capacity(inner.len() + 4);
    start_frame(&mut outer, 1);
    push_whole(&mut outer, &inner);
    let frame = Frame::parse(Bytes::from(outer)).expect("a frame of one message");
    (packet.seq, frame)
}

/// The packet inside; `None` if its sender breaks the rules.
pub(super) fn unwrap(frame: Frame) -> Option<OldPacket> {
    let (_, mut inner) = frame.into_single_message().ok()?;
    let service = service_of(inner.try_get_u8().ok()?).ok()?;
    let seq = inner.try_get_u64_le().ok().filter(|seq| *seq > 0)?;
    let sender = NodeId::new(inner.try_get_u16_le().ok()?)?;
    let frame = Frame::parse(inner).ok()?;
    Some(OldPacket {
        seq,
        sender,
        service,
        frame,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::Service;

    /// `testdata/golden/ring.txt` has these bytes, field by field.
    #[test]
    fn a_packet_is_wrapped_as_one_message_and_comes_out_as_it_was() {
        let mut bytes = Vec::new();
        start_frame(&mut bytes, 9);
        push_whole(&mut bytes, b"older");
        let packet = OldPacket {
            seq: 0x0102_0304_0506_0708,
            sender: NodeId::new(0x0304).expect("not 0"),
            service: Service::Agreed,
            frame: Frame::parse(Bytes::from(bytes)).expect("a frame of one message"),
        };
        let (seq, frame) = wrap(&packet);
        assert_eq!(seq, packet.seq);
        let inside = b"\x03\x08\x07\x06\x05\x04\x03\x02\x01\x04\x03\x09\x00\x05\x00older";
        assert_eq!(frame.bytes()[..4], [1, 0, inside.len() as u8, 0]);
        assert_eq!(&frame.bytes()[4..], inside);
        let out = unwrap(frame).expect("a wrapped packet");
        assert_eq!(
            (out.seq, out.sender, out.service),
            (packet.seq, packet.sender, packet.service)
        );
        assert_eq!(out.frame, packet.frame);
    }
}
