//! The knowledge of a set of daemons of its groups, as bytes for the others.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::bytes::{put_client, put_name};
use super::event::Member;
use super::name::GroupName;
use super::part::{Group, Origin, Part};
use crate::bytes::{Reader, put_process, put_ring};
use crate::contract::Process;

pub(super) fn encode(parts: &[Part]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((parts.len() as u16).to_le_bytes());
    for part in parts {
        put_part(&mut bytes, part);
    }
    bytes
}

fn put_part(bytes: &mut Vec<u8>, part: &Part) {
    put_ring(bytes, part.origin.old);
    put_ring(bytes, part.origin.new);
    put_process(bytes, part.origin.first);
    bytes.extend((part.daemons.len() as u16).to_le_bytes());
    for daemon in &part.daemons {
        put_process(bytes, *daemon);
    }
    let daemons: Vec<Process> = part.daemons.iter().copied().collect();
    bytes.extend((part.groups.len() as u32).to_le_bytes());
    for (name, group) in &part.groups {
        put_name(bytes, name);
        bytes.push(u8::from(group.changed));
        bytes.extend((group.members.len() as u32).to_le_bytes());
        for member in &group.members {
            // All members are clients of these daemons.
            let place = daemons.binary_search(&member.daemon).unwrap_or_default();
            bytes.extend((place as u16).to_le_bytes());
            put_client(bytes, member);
        }
    }
}

pub(super) fn decode(bytes: &[u8]) -> Option<Vec<Part>> {
    let mut reader = Reader(bytes);
    let count = reader.u16()?;
    let parts: Option<Vec<Part>> = (0..count).map(|_| part(&mut reader)).collect();
    reader.0.is_empty().then_some(parts?)
}

fn part(reader: &mut Reader<'_>) -> Option<Part> {
    let origin = Origin {
        old: reader.ring()?,
        new: reader.ring()?,
        first: reader.process()?,
    };
    let mut daemons: Vec<Process> = Vec::new();
    for _ in 0..reader.u16()? {
        daemons.push(after(daemons.last(), reader.process()?)?);
    }
    (!daemons.is_empty()).then_some(())?;
    let mut groups: Vec<(GroupName, Group)> = Vec::new();
    for _ in 0..reader.u32()? {
        let name = after(groups.last().map(|(name, _)| name), reader.name()?)?;
        groups.push((name, group(reader, &daemons)?));
    }
    Some(Part {
        origin,
        daemons: BTreeSet::from_iter(daemons),
        groups: BTreeMap::from_iter(groups),
    })
}

fn group(reader: &mut Reader<'_>, daemons: &[Process]) -> Option<Group> {
    let changed = reader.flag()?;
    let mut members: Vec<Member> = Vec::new();
    for _ in 0..reader.u32()? {
        let daemon = *daemons.get(usize::from(reader.u16()?))?;
        members.push(after(members.last(), reader.client(daemon)?)?);
    }
    (!members.is_empty()).then_some(Group {
        changed,
        shared: false,
        members: BTreeSet::from_iter(members),
    })
}

/// The next of an ascending list.
fn after<T: Ord>(last: Option<&T>, next: T) -> Option<T> {
    last.is_none_or(|last| *last < next).then_some(next)
}
