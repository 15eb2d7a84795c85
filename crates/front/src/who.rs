//! The identity of a client, and its permissions.

use std::sync::Arc;

use bytes::Bytes;
use rota_resp::{Reply, Version};

use crate::access::{User, Users};
use crate::command::{Entry, error, syntax};
use crate::session::{self, Identity};

/// The result of `HELLO` or `AUTH`.
#[derive(Clone, PartialEq, Debug)]
pub enum Hello {
    /// The reply is known.
    Reply(Reply),
    /// The client names a user and a password; the reply if they are right.
    Login(Bytes, Bytes, Reply),
}

/// The identity of a client, with its user.
#[derive(Debug)]
pub struct Who {
    /// The client's description of itself.
    pub identity: Identity,
    /// The identity before the last `HELLO`, for the case that its login fails.
    before: Option<Identity>,
    is_open: bool,
    has_logged_in: bool,
    /// The user whose permissions the client has; none: it may do everything.
    user: Option<Arc<User>>,
}

impl Who {
    /// A client with this number. `is_open`: no client has to prove who it is.
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

    /// The protocol that it speaks.
    pub const fn version(&self) -> Version {
        self.identity.version
    }

    /// Whether the client has proved who it is, or need not.
    pub const fn has_logged_in(&self) -> bool {
        self.has_logged_in
    }

    /// Remembers that the client has proved to be this user.
    pub fn log_in(&mut self, user: Arc<User>) {
        (self.has_logged_in, self.user) = (true, Some(user));
        self.before = None;
    }

    /// Takes back the `HELLO` whose login failed.
    pub fn refuse_login(&mut self) {
        if let Some(before) = self.before.take() {
            self.identity = before;
        }
    }

    /// The reply to a client that claims to be this user. `turn_away` hears of a wrong password.
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

    /// Sets the client back to the state in which it came.
    pub fn reset(&mut self) {
        *self = Self::new(self.identity.id, self.is_open);
    }

    /// The reason why the client may not run this command, if it may not.
    pub fn refusal(&self, entry: &Entry, arguments: &[Bytes]) -> Option<Reply> {
        let is_first = matches!(entry.name, "auth" | "hello" | "quit" | "reset");
        if !self.has_logged_in && !is_first {
            return Some(error("NOAUTH Authentication required."));
        }
        let user = self.user.as_ref();
        user.and_then(|user| user.refusal(entry, arguments))
    }

    /// Handles `HELLO`.
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
            Ok(None) => {
                self.before = None;
                Hello::Reply(welcome)
            }
        }
    }

    /// Handles `AUTH`.
    pub fn auth(&mut self, arguments: &[Bytes]) -> Hello {
        // A wrong password takes back no `HELLO` of before.
        self.before = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(who: &mut Who, words: &[&str]) -> Hello {
        let arguments: Vec<Bytes> = words
            .iter()
            .map(|word| Bytes::from(word.to_string()))
            .collect();
        who.hello(&arguments, false)
    }

    #[test]
    fn a_wrong_password_takes_back_its_own_hello_and_no_other() {
        let mut who = Who::new(1, true);
        assert!(matches!(hello(&mut who, &["3"]), Hello::Reply(_)));
        assert_eq!(who.version(), Version::Resp3);
        let password = [Bytes::from_static(b"ann"), Bytes::from_static(b"wrong")];
        assert!(matches!(who.auth(&password), Hello::Login(..)));
        who.refuse_login();
        assert_eq!(who.version(), Version::Resp3, "AUTH has no protocol");
        let login = hello(&mut who, &["2", "AUTH", "ann", "wrong"]);
        assert!(matches!(login, Hello::Login(..)));
        assert_eq!(who.version(), Version::Resp2);
        who.refuse_login();
        assert_eq!(who.version(), Version::Resp3, "HELLO is taken back");
    }
}
