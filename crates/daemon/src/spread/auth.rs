//! The checks that a client has to pass, and their names.

/// Bytes of one name in the client's choice.
const SLOT_BYTES: usize = 30;
const SLOTS: usize = 3;

/// Bytes of the client's choice.
pub(super) const CHOICE_BYTES: usize = SLOT_BYTES * SLOTS;

/// A check of a client. Neither has an exchange of its own: the owner of the socket knows all that they look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthMethod {
    /// Everybody passes.
    Null,
    /// The client's address has to be allowed.
    Ip,
}

impl AuthMethod {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Ip => "IP",
        }
    }

    fn of_name(name: &[u8], offered: &[Self]) -> Option<Self> {
        let mut offered = offered.iter().copied();
        offered.find(|method| method.name().as_bytes() == name)
    }
}

/// The list a client chooses from, with its length in front: each name is followed by a space.
pub(super) fn offer(methods: &[AuthMethod]) -> Vec<u8> {
    let names: String = methods.iter().map(|m| format!("{} ", m.name())).collect();
    // At most the two methods there are, so the length is far below 128, where refusals begin.
    let mut bytes = vec![names.len() as u8];
    bytes.extend_from_slice(names.as_bytes());
    bytes
}

/// Reads the client's choice; the first empty name ends it. `None` if it names what is not offered.
pub(super) fn choice(bytes: &[u8], offered: &[AuthMethod]) -> Option<Vec<AuthMethod>> {
    let mut chosen = Vec::new();
    for slot in bytes.chunks_exact(SLOT_BYTES).take(SLOTS) {
        let end = slot.iter().position(|&byte| byte == 0);
        match &slot[..end?] {
            [] => break,
            name => add(&mut chosen, AuthMethod::of_name(name, offered)?),
        }
    }
    Some(chosen)
}

/// Adds a method that is not yet there.
pub(super) fn add(methods: &mut Vec<AuthMethod>, method: AuthMethod) {
    if !methods.contains(&method) {
        methods.push(method);
    }
}
