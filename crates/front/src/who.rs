//! Who a client is, and what it may do.

use std::sync::Arc;

use bytes::Bytes;
use rota_resp::{Reply, Version};

use crate::access::{User, Users};
use crate::command::{Entry, error, syntax};
use crate::session::{self, Identity};

/// What somebody has said of itself.
#[derive(Clone, PartialEq, Debug)]
pub enum Hello {
    /// This is told.
    Reply(Reply),
    /// It has said who it is: user and password. What is told if that holds.
    Login(Bytes, Bytes, Reply),
}

/// See the module's page.
#[derive(Debug)]
pub struct Who {
    /// What it calls itself.
    pub identity: Identity,
    /// Before it said who it is, which has to be proved.
    before: Option<Identity>,
    is_open: bool,
    has_logged_in: bool,
    /// What it may do; none: everything.
    user: Option<Arc<User>>,
}

impl Who {
    /// A client with this number. `is_open`: nobody has to say who it is.
    pub fn new(id: u64, is_open: bool) -> Self {
        Self {
            identity: Identity {
                id,
                ..Identity::default()
            },
            before: None,
            is_open,
            has_logged_in: is_open,
            user: None,
        }
    }

    /// Which protocol it speaks.
    pub const fn version(&self) -> Version {
        self.identity.version
    }

    /// Whether it has proved who it is, or need not.
    pub const fn has_logged_in(&self) -> bool {
        self.has_logged_in
    }

    /// It has proved who it is.
    pub fn log_in(&mut self, user: Arc<User>) {
        (self.has_logged_in, self.user) = (true, Some(user));
    }

    /// It has not: what it has said of itself with that does not count.
    pub fn refuse_login(&mut self) {
        if let Some(before) = self.before.take() {
            self.identity = before;
        }
    }

    /// What it is told who says that it is this user. `turn_away` hears of a wrong password.
    pub fn login(
        &mut self,
        users: &Users,
        (user, password): (&[u8], &[u8]),
        welcome: Reply,
        turn_away: impl FnOnce(&'static str),
    ) -> Reply {
        if users.is_open() && user == b"default" {
            return welcome;
        }
        let Some(user) = users.login(user, password) else {
            turn_away("no user has this name and this password");
            self.refuse_login();
            return error("WRONGPASS invalid username-password pair or user is disabled.");
        };
        self.log_in(user);
        welcome
    }

    /// As it was when it came.
    pub fn reset(&mut self) {
        *self = Self::new(self.identity.id, self.is_open);
    }

    /// Why it may not have this done, if it may not.
    pub fn refusal(&self, entry: &Entry, arguments: &[Bytes]) -> Option<Reply> {
        let is_first = matches!(entry.name, "auth" | "hello" | "quit" | "reset");
        if !self.has_logged_in && !is_first {
            return Some(error("NOAUTH Authentication required."));
        }
        let user = self.user.as_ref();
        user.and_then(|user| user.refusal(entry, arguments))
    }

    /// `HELLO`.
    pub fn hello(&mut self, arguments: &[Bytes], is_cluster: bool) -> Hello {
        self.before = Some(self.identity.clone());
        let login = session::hello(&mut self.identity, arguments);
        let welcome = session::welcome(&self.identity, is_cluster);
        match login {
            Err(reply) => {
                self.refuse_login();
                Hello::Reply(reply)
            }
            Ok(Some((user, password))) => Hello::Login(user, password, welcome),
            Ok(None) if !self.has_logged_in => {
                self.refuse_login();
                Hello::Reply(error(
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                     HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                     select the RESP protocol version at the same time",
                ))
            }
            Ok(None) => Hello::Reply(welcome),
        }
    }

    /// `AUTH`.
    pub fn auth(&self, arguments: &[Bytes]) -> Hello {
        match arguments {
            [_] if self.is_open => Hello::Reply(error(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            )),
            [password] => Hello::Login("default".into(), password.clone(), Reply::OK),
            [user, password] => Hello::Login(user.clone(), password.clone(), Reply::OK),
            _ => Hello::Reply(syntax()),
        }
    }
}
