//! `ROTA`: administration for which Redis has no command.

use bytes::Bytes;
use rota_front::command::{error, is, number};
use rota_resp::Reply;

use super::connection::Step;
use crate::map::{Map, Partition};
use crate::slots::Slots;

const USAGE: &str = "ERR try ROTA MAP, or ROTA MOVE partition slots";

/// The step for `ROTA`.
pub(super) fn admin(arguments: &[Bytes]) -> Step {
    match arguments {
        [word] if is(word, "MAP") => Step::Map,
        [word, partition, slots] if is(word, "MOVE") => {
            let to = number(partition).ok().and_then(|to| u16::try_from(to).ok());
            let text = std::str::from_utf8(slots).ok();
            match to.zip(text.and_then(Slots::parse)) {
                Some((to, slots)) if !slots.is_empty() => Step::Move(slots, Partition(to)),
                _ => Step::Reply(error(
                    "ERR a partition and slots are needed, as in 2 0-99,105",
                )),
            }
        }
        _ => Step::Reply(error(USAGE)),
    }
}

/// The reply to `ROTA MAP`: the slots of each partition.
pub fn shown(map: &Map) -> Reply {
    let slots = |partition| {
        let Partition(number) = partition;
        let slots = map.slots_of(partition).to_string();
        Reply::Array(vec![Reply::Integer(i64::from(number)), Reply::from(slots)])
    };
    Reply::Array(map.partitions().into_iter().map(slots).collect())
}
