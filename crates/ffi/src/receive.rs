//! Receiving events.

use std::time::Duration;

use crate::arguments::give;
use crate::event::Event;
use crate::handle::{Client, Half, Inside, inside};
use crate::status::{Failure, Status};

/// The next event. Waits so many milliseconds at most, and says ROTA_STATUS_TIMED_OUT then; 0 does not
/// wait, a negative number waits for ever. A signal does not end the wait. When the connection has ended,
/// the events that arrived before come first.
///
/// *event and all that it points to are the library's: valid until the next rota_receive with this handle,
/// and until the handle is closed or freed. *event is NULL if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_receive(
    client: *mut Client,
    timeout_ms: i64,
    event: *mut *const Event,
) -> Status {
    // SAFETY: NULL, or the caller's to be written.
    unsafe { give(event, std::ptr::null()) };
    let receive = |_: &Client, inside: &mut Inside| {
        if event.is_null() {
            return Err(Failure::argument(c"there is no place for the event"));
        }
        let next = next(&mut inside.half, timeout_ms)?;
        let next = next.ok_or(Failure::new(Status::TimedOut, c"no event in time"))?;
        // SAFETY: as above.
        unsafe { give(event, inside.held.fill(next)) };
        Ok(())
    };
    // SAFETY: as the header asks for.
    unsafe { inside(client, receive) }
}

fn next(half: &mut Half, timeout_ms: i64) -> Result<Option<rota_client::Event>, Failure> {
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    let next = match (half, timeout) {
        (Half::Both(both), None) => both.recv().map(Some),
        (Half::Both(both), Some(timeout)) => both.recv_timeout(timeout),
        (Half::Receiver(receiver), None) => receiver.recv().map(Some),
        (Half::Receiver(receiver), Some(timeout)) => receiver.recv_timeout(timeout),
        (Half::Lasting(lasting), None) => return Ok(lasting.recv().map(Some)?),
        (Half::Lasting(lasting), Some(timeout)) => return Ok(lasting.recv_timeout(timeout)?),
        (Half::Sender(_) | Half::Neither, _) => {
            let text = c"the sending half cannot receive";
            return Err(Failure::new(Status::WrongHalf, text));
        }
    };
    Ok(next?)
}
