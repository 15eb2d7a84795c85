//! Sending messages, and joining and leaving groups.

use std::ffi::{c_char, c_void};

use rota_client::protocol::MAX_DESTINATIONS;
use rota_client::{Envelope as Letter, RequestError, SendError};

use crate::arguments::{name, payload, service};
use crate::handle::{Client, Half, Inside, inside};
use crate::status::{Failure, Status};

/// Most destinations of one message.
pub const ROTA_MAX_DESTINATIONS: usize = 100;

const _: () = assert!(ROTA_MAX_DESTINATIONS == MAX_DESTINATIONS);

/// A flag of rota_send_envelope: leave it to a later call to write the message, together with others. It is
/// written when there are 32 KiB of them, at the next message without this flag, rota_flush, join, leave or
/// list, and before rota_receive waits.
pub const ROTA_GATHER: u32 = 1;

/// A flag of rota_send_envelope: do not wait for credit, say ROTA_STATUS_WOULD_BLOCK. Credit comes with the
/// events, so receive some in between.
pub const ROTA_NO_WAIT: u32 = 2;

/// Which guarantee a message asks for.
#[repr(C)]
pub enum Service {
    /// Delivered once, on receipt, in no particular order.
    Reliable = 1,
    /// In the order of its sender.
    Fifo = 2,
    /// Served as agreed.
    Causal = 3,
    /// In the one order.
    Agreed = 4,
    /// In the one order, once every daemon is known to have it.
    Safe = 5,
}

/// Where a message goes, and how.
#[repr(C)]
pub struct Envelope {
    /// Groups, and clients by their private names #client#daemon. A receiver that is in several gets the
    /// message once.
    pub to: *const *const c_char,
    /// How many, from 1 to ROTA_MAX_DESTINATIONS.
    pub to_count: usize,
    /// One of rota_service; 0 is the client's.
    pub service: u32,
    /// The application's number for this kind of message.
    pub kind: u16,
    /// This client does not want the message back.
    pub self_discard: bool,
}

impl Envelope {
    /// # Safety
    ///
    /// It names so many texts as it says.
    unsafe fn letter(&self) -> Result<Letter, Failure> {
        if self.to_count == 0 || self.to_count > ROTA_MAX_DESTINATIONS {
            return Err(SendError::Destinations.into());
        }
        if self.to.is_null() {
            return Err(Failure::argument(c"the destinations are NULL"));
        }
        // SAFETY: it is not NULL, and has as many as it says, which are few.
        let texts = unsafe { std::slice::from_raw_parts(self.to, self.to_count) };
        let mut names = Vec::with_capacity(texts.len());
        for text in texts {
            // SAFETY: each is NULL or a text, which the caller keeps for the call.
            names.push(unsafe { name(*text) }?);
        }
        let letter = match &names[..] {
            [one] => Letter::to(one),
            many => Letter::to_all(many),
        };
        let mut letter = letter.map_err(SendError::from)?.kind(self.kind);
        if self.self_discard {
            letter = letter.self_discard();
        }
        Ok(match service(self.service)? {
            Some(service) => letter.service(service),
            None => letter,
        })
    }
}

/// Sends a message to a group, or to one client by its private name. Waits while there is no credit: until
/// the daemon has taken enough of what this client sent before. That a message has its place in the order,
/// only its own copy shows. The client does not have to be in the group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_send(
    client: *mut Client,
    to: *const c_char,
    payload: *const c_void,
    bytes: usize,
) -> Status {
    let envelope = Envelope {
        to: &raw const to,
        to_count: 1,
        service: 0,
        kind: 0,
        self_discard: false,
    };
    // SAFETY: the envelope names one text, and the rest is as the header asks for.
    unsafe { rota_send_envelope(client, &raw const envelope, payload, bytes, 0) }
}

/// As rota_send, for all that an envelope can say. Flags are ROTA_GATHER, ROTA_NO_WAIT, both or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_send_envelope(
    client: *mut Client,
    envelope: *const Envelope,
    payload: *const c_void,
    bytes: usize,
    flags: u32,
) -> Status {
    let send = |client: &Client, inside: &mut Inside| {
        // SAFETY: NULL, or an envelope that the caller keeps for the call.
        let envelope = unsafe { envelope.as_ref() };
        let envelope = envelope.ok_or(Failure::argument(c"the envelope is NULL"))?;
        // SAFETY: an envelope has so many texts as it says.
        let letter = unsafe { envelope.letter() }?;
        // SAFETY: the payload has so many bytes, and the caller keeps them for the call.
        let payload = unsafe { self::payload(payload, bytes, client.largest_payload) }?;
        put(&mut inside.half, &letter, payload, flags)
    };
    // SAFETY: as the header asks for.
    unsafe { inside(client, send) }
}

