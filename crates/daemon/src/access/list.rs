//! The access rules as the daemon applies them: users and groups of the host are numbers.

use ipnet::IpNet;
use nix::unistd::{Group, User, geteuid};

use super::{AccessError, AccessRule, Pattern, Peer, Rights, Who};

/// The access rules of a daemon.
#[derive(Debug)]
pub(crate) struct Access {
    /// Without any rule everybody may do everything.
    rules: Vec<Rule>,
    /// The user that the daemon runs as.
    own_uid: u32,
}

#[derive(Debug)]
struct Rule {
    who: Known,
    connect: bool,
    admin: bool,
    join: Vec<Pattern>,
    send: Vec<Pattern>,
}

/// The peers that a rule is about; a field that is `None` matches any peer.
#[derive(Debug)]
struct Known {
    uid: Option<u32>,
    gid: Option<u32>,
    certificate: Option<String>,
    address: Option<IpNet>,
}

impl Access {
    /// Looks up users and groups of this host. The error has the number of the rule, from 1 on.
    pub fn new(rules: &[AccessRule]) -> Result<Self, (usize, AccessError)> {
        let known = |(at, rule)| Rule::new(rule).map_err(|error| (at + 1, error));
        Ok(Self {
            rules: rules
                .iter()
                .enumerate()
                .map(known)
                .collect::<Result<_, _>>()?,
            own_uid: geteuid().as_raw(),
        })
    }

    /// There is a list.
    pub fn is_limited(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Processes of others than the daemon's own user may ask how it is.
    pub fn has_admins(&self) -> bool {
        let is_local = |rule: &Rule| rule.who.address.is_none();
        self.rules.iter().any(|rule| rule.admin && is_local(rule))
    }

    /// The rights of this peer: the union of all rules that match it.
    pub fn rights(&self, peer: &Peer) -> Rights {
        if !self.is_limited() {
            return Rights::ALL;
        }
        let mut rights = Rights::NONE;
        for rule in self.rules.iter().filter(|rule| rule.who.matches(peer)) {
            rights.connect |= rule.connect;
            rights.admin |= rule.admin;
            rights.join.add(&rule.join);
            rights.send.add(&rule.send);
        }
        // A process of root or of the daemon's own user could as well kill the daemon, or read its memory.
        rights.admin |=
            matches!(peer, Peer::Local { uid, .. } if *uid == 0 || *uid == self.own_uid);
        rights
    }
}

impl Rule {
    fn new(rule: &AccessRule) -> Result<Self, AccessError> {
        Ok(Self {
            who: Known::new(&rule.who)?,
            connect: rule.connect,
            admin: rule.admin,
            join: rule.join.clone(),
            send: rule.send.clone(),
        })
    }
}

impl Known {
    fn new(who: &Who) -> Result<Self, AccessError> {
        let uid = who.user.as_deref().map(uid_of).transpose()?;
        let gid = who.group.as_deref().map(gid_of).transpose()?;
        Ok(Self {
            uid: uid.or(who.uid),
            gid: gid.or(who.gid),
            certificate: who.certificate.clone(),
            address: who.address,
        })
    }

    fn matches(&self, peer: &Peer) -> bool {
        let is_local = self.uid.is_some() || self.gid.is_some();
        let is_remote = self.certificate.is_some() || self.address.is_some();
        match peer {
            Peer::Local { uid, gids } => {
                !is_remote
                    && self.uid.is_none_or(|wanted| wanted == *uid)
                    && self.gid.is_none_or(|wanted| gids.contains(&wanted))
            }
            Peer::Remote { address, names } => {
                let shown = |wanted: &String| names.iter().any(|name| is_same(name, wanted));
                !is_local
                    && self.certificate.as_ref().is_none_or(shown)
                    && self
                        .address
                        .is_none_or(|net| net.contains(&address.to_canonical()))
            }
        }
    }
}

/// Names of hosts have no case, URIs do.
fn is_same(name: &str, wanted: &str) -> bool {
    name == wanted || !wanted.contains(':') && name.eq_ignore_ascii_case(wanted)
}

fn uid_of(name: &str) -> Result<u32, AccessError> {
    match User::from_name(name) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err(AccessError::UnknownUser(name.to_owned())),
        Err(error) => Err(AccessError::Lookup(name.to_owned(), error.into())),
    }
}

fn gid_of(name: &str) -> Result<u32, AccessError> {
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(AccessError::UnknownGroup(name.to_owned())),
        Err(error) => Err(AccessError::Lookup(name.to_owned(), error.into())),
    }
}

