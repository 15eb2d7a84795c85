//! Whole connections.

/// What is said in turns: by whom, and which frames.
pub struct Conversation {
    pub name: &'static str,
    pub steps: &'static [(bool, &'static [&'static str])],
}

const CLIENT: bool = true;
const DAEMON: bool = false;

/// The first is what any client does without memory, by every transport. In it are answers among messages, a batch of
/// sends, a batch of replies, and a large message.
const RELAYED: Conversation = Conversation {
    name: "relayed",
    steps: &[
        (CLIENT, &["hello-membership"]),
        (DAEMON, &["welcome"]),
        (CLIENT, &["join"]),
        (DAEMON, &["view-own-join", "done", "view-join"]),
        (CLIENT, &["list-groups"]),
        (DAEMON, &["message-private", "groups"]),
        (CLIENT, &["list-members"]),
        (DAEMON, &["members"]),
        (CLIENT, &["send"]),
        (DAEMON, &["credit", "message"]),
        (CLIENT, &["send-large"]),
        (
            DAEMON,
            &[
                "credit-large",
                "message-large",
                "lagging",
                "transitional",
                "view-network",
                "not-sent",
            ],
        ),
        (CLIENT, &["send", "send"]),
        (
            DAEMON,
            &[
                "credit",
                "message",
                "credit",
                "message",
                "view-leave",
                "excluded",
                "included",
            ],
        ),
        (CLIENT, &["leave"]),
        (DAEMON, &["self-leave", "done-leave"]),
        (CLIENT, &["bye"]),
    ],
};

const REFUSED: Conversation = Conversation {
    name: "refused",
    steps: &[(CLIENT, &["hello"]), (DAEMON, &["refused-name-in-use"])],
};

const SHUTTING_DOWN: Conversation = Conversation {
    name: "shutting-down",
    steps: &[
        (CLIENT, &["hello"]),
        (DAEMON, &["welcome"]),
        (CLIENT, &["join"]),
        (
            DAEMON,
            &["done", "message", "skipped", "goodbye-shutting-down"],
        ),
    ],
};

const NOT_JOINED: Conversation = Conversation {
    name: "not-joined",
    steps: &[
        (CLIENT, &["hello"]),
        (DAEMON, &["welcome"]),
        (CLIENT, &["join"]),
        (DAEMON, &["failed-quota"]),
        (CLIENT, &["bye"]),
    ],
};

/// Behind this welcome the stream goes on in the memory whose descriptor comes with its first byte: see "Through memory".
const MEMORY: Conversation = Conversation {
    name: "memory",
    steps: &[
        (CLIENT, &["hello-memory"]),
        (DAEMON, &["welcome-memory"]),
        (CLIENT, &["bye"]),
    ],
};

pub fn all() -> [Conversation; 5] {
    [RELAYED, REFUSED, SHUTTING_DOWN, NOT_JOINED, MEMORY]
}
