//! What commands, answers and states are made of.

use rota_core::bytes::Reader;
use rota_multiring::{Place, Rank};

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn take_bytes<'a>(bytes: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = bytes.u32()? as usize;
    let (taken, rest) = bytes.0.split_at_checked(length)?;
    bytes.0 = rest;
    Some(taken)
}

pub(super) fn put_some(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.push(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

pub(super) fn take_some<'a>(bytes: &mut Reader<'a>) -> Option<Option<&'a [u8]>> {
    Some(match bytes.flag()? {
        true => Some(take_bytes(bytes)?),
        false => None,
    })
}

/// Room for a list is made as it comes.
pub(super) fn take_list<'a, T>(
    bytes: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = bytes.u32()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(item(bytes)?);
    }
    Some(list)
}

/// A place, 22 bytes.
pub(super) fn put_place(out: &mut Vec<u8>, place: Place) {
    out.extend(place.round.to_le_bytes());
    out.extend(place.rank.0.to_le_bytes());
    out.extend(place.instance.to_le_bytes());
    out.extend(place.index.to_le_bytes());
}

pub(super) fn take_place(bytes: &mut Reader<'_>) -> Option<Place> {
    Some(Place {
        round: bytes.u64()?,
        rank: Rank(bytes.u16()?),
        instance: bytes.u64()?,
        index: bytes.u32()?,
    })
}
