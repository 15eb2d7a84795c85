//! The life of a client, from connecting to closing.

use std::ffi::{OsStr, c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rota_client::{Address, Backoff, Builder, Reconnecting};

use crate::arguments::{bytes_of, name, service, when_slow};
use crate::handle::{Client, Half, guarded, inside};
use crate::status::{Failure, Status};
use crate::tls::Tls;

/// What becomes of a client that takes its events too slowly, as far as its daemon allows it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenSlow {
    /// What the daemon does with all who do not say.
    Default = 0,
    /// It is disconnected.
    Disconnect = 1,
    /// What waits is dropped, and the client is told how much that was: ROTA_EVENT_TYPE_SKIPPED. For everybody
    /// else it has disconnected and joined its groups again.
    Skip = 2,
    /// Those who send to its groups are made to wait for it, for a time; then it is disconnected.
    ThrottleThenDisconnect = 3,
    /// The same; then what waits is dropped, as with Skip.
    ThrottleThenSkip = 4,
}

/// What a client can be told before it connects. A field that is 0 or NULL means its default, so
/// `rota_options options = {0};` is a good start.
#[repr(C)]
pub struct Options {
    /// What the client wants to be called at its daemon: 1 to 10 characters from '$' to '~', unique among
    /// the clients of that daemon. NULL has the daemon invent a name.
    pub name: *const c_char,
    /// Whether the client gets views, transitional signals and self-leaves.
    pub membership: bool,
    /// Whether TCP may leave this machine, where everybody on the way can read and change everything.
    pub insecure: bool,
    /// Which guarantee messages ask for whose envelope does not say: one of rota_service; agreed.
    pub service: u32,
    /// How long the daemon may take to let the client in, and to answer a request; 30 s.
    pub timeout_ms: u64,
    /// About how many bytes of events may lie unread while a call waits for credit or an answer; 16 MiB.
    pub unread_bytes: usize,
    /// What becomes of the client if it takes its events too slowly: one of rota_when_slow.
    pub when_slow: u32,
    /// For an address tls:HOST:PORT how the two sides know each other; NULL for all others.
    pub tls: *const Tls,
}

impl Options {
    /// # Safety
    ///
    /// Its name is NULL or a text; its `tls` is NULL or one with such texts.
    unsafe fn builder(&self) -> Result<Builder, Failure> {
        let mut builder = rota_client::Client::builder()
            .membership(self.membership)
            .insecure(self.insecure);
        if !self.name.is_null() {
            // SAFETY: as this function asks for.
            builder = builder.name(unsafe { name(self.name) }?);
        }
        if let Some(service) = service(self.service)? {
            builder = builder.service(service);
        }
        if let Some(policy) = when_slow(self.when_slow)? {
            builder = builder.when_slow(policy);
        }
        // SAFETY: as this function asks for.
        if let Some(tls) = unsafe { self.tls.as_ref() } {
            // SAFETY: as this function asks for.
            builder = builder.tls(unsafe { tls.load() }?);
        }
        if self.timeout_ms > 0 {
            builder = builder.timeout(Duration::from_millis(self.timeout_ms));
        }
        if self.unread_bytes > 0 {
            builder = builder.unread_bytes(self.unread_bytes);
        }
        Ok(builder)
    }
}

/// A path may be anything, a host is a text.
fn address_of(bytes: &[u8]) -> Address {
    match std::str::from_utf8(bytes) {
        Ok(text) => Address::from(text),
        Err(_) => Address::from(Path::new(OsStr::from_bytes(bytes))),
    }
}

/// The pauses between attempts to connect again: each is twice the one before, with a part drawn at random. A field that is 0
/// means its default.
#[repr(C)]
pub struct Pauses {
    /// Between the loss and the first attempt; 50 ms.
    pub first_ms: u64,
    /// The longest; 5 s.
    pub longest_ms: u64,
}

impl Pauses {
    fn backoff(&self) -> Backoff {
        let default = Backoff::default();
        let or = |ms, default| match ms {
            0 => default,
            ms => Duration::from_millis(ms),
        };
        Backoff {
            first: or(self.first_ms, default.first),
            longest: or(self.longest_ms, default.longest),
        }
    }
}

