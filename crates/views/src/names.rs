//! The bytes of packets' names and places. A process may hold thousands of packets that are smaller than their vector
//! clocks would be if those were written out: so each name is told by its differences from the one before. Decoding is
//! total, and each list has one form.

use alloc::vec::Vec;

use super::message::{Name, load_byte, load_of};
use super::path::{Load, PacketId};
use rota_core::bytes::Reader;
use rota_core::wire::{put_varint, read_varint};

/// The name from which the first one of a list differs.
const NOTHING: Name = Name {
    id: PacketId {
        sender: 0,
        number: 0,
    },
    load: Load::Own,
    last: 0,
    place: Vec::new(),
};

/// Appends a list, which is short if names of one sender follow each other in the order of their numbers.
pub(super) fn put_names(bytes: &mut Vec<u8>, names: &[Name]) {
    put_varint(bytes, names.len() as u64);
    let mut before = &NOTHING;
    for name in names {
        put_varint(bytes, u64::from(name.id.sender));
        put_step(bytes, before.id.number, name.id.number);
        bytes.push(load_byte(name.load));
        put_step(bytes, before.last, name.last);
        put_varint(bytes, name.place.len() as u64);
        let known = before.place.iter().copied().chain(core::iter::repeat(0));
        for (number, known) in name.place.iter().zip(known) {
            put_step(bytes, known, *number);
        }
        before = name;
    }
}

/// Reads a list. Memory is taken as the names come in.
pub(super) fn names(reader: &mut Reader<'_>) -> Option<Vec<Name>> {
    let count = varint(reader)?;
    let mut names: Vec<Name> = Vec::new();
    for _ in 0..count {
        let name = name(reader, names.last().unwrap_or(&NOTHING))?;
        names.push(name);
    }
    Some(names)
}

fn name(reader: &mut Reader<'_>, before: &Name) -> Option<Name> {
    let sender = u16::try_from(varint(reader)?).ok()?;
    let number = step(reader, before.id.number)?;
    let load = load_of(reader.byte()?)?;
    let last = step(reader, before.last)?;
    let mut place = Vec::new();
    for index in 0..usize::try_from(varint(reader)?).ok()? {
        let known = before.place.get(index).copied().unwrap_or(0);
        place.push(step(reader, known)?);
    }
    (number > 0).then_some(Name {
        id: PacketId { sender, number },
        load,
        last,
        place,
    })
}

/// Appends the distance of a number from a known one, around the end of all numbers if that is nearer: small steps
/// forward and back are small numbers.
fn put_step(bytes: &mut Vec<u8>, from: u64, to: u64) {
    let step = to.wrapping_sub(from).cast_signed();
    put_varint(bytes, ((step << 1) ^ (step >> 63)).cast_unsigned());
}

fn step(reader: &mut Reader<'_>, from: u64) -> Option<u64> {
    let folded = varint(reader)?;
    let step = (folded >> 1) ^ (folded & 1).wrapping_neg();
    Some(from.wrapping_add(step))
}

/// A number in its shortest form; others are refused.
fn varint(reader: &mut Reader<'_>) -> Option<u64> {
    let (number, size) = read_varint(reader.0).ok()?;
    let (bytes, rest) = reader.0.split_at(size);
    reader.0 = rest;
    (size == 1 || bytes.last() != Some(&0)).then_some(number)
}
