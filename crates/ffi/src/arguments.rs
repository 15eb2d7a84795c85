//! The arguments from C, checked before their use.

use std::ffi::{CStr, c_char, c_void};

use rota_client::{Service, SlowPolicy};

use crate::status::{Failure, Status};

/// A text that is a name: in UTF-8 at least.
///
/// # Safety
///
/// `text` is NULL, or ends with a zero and lives as long as `'a`.
pub(crate) unsafe fn name<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: as this function asks for.
    let bytes = unsafe { bytes_of(text) }?;
    std::str::from_utf8(bytes).map_err(|_| Failure::new(Status::BadName, c"not a name: not UTF-8"))
}

/// A text in UTF-8.
///
/// # Safety
///
/// `text` is NULL, or ends with a zero and lives as long as `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: as this function asks for.
    let bytes = unsafe { bytes_of(text) }?;
    std::str::from_utf8(bytes).map_err(|_| Failure::argument(c"a text is not UTF-8"))
}

/// The bytes of a text.
///
/// # Safety
///
/// `text` is NULL, or ends with a zero and lives as long as `'a`.
pub(crate) unsafe fn bytes_of<'a>(text: *const c_char) -> Result<&'a [u8], Failure> {
    if text.is_null() {
        return Err(Failure::argument(c"a text is NULL"));
    }
    // SAFETY: it is not NULL, and the rest is as this function asks for.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A payload that is not larger than the largest.
///
/// # Safety
///
/// `payload` is NULL, or has so many bytes unless they are more than `largest`, and lives as long as `'a`.
pub(crate) unsafe fn payload<'a>(
    payload: *const c_void,
    bytes: usize,
    largest: usize,
) -> Result<&'a [u8], Failure> {
    if bytes > largest {
        let text = c"the payload is larger than rota_largest_payload";
        return Err(Failure::new(Status::TooLarge, text));
    }
    if bytes == 0 {
        return Ok(&[]);
    }
    if payload.is_null() {
        return Err(Failure::argument(c"the payload is NULL"));
    }
    // SAFETY: it is not NULL and has so many bytes, which are few.
    Ok(unsafe { std::slice::from_raw_parts(payload.cast(), bytes) })
}

/// A service; 0 is none.
pub(crate) fn service(number: u32) -> Result<Option<Service>, Failure> {
    Ok(match number {
        0 => None,
        1 => Some(Service::Reliable),
        2 => Some(Service::Fifo),
        3 => Some(Service::Causal),
        4 => Some(Service::Agreed),
        5 => Some(Service::Safe),
        _ => return Err(Failure::argument(c"there is no such service")),
    })
}

/// What becomes of a slow client; 0 is what its daemon does with all.
pub(crate) fn when_slow(number: u32) -> Result<Option<SlowPolicy>, Failure> {
    Ok(match number {
        0 => None,
        1 => Some(SlowPolicy::Disconnect),
        2 => Some(SlowPolicy::Skip),
        3 => Some(SlowPolicy::ThrottleThenDisconnect),
        4 => Some(SlowPolicy::ThrottleThenSkip),
        _ => {
            return Err(Failure::argument(
                c"there is no such policy for slow clients",
            ));
        }
    })
}

/// Where to leave something.
///
/// # Safety
///
/// `place` is NULL, or may be written.
pub(crate) unsafe fn give<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: it is not NULL, and may be written.
        unsafe { place.write(value) };
    }
}
