//! UI, uniform integrity: a process broadcasts a message of its own once, as it was accepted; a message that
//! is delivered was broadcast with that payload and service, by its sender before the sender delivers it; and
//! a process delivers a message at most once, over all of its views, also after it was excluded and came back.
//!
//! O1 implies that a broadcast comes before deliveries at others. Not flagged: messages of a process whose trace was
//! not given.

use rota_core::contract::Service;

use crate::report::Findings;
use crate::trace::{Place, Step};
use crate::uniform::Uniform;
use crate::view::End;

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    let messages = uniform.broadcasts.len();
    let mut accepted = vec![None; messages];
    // By message: the last process that was seen to deliver it. Processes come one after the other.
    let mut delivered_by = vec![u32::MAX; messages];
    for (process, at, step) in uniform.base.all_steps() {
        let (message, did, wrong) = match step {
            Step::Send { message, hash } => {
                accepted[*message as usize] = Some(*hash);
                continue;
            }
            Step::Broadcast { message, hash, .. } => {
                let accepted = accepted[*message as usize];
                let wrong = wrong_broadcast(uniform, (process, at), *message);
                let other = accepted.is_some_and(|accepted| accepted != *hash);
                let wrong = wrong.or(other.then_some("not as it was accepted"));
                (*message, "broadcast", wrong.map(String::from))
            }
            Step::Orig(place) => {
                let wrong = "with a place of its own".to_owned();
                (place.message, "broadcast", Some(wrong))
            }
            Step::Deliver(place) => {
                let last = &mut delivered_by[place.message as usize];
                let again = std::mem::replace(last, process) == process;
                let again = again.then(|| "again".into());
                let wrong = again.or_else(|| wrong_delivery(uniform, (process, at), place));
                (place.message, "delivered", wrong)
            }
            _ => continue,
        };
        findings.check(wrong.is_none(), || {
            let (who, what) = (uniform.base.who(process), uniform.base.what(message));
            let (at, wrong) = (uniform.base.at(process, at), wrong.unwrap_or_default());
            format!("{who} {did} {what}{at}, {wrong}")
        });
    }
}

fn wrong_broadcast(
    uniform: &Uniform<'_>,
    event: (u32, usize),
    message: u32,
) -> Option<&'static str> {
    let sender = uniform.base.message(message).process;
    if sender != uniform.base.process(event.0) {
        return Some("which is another's");
    }
    let first = uniform.broadcasts[message as usize];
    let first = first.is_none_or(|first| (first.process, first.at) == event);
    (!first).then_some("which had been broadcast before")
}

fn wrong_delivery(
    uniform: &Uniform<'_>,
    (process, at): (u32, usize),
    place: &Place,
) -> Option<String> {
    let Some(broadcast) = uniform.broadcasts[place.message as usize] else {
        let sender = uniform.base.message(place.message).process;
        let sender = uniform.base.trace.process_number(sender);
        let untraced = sender.is_none_or(|sender| uniform.base.end(sender) == End::Untraced);
        return (!untraced).then(|| "which nobody has broadcast".into());
    };
    if broadcast.process == process && broadcast.at > at {
        return Some("before it broadcast it".into());
    }
    let as_is =
        |hash: u64, service: Service| format!("{} with payload {hash:016x}", service.name());
    let was = as_is(broadcast.hash, broadcast.service);
    let is = as_is(place.hash, place.service);
    (was != is).then(|| format!("as {is}, which was broadcast as {was}"))
}
