//! A descriptor, on its way over a Unix socket (unix(7), `SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Sends bytes, and a descriptor with the first of them; says how many bytes the socket took.
///
/// # Errors
/// The socket's.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    let pushed = control.push(SendAncillaryMessage::ScmRights(&descriptors));
    debug_assert!(pushed, "the space is for one descriptor");
    let bytes = [IoSlice::new(bytes)];
    Ok(sendmsg(socket, &bytes, &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives bytes, and a descriptor if one came with the first of them: then these are the bytes that it was sent
/// with, and none behind them.
///
/// # Errors
/// The socket's.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(into)];
    let message = recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.next().and_then(|mut all| all.next());
    Ok((message.bytes, descriptor))
}