/// Where to connect, and how.
///
/// # Safety
///
/// The address is NULL or a text; the options are NULL, or their name is NULL or a text, and so are those of their `tls`.
unsafe fn asked(
    address: *const c_char,
    options: *const Options,
) -> Result<(Address, Builder), Failure> {
    // SAFETY: as this function asks for.
    let address = address_of(unsafe { bytes_of(address) }?);
    // SAFETY: as this function asks for.
    let builder = match unsafe { options.as_ref() } {
        // SAFETY: as this function asks for.
        Some(options) => unsafe { options.builder() }?,
        None => rota_client::Client::builder(),
    };
    Ok((address, builder))
}

/// Connects, and waits until the daemon has let the client in. The address is the path of a Unix socket,
/// tcp:HOST:PORT, or, with tls in the options, tls:HOST:PORT. With options NULL all are defaults. *client is
/// the caller's, to close or to free; it is NULL after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_connect(
    address: *const c_char,
    options: *const Options,
    client: *mut *mut Client,
) -> Status {
    let connect = || {
        // SAFETY: NULL, or a text and options that the caller keeps for the call.
        let (address, builder) = unsafe { asked(address, options) }?;
        let connected = builder.connect(address)?;
        let (name, largest) = (connected.name(), connected.largest_payload());
        let fd = connected.as_fd().as_raw_fd();
        Ok(Client::new(
            name,
            largest,
            fd,
            Half::Both(Box::new(connected)),
        ))
    };
    // SAFETY: NULL, or the caller's to be written.
    unsafe { give_client(client, connect) }
}

/// As rota_connect, for a client that connects again when its connection is lost, joins its groups again, and says so:
/// ROTA_EVENT_TYPE_RECONNECTED stands where something may be missing. A failure of the first attempt is final. With pauses
/// NULL they are the defaults.
///
/// It connects again while rota_receive waits, and nowhere else, so that nothing is sent or received behind a gap that the
/// program has not seen: when another function says ROTA_STATUS_LOST, receive until that event. An attempt that has begun may
/// take longer than the time-out of rota_receive. If an attempt fails and the next would too, as without a right certificate,
/// rota_receive says why, and tries once more when it is called again. A daemon may take a while to notice that the old
/// connection is gone; a client with a name of its own is refused as long.
///
/// It has no descriptor to wait for (rota_fd is -1), and cannot be split.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_connect_lasting(
    address: *const c_char,
    options: *const Options,
    pauses: *const Pauses,
    client: *mut *mut Client,
) -> Status {
    let connect = || {
        // SAFETY: NULL, or a text and options that the caller keeps for the call.
        let (address, builder) = unsafe { asked(address, options) }?;
        // SAFETY: NULL, or pauses that the caller keeps for the call.
        let backoff = unsafe { pauses.as_ref() }.map_or_else(Backoff::default, Pauses::backoff);
        let mut lasting = Reconnecting::connect(address, builder, backoff)?;
        let connected = lasting.client();
        let connected = connected.ok_or(Failure::argument(c"there is no connection"))?;
        let (name, largest) = (connected.name(), connected.largest_payload());
        Ok(Client::new(
            name,
            largest,
            -1,
            Half::Lasting(Box::new(lasting)),
        ))
    };
    // SAFETY: NULL, or the caller's to be written.
    unsafe { give_client(client, connect) }
}

/// # Safety
///
/// `client` is NULL, or the caller's to be written.
unsafe fn give_client(
    client: *mut *mut Client,
    connect: impl FnOnce() -> Result<Client, Failure>,
) -> Status {
    guarded(|| {
        if client.is_null() {
            return Err(Failure::argument(c"there is no place for the client"));
        }
        // SAFETY: as this function asks for, and it is not NULL.
        unsafe { client.write(std::ptr::null_mut()) };
        let made = connect()?;
        // SAFETY: as above.
        unsafe { client.write(Box::into_raw(Box::new(made))) };
        Ok(())
    })
}

