//! The identity of a client, and its permissions.

use std::sync::Arc;

use bytes::Bytes;
use rota_resp::{Reply, Version};

use crate::Roster;
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
    /// The last change of the users that was looked at.
    looked: Option<u64>,
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
            looked: None,
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

    /// Looks whether the users have changed. A client whose user is gone, or has another password, has to prove again who
    /// it is; any other has the permissions that its user has now. Returns whether they have changed: then what the client
    /// was allowed before does not count any more.
    pub fn look(&mut self, roster: &Roster) -> bool {
        let number = roster.number();
        let before = self.looked.replace(number);
        if before == Some(number) {
            return false;
        }
        let users = roster.now();
        let same = self.user.take().and_then(|user| users.same(&user));
        self.is_open = users.is_open();
        (self.has_logged_in, self.user) = (self.is_open || same.is_some(), same);
        before.is_some()
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
        let looked = self.looked;
        *self = Self::new(self.identity.id, self.is_open);
        self.looked = looked;
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
    use crate::access::UserSection;
    use sha2::{Digest as _, Sha256};

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

    fn users(of: &[(&str, &str, bool)]) -> Users {
        let section = |(name, password, read_only): &(&str, &str, bool)| UserSection {
            name: (*name).to_owned(),
            password_sha256: format!("{:x}", Sha256::digest(password)),
            keys: None,
            read_only: *read_only,
        };
        let sections: Vec<UserSection> = of.iter().map(section).collect();
        Users::new(&sections).expect("users")
    }

    fn may_set(who: &Who) -> bool {
        let set = Entry::new("set", -3, &["write"], (1, 1, 1));
        let arguments = [&b"key"[..], b"value"].map(Bytes::from_static);
        who.refusal(&set, &arguments).is_none()
    }

    #[test]
    fn users_that_change_count_for_clients_that_are_there() {
        let roster = Roster::new(users(&[("ann", "one", false)]));
        let mut who = Who::new(1, false);
        who.look(&roster);
        assert!(!who.has_logged_in());
        let login = (&b"ann"[..], &b"one"[..]);
        let reply = who.login(&roster.now(), login, Reply::OK, |_| {});
        assert!(reply == Reply::OK && may_set(&who));
        // The same users are no change.
        assert!(!roster.replace(users(&[("ann", "one", false)])));
        who.look(&roster);
        assert!(may_set(&who));
        assert!(roster.replace(users(&[("ann", "one", true), ("bob", "two", false)])));
        assert!(may_set(&who), "it has not looked");
        assert!(who.look(&roster) && !who.look(&roster));
        assert!(who.has_logged_in() && !may_set(&who), "it only reads now");
        for other in [
            users(&[("ann", "two", false)]),
            users(&[("bob", "two", false)]),
        ] {
            let before = users(&[("ann", "one", false)]);
            roster.replace(before);
            who.look(&roster);
            who.login(&roster.now(), login, Reply::OK, |_| {});
            assert!(may_set(&who));
            roster.replace(other);
            who.look(&roster);
            assert!(!who.has_logged_in() && !may_set(&who));
        }
        // Without users nobody has to prove anything, until there are some again.
        roster.replace(Users::default());
        who.look(&roster);
        assert!(who.has_logged_in() && may_set(&who));
        who.reset();
        roster.replace(users(&[("ann", "one", false)]));
        who.look(&roster);
        assert!(!who.has_logged_in());
    }
}