fn put(half: &mut Half, letter: &Letter, payload: &[u8], flags: u32) -> Result<(), Failure> {
    const BOTH_FLAGS: u32 = ROTA_GATHER | ROTA_NO_WAIT;
    let sent = match (half, flags) {
        (Half::Both(both), 0) => both.send(letter, payload),
        (Half::Both(both), ROTA_GATHER) => both.feed(letter, payload),
        (Half::Both(both), ROTA_NO_WAIT) => both.try_send(letter, payload),
        (Half::Both(both), BOTH_FLAGS) => both.try_feed(letter, payload),
        (Half::Sender(sender), 0) => sender.send(letter, payload),
        (Half::Sender(sender), ROTA_GATHER) => sender.feed(letter, payload),
        (Half::Sender(sender), ROTA_NO_WAIT) => sender.try_send(letter, payload),
        (Half::Sender(sender), BOTH_FLAGS) => sender.try_feed(letter, payload),
        (Half::Lasting(lasting), 0) => lasting.send(letter, payload),
        (Half::Lasting(lasting), ROTA_GATHER) => lasting.feed(letter, payload),
        (Half::Lasting(lasting), ROTA_NO_WAIT) => lasting.try_send(letter, payload),
        (Half::Lasting(lasting), BOTH_FLAGS) => lasting.try_feed(letter, payload),
        (Half::Both(_) | Half::Sender(_) | Half::Lasting(_), _) => {
            return Err(Failure::argument(c"there is no such flag"));
        }
        (Half::Receiver(_) | Half::Neither, _) => return Err(cannot_send()),
    };
    Ok(sent?)
}

pub(crate) fn cannot_send() -> Failure {
    Failure::new(Status::WrongHalf, c"the receiving half cannot send")
}

/// Writes all that was gathered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_flush(client: *mut Client) -> Status {
    let flush = |_: &Client, inside: &mut Inside| match &mut inside.half {
        Half::Both(both) => Ok(both.flush()?),
        Half::Sender(sender) => Ok(sender.flush()?),
        Half::Lasting(lasting) => Ok(lasting.flush()?),
        Half::Receiver(_) | Half::Neither => Err(cannot_send()),
    };
    // SAFETY: as the header asks for.
    unsafe { inside(client, flush) }
}

/// Joins a group, and waits until that has taken effect in the order. With membership, the view is among the
/// events. A group that the client is in already is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_join(client: *mut Client, group: *const c_char) -> Status {
    // SAFETY: as the header asks for.
    unsafe {
        ask(client, group, |half, group| match half {
            Half::Both(both) => Some(both.join(group)),
            Half::Sender(sender) => Some(sender.join(group)),
            Half::Lasting(lasting) => Some(lasting.join(group)),
            Half::Receiver(_) | Half::Neither => None,
        })
    }
}

/// Leaves a group, and waits until that has taken effect in the order: messages of the group that were
/// ordered before are still among the events. A group that the client is not in is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_leave(client: *mut Client, group: *const c_char) -> Status {
    // SAFETY: as the header asks for.
    unsafe {
        ask(client, group, |half, group| match half {
            Half::Both(both) => Some(both.leave(group)),
            Half::Sender(sender) => Some(sender.leave(group)),
            Half::Lasting(lasting) => Some(lasting.leave(group)),
            Half::Receiver(_) | Half::Neither => None,
        })
    }
}

/// # Safety
///
/// As [`inside`], and the group is NULL or a text.
unsafe fn ask(
    client: *mut Client,
    group: *const c_char,
    call: impl FnOnce(&mut Half, &str) -> Option<Result<(), RequestError>>,
) -> Status {
    let ask = |_: &Client, inside: &mut Inside| {
        // SAFETY: as this function asks for.
        let group = unsafe { name(group) }?;
        let asked = call(&mut inside.half, group).ok_or_else(cannot_send)?;
        Ok(asked?)
    };
    // SAFETY: as this function asks for.
    unsafe { inside(client, ask) }
}
