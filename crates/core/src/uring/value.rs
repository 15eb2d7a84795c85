//! A value's bytes: the service that its messages asked for, whether the last of them is cut, and a frame with them.

use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use crate::contract::Service;
use crate::pack::OutFrame;
use crate::wire::{Frame, service_code, service_of};

/// In the first byte: the last message goes on in the next value.
const CUT: u8 = 0x80;

/// Of what leaves the outbox.
pub fn of(out: OutFrame) -> Bytes {
    let mut bytes = Vec::with_capacity(1 + out.frame.bytes().len());
    let is_cut = out.frame.end().fragment > 0;
    bytes.push(service_code(out.service) | if is_cut { CUT } else { 0 });
    bytes.extend_from_slice(out.frame.bytes());
    bytes.into()
}

/// What is in it; `None` if it is none.
pub fn read(mut value: Bytes) -> Option<(Service, Frame)> {
    let first = value.try_get_u8().ok()?;
    let service = service_of(first & !CUT).ok()?;
    let frame = Frame::parse(value).ok()?;
    let is_cut = frame.end().fragment > 0;
    (is_cut == (first & CUT > 0)).then_some((service, frame))
}

/// If the last message in a value goes on in the next one: whether the value is all part of one that began before it.
pub fn cut(value: &Bytes) -> Option<bool> {
    if value.first()? & CUT == 0 {
        return None;
    }
    let (_, frame) = read(value.clone())?;
    let (start, end) = (frame.start(), frame.end());
    Some(start.fragment > 0 && start.counter == end.counter)
}

/// Whether it is one.
pub fn is_sound(value: &Bytes) -> bool {
    read(value.clone()).is_some()
}
