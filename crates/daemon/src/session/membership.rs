//! The connection of a client among those of the groups.

use rota_core::groups::Connection;

/// The connection of a client, and the one before while it is made to skip.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Membership {
    /// The client was let in as this.
    connection: Option<Connection>,
    /// While the client is made to skip: its earlier connection, whose events it misses.
    before: Option<Connection>,
}

impl Membership {
    /// Of a client that was not let in.
    pub const fn new() -> Self {
        Self {
            connection: None,
            before: None,
        }
    }

    pub const fn connection(self) -> Option<Connection> {
        self.connection
    }

    /// The connection whose events the client misses.
    pub const fn before(self) -> Option<Connection> {
        self.before
    }

    /// Both.
    pub fn all(self) -> impl Iterator<Item = Connection> {
        self.connection.into_iter().chain(self.before)
    }

    /// The client is let in.
    pub const fn begin(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }

    /// The client is made to skip: from here on it has this connection.
    pub const fn skip_to(&mut self, next: Connection) {
        self.before = self.connection.replace(next);
    }

    /// The client has skipped all that it was to miss.
    pub const fn go_on(&mut self) {
        self.before = None;
    }

    /// The client is not connected any more; it was until now as the result says.
    pub const fn end(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    /// Only a client that is connected misses anything, and never its own events.
    pub fn check(self) {
        let Self { connection, before } = self;
        debug_assert!(before.is_none() || connection.is_some() && before != connection);
    }
}