/// Takes the receiving half out of a client, so that one thread sends while another receives. The client is
/// the sending half from then on. While a call of it waits for credit or an answer, the other thread has to
/// receive. When the receiving half is freed, the connection ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_split(client: *mut Client, receiver: *mut *mut Client) -> Status {
    let split = |client: &Client, inside: &mut crate::handle::Inside| {
        if receiver.is_null() {
            return Err(Failure::argument(c"there is no place for the receiver"));
        }
        // SAFETY: it is not NULL, and the caller's to be written.
        unsafe { receiver.write(std::ptr::null_mut()) };
        match std::mem::replace(&mut inside.half, Half::Neither) {
            Half::Both(both) => {
                let (sends, receives) = both.split();
                inside.half = Half::Sender(Box::new(sends));
                let name = receives.name();
                let half = Half::Receiver(Box::new(receives));
                let made = Client::new(name, client.largest_payload, client.fd, half);
                // SAFETY: as above.
                unsafe { receiver.write(Box::into_raw(Box::new(made))) };
                Ok(())
            }
            half => {
                let text = match half {
                    Half::Lasting(_) => c"a client that connects again cannot be split",
                    _ => c"it is a half already",
                };
                inside.half = half;
                Err(Failure::new(Status::WrongHalf, text))
            }
        }
    };
    // SAFETY: as the header asks for.
    unsafe { inside(client, split) }
}

/// Says bye, waits until the daemon has read all that was sent, and frees the client, also after an error:
/// then the daemon may not have read everything. A sending half does not wait: the receiving half goes on
/// to the end. A receiving half is freed. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_close(client: *mut Client) -> Status {
    guarded(|| {
        if client.is_null() {
            return Ok(());
        }
        // SAFETY: it is not NULL, from rota_connect or rota_split, and the caller gives it up.
        let client = unsafe { Box::from_raw(client) };
        let bug = Failure::new(Status::Bug, c"the library has failed before");
        match client.inside.into_inner().map_err(|_| bug)?.half {
            Half::Both(both) => both.close()?,
            Half::Sender(sender) => sender.close()?,
            Half::Lasting(lasting) => lasting.close()?,
            Half::Receiver(_) | Half::Neither => {}
        }
        Ok(())
    })
}

/// Hangs up and frees the client: what the daemon has not read by then may be lost. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_free(client: *mut Client) {
    guarded(|| {
        if !client.is_null() {
            // SAFETY: it is not NULL, from rota_connect or rota_split, and the caller gives it up.
            drop(unsafe { Box::from_raw(client) });
        }
        Ok(())
    });
}

/// What others call this client: #client#daemon. Valid as long as the handle; NULL for NULL. Of a client that connects again
/// and has no name of its own, what its first connection was called: ROTA_EVENT_TYPE_RECONNECTED says the next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_name(client: *const Client) -> *const c_char {
    // SAFETY: NULL, or a handle that nobody frees meanwhile. Its name never changes.
    let client = unsafe { client.as_ref() };
    client.map_or(std::ptr::null(), |client| client.name.as_ptr())
}

/// The most bytes of one payload; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_largest_payload(client: *const Client) -> usize {
    // SAFETY: NULL, or a handle that nobody frees meanwhile.
    let client = unsafe { client.as_ref() };
    client.map_or(0, |client| client.largest_payload)
}

/// The descriptor to wait for with poll(), and for nothing else: POLLIN, and POLLOUT while
/// rota_wants_write. Events that have been read already do not make it ready, so receive with a time-out of
/// 0 until there are none before each poll(). -1 for NULL, and for a client that connects again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_fd(client: *const Client) -> c_int {
    // SAFETY: NULL, or a handle that nobody frees meanwhile.
    let client = unsafe { client.as_ref() };
    client.map_or(-1, |client| client.fd)
}

/// Whether there is something to write that the socket has not taken yet; rota_receive writes it when there
/// is room. False for halves: what a sending half has gathered, or could not write with ROTA_NO_WAIT, its
/// next call writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rota_wants_write(client: *const Client) -> bool {
    let mut wants = false;
    let look = |_: &Client, inside: &mut crate::handle::Inside| {
        wants = matches!(&inside.half, Half::Both(both) if both.wants_write());
        Ok(())
    };
    // SAFETY: as the header asks for.
    unsafe { inside(client, look) };
    wants
}