#[cfg(test)]
mod tests {
    use rota_core::groups::GroupName;

    use super::*;

    fn access(text: &str) -> Access {
        #[derive(serde::Deserialize)]
        struct File {
            access: Vec<AccessRule>,
        }
        let file: File = toml::from_str(text).expect("rules");
        Access::new(&file.access).expect("known users")
    }

    const fn local(uid: u32, gids: Vec<u32>) -> Peer {
        Peer::Local { uid, gids }
    }

    fn remote(address: &str, names: &[&str]) -> Peer {
        Peer::Remote {
            address: address.parse().expect("an address"),
            names: names.iter().map(ToString::to_string).collect(),
        }
    }

    fn group(name: &str) -> GroupName {
        GroupName::new(name).expect("a name")
    }

    #[test]
    fn without_a_list_everybody_may_do_everything_and_with_one_nobody_else_anything() {
        let stranger = local(12345, vec![12345]);
        let open = Access::new(&[]).expect("no rules");
        assert_eq!(open.rights(&stranger), Rights::ALL);
        let closed = access("[[access]]\nwho = { uid = 54321 }\n");
        assert_eq!(closed.rights(&stranger), Rights::NONE);
    }

    #[test]
    fn a_client_may_what_all_rules_that_match_it_give() {
        let access = access(
            "[[access]]\nwho = { uid = 7 }\njoin = [\"a*\"]\n\
             [[access]]\nwho = { gid = 70 }\nconnect = false\nadmin = true\n\
             [[access]]\nwho = { anyone = true }\nsend = [\"*\"]\n",
        );
        let rights = access.rights(&local(7, vec![1, 70]));
        assert!(rights.connect && rights.admin);
        assert!(rights.may_join(&group("abc")) && !rights.may_join(&group("b")));
        assert!(rights.may_see(&group("b")));
        let other = access.rights(&local(8, vec![1]));
        assert!(other.connect && !other.admin && !other.may_join(&group("abc")));
        let far = access.rights(&remote("10.0.0.1", &[]));
        assert!(far.connect && !far.may_join(&group("abc")));
    }

    #[test]
    fn everything_that_a_rule_says_of_somebody_has_to_hold() {
        let access = access(
            "[[access]]\nwho = { uid = 7, gid = 70 }\n\
             [[access]]\nwho = { certificate = \"alice.example\", address = \"10.0.0.0/8\" }\n",
        );
        let may = |peer: &Peer| access.rights(peer).connect;
        assert!(may(&local(7, vec![70])));
        assert!(!may(&local(7, vec![71])) && !may(&local(8, vec![70])));
        assert!(may(&remote("10.1.2.3", &["bob", "Alice.example"])));
        assert!(may(&remote("::ffff:10.1.2.3", &["alice.example"])));
        assert!(!may(&remote("11.1.2.3", &["alice.example"])));
        assert!(!may(&remote("10.1.2.3", &["bob"])));
        assert!(
            is_same("spiffe://a/B", "spiffe://a/B") && !is_same("spiffe://a/b", "spiffe://a/B")
        );
    }

    #[test]
    fn root_and_the_daemons_own_user_may_always_ask_how_it_is() {
        let access = access("[[access]]\nwho = { uid = 54321 }\n");
        let mine = local(geteuid().as_raw(), Vec::new());
        for peer in [local(0, Vec::new()), mine] {
            let rights = access.rights(&peer);
            assert!(rights.admin && !rights.connect);
        }
    }

    #[test]
    fn users_and_groups_are_those_of_this_host() {
        let root = access("[[access]]\nwho = { user = \"root\", group = \"root\" }\n");
        assert!(root.rights(&local(0, vec![0])).connect);
        assert!(!root.rights(&local(1, vec![0])).connect);
        let unknown = |who: Who| {
            let rule = AccessRule {
                who,
                connect: true,
                admin: false,
                join: Vec::new(),
                send: Vec::new(),
            };
            Access::new(&[rule])
                .expect_err("nobody is called so")
                .1
                .to_string()
        };
        let name = Some("no-such-name".to_owned());
        let user = Who {
            user: name.clone(),
            ..Who::default()
        };
        assert!(unknown(user).contains("no user `no-such-name`"));
        let group = Who {
            group: name,
            ..Who::default()
        };
        assert!(unknown(group).contains("no group `no-such-name`"));
    }
}
