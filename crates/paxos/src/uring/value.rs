//! A value's bytes: the service that its messages asked for, whether the last of them is cut, and a frame with them.

use bytes::{Buf, Bytes};

use super::accounts::Command;
use rota_core::contract::Service;
use rota_core::wire::{Frame, service_code, service_of};

/// In the first byte: the last message goes on in the next value.
const CUT: u8 = 0x80;
/// The first byte of a value that has no messages, but a command on the accounts.
const ACCOUNT: u8 = 0x40;

/// The byte before the frame.
pub fn lead(service: Service, is_cut: bool) -> u8 {
    service_code(service) | if is_cut { CUT } else { 0 }
}

/// A command on the accounts, as a value.
pub fn of_account(command: &Command, time: u64) -> Bytes {
    let mut value = alloc::vec![ACCOUNT];
    value.extend(command.encode(time));
    value.into()
}

/// Such a command with its time; `None` for messages.
pub fn account(value: &Bytes) -> Option<(Command, u64)> {
    is_account(value).then(|| Command::decode(value.slice(1..)))?
}

/// Whether a value has no messages, but such a command.
pub fn is_account(value: &Bytes) -> bool {
    value.first() == Some(&ACCOUNT)
}

/// The service and the frame in a value; `None` if it is no value with messages.
pub fn read(mut value: Bytes) -> Option<(Service, Frame)> {
    let first = value.try_get_u8().ok()?;
    let service = service_of(first & !CUT).ok()?;
    let frame = Frame::parse(value).ok()?;
    let is_cut = frame.end().fragment > 0;
    (is_cut == (first & CUT > 0)).then_some((service, frame))
}

/// If the last message in a value goes on in the next one: whether the whole value is part of a message that began
/// before it.
pub fn cut(value: &Bytes) -> Option<bool> {
    if value.first()? & CUT == 0 {
        return None;
    }
    let (_, frame) = read(value.clone())?;
    let (start, end) = (frame.start(), frame.end());
    Some(start.fragment > 0 && start.counter == end.counter)
}

/// The counter of the last message that ends in it, or before it.
pub fn last_whole(value: &Bytes) -> u64 {
    read(value.clone()).map_or(0, |(_, frame)| frame.end().counter.saturating_sub(1))
}

/// Whether these bytes are a value.
pub fn is_sound(value: &Bytes) -> bool {
    match is_account(value) {
        true => account(value).is_some(),
        false => read(value.clone()).is_some(),
    }
}
