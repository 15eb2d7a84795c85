//! Groups and their members, as the daemon knows them.

use std::ffi::c_char;

use rota_client::RequestError;

use crate::arguments::{give, name};
use crate::handle::{Client, Half, Inside, inside};
use crate::held::Texts;
use crate::send::cannot_send;
use crate::status::{Failure, Status};

/// A group that the daemon knows of.
#[repr(C)]
pub struct Group {
    /// What it is called.
    pub name: *const c_char,
    /// How many members it has.
    pub members: u32,
}

/// The newest list of each kind.
#[derive(Default)]
pub(crate) struct Lists {
    names: Texts,
    groups: Vec<Group>,
}

// SAFETY: a list points to its own text, which is on the heap and moves with it; one thread at a time writes it, behind
// the lock of its handle.
unsafe impl Send for Lists {}

/// All groups that the daemon knows of. *groups has *count of them, which are the library's: valid until the
/// next list with this handle, and until the handle is closed or freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_groups(
    client: *mut Client,
    groups: *mut *const Group,
    count: *mut usize,
) -> Status {
    // SAFETY: NULL, or the caller's to be written.
    unsafe { (give(groups, std::ptr::null()), give(count, 0)) };
    let list = |_: &Client, inside: &mut Inside| {
        if groups.is_null() || count.is_null() {
            return Err(Failure::argument(c"there is no place for the list"));
        }
        let found = match &mut inside.half {
            Half::Both(both) => both.groups(),
            Half::Sender(sender) => sender.groups(),
            Half::Lasting(lasting) => lasting.groups(),
            Half::Receiver(_) | Half::Neither => return Err(cannot_send()),
        }?;
        let lists = &mut inside.lists;
        lists.names.fill(found.iter().map(|(name, _)| name));
        let names = lists.names.pointers().iter();
        let made = names.zip(&found).map(|(name, (_, members))| Group {
            name: *name,
            members: *members,
        });
        lists.groups = made.collect();
        // SAFETY: as above.
        unsafe {
            (
                give(groups, lists.groups.as_ptr()),
                give(count, found.len()),
            )
        };
        Ok(())
    };
    // SAFETY: as the header asks for.
    unsafe { inside(client, list) }
}

/// The private names of the members of a group as far as the daemon knows, in the order of views; none if
/// there is no such group. The client need not be in it. *members has *count of them, which are the
/// library's: valid until the next list with this handle, and until the handle is closed or freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_members(
    client: *mut Client,
    group: *const c_char,
    members: *mut *const *const c_char,
    count: *mut usize,
) -> Status {
    // SAFETY: NULL, or the caller's to be written.
    unsafe { (give(members, std::ptr::null()), give(count, 0)) };
    let list = |_: &Client, inside: &mut Inside| {
        if members.is_null() || count.is_null() {
            return Err(Failure::argument(c"there is no place for the list"));
        }
        // SAFETY: NULL or a text, which the caller keeps for the call.
        let group = unsafe { name(group) }?;
        let found: Result<_, RequestError> = match &mut inside.half {
            Half::Both(both) => both.members(group),
            Half::Sender(sender) => sender.members(group),
            Half::Lasting(lasting) => lasting.members(group),
            Half::Receiver(_) | Half::Neither => return Err(cannot_send()),
        };
        let names = &mut inside.lists.names;
        names.fill(found?.iter());
        let pointers = names.pointers();
        // SAFETY: as above.
        unsafe {
            (
                give(members, pointers.as_ptr()),
                give(count, pointers.len()),
            )
        };
        Ok(())
    };
    // SAFETY: as the header asks for.
    unsafe { inside(client, list) }
}
