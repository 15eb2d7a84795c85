//! The state machine that is replicated.

use std::io;

use rota_multiring::Place;

/// A command, where it stands in the order of all rings.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// Its place. Of two commands that several replicas apply, both places and their order are the same at each.
    pub place: Place,
    /// The session that gave it ([`crate::Client::id`]).
    pub client: u64,
    /// The command as it was given.
    pub bytes: &'a [u8],
}

/// A state that commands change: the same way at each replica, so from nothing but the state and the command; without clocks, without chance, and
/// without what differs between hosts.
pub trait Machine: Send + 'static {
    /// The state as it was at a moment, which may be written while the machine goes on.
    type Frozen: Frozen;

    /// Changes the state; the answer to the client. Every replica of the partition calls it with the same commands in
    /// the same order, the replica at which the client waits as well as the others.
    fn apply(&mut self, command: Command<'_>) -> Vec<u8>;

    /// The state as it is now. All commands wait meanwhile, so it should be quick: share the parts that do not change
    /// any more, or copy.
    fn freeze(&mut self) -> Self::Frozen;

    /// Replaces the state by one that [`Frozen::write`] has written, here or in another replica.
    ///
    /// # Errors
    /// `InvalidData` or `UnexpectedEof`: the bytes are none that [`Frozen::write`] can have written. A replica that
    /// starts does not start then, and one that was to begin with the state of another drops the checkpoint. Any other:
    /// something failed that may pass, and the same checkpoint is tried again.
    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()>;

    /// Whether the machine has all that its state refers to. Most states refer to nothing.
    fn is_complete(&self) -> bool {
        true
    }

    /// Gets what the state that was installed refers to and the machine lacks, for as long as that takes. The rings
    /// keep what follows the state meanwhile, and nobody is told that the replica has it; its acceptors go on. `still`:
    /// to be asked each second or so; `false`: nobody needs this any more.
    ///
    /// # Errors
    /// Something failed that may pass: it is tried again. Or `still` said no.
    fn complete(&mut self, still: &dyn Fn() -> bool) -> io::Result<()> {
        let _ = still;
        Ok(())
    }
}

/// A state that does not change any more.
pub trait Frozen: Send + 'static {
    /// Writes all of the state, in a thread of its own.
    ///
    /// # Errors
    /// Those of `out`. There is no checkpoint then, and the next one is tried as usual.
    fn write(self, out: &mut dyn io::Write) -> io::Result<()>;
}

/// Bytes are a state that is written as it is.
impl Frozen for Vec<u8> {
    fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(&self)
    }
}
