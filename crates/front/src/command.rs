//! The commands of a service, and their arguments.

use bytes::Bytes;
use rota_resp::Reply;

/// The keys that a command concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The keys among its arguments.
    Named,
    /// The keys from its first argument on and before its second one; `+` is the end of all.
    Range,
    /// The keys that begin as its first argument.
    Prefix,
    /// All keys.
    All,
}

/// The description of a command for Redis' clients (`COMMAND`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The name, in small letters.
    pub name: &'static str,
    /// The number of arguments, with the name; negative: the least number.
    pub arity: i64,
    /// The flags, as Redis has them.
    pub flags: &'static [&'static str],
    /// The place of its first key; 0: the command has none.
    pub first: i64,
    /// The place of its last key; negative: counted from the end.
    pub last: i64,
    /// The distance from one key to the next.
    pub step: i64,
    /// The keys that it concerns.
    pub reach: Reach,
}

impl Entry {
    /// A command whose keys are from one argument to another, `step` apart.
    pub const fn new(
        name: &'static str,
        arity: i64,
        flags: &'static [&'static str],
        (first, last, step): (i64, i64, i64),
    ) -> Self {
        Self {
            name,
            arity,
            flags,
            first,
            last,
            step,
            reach: Reach::Named,
        }
    }

    /// The same command, but for other keys.
    pub const fn of(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// Whether a command may have this number of arguments, with its name.
    pub const fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        if self.arity < 0 {
            count >= -self.arity
        } else {
            count == self.arity
        }
    }

    /// The keys among a command's arguments.
    pub fn keys<'a>(&self, arguments: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> + use<'a> {
        let count = arguments.len() as i64;
        let last = match self.last < 0 {
            true => count + self.last + 1,
            false => self.last.min(count),
        };
        // The name is their argument 0.
        let of = |at: i64| usize::try_from(at).unwrap_or_default();
        let (first, step) = (of(self.first - 1), of(self.step).max(1));
        let last = if self.first == 0 { 0 } else { of(last) };
        let keys = arguments.iter().take(last).skip(first);
        keys.step_by(step)
    }

    /// Whether the command changes anything.
    pub fn writes(&self) -> bool {
        self.flags.contains(&"write")
    }
}

/// The command with this name, in letters of any size. `table`: in the order of names.
pub fn find(table: &'static [Entry], name: &[u8]) -> Option<&'static Entry> {
    let name = name.to_ascii_lowercase();
    let at = table.binary_search_by(|entry| entry.name.as_bytes().cmp(&name));
    at.ok().map(|at| &table[at])
}

/// A result, or the error reply to arguments that cannot be read.
pub type Refused<T> = Result<T, Reply>;

/// An error reply with this text.
pub fn error(text: &str) -> Reply {
    Reply::error(text)
}

/// The reply to arguments that cannot be read.
pub fn syntax() -> Reply {
    error("ERR syntax error")
}

/// The reply to an argument that has to be a number.
pub fn not_a_number() -> Reply {
    error("ERR value is not an integer or out of range")
}

/// The reply to too many arguments, or too few.
pub fn wrong_count(name: &str) -> Reply {
    error(&format!(
        "ERR wrong number of arguments for '{name}' command"
    ))
}

/// The number of an argument, which has to be in its one usual form.
pub fn number(text: &[u8]) -> Refused<i64> {
    let number = std::str::from_utf8(text).ok();
    let number = number.and_then(|text| text.parse::<i64>().ok());
    number
        .filter(|number| number.to_string().as_bytes() == text)
        .ok_or_else(not_a_number)
}

/// Whether an argument is this word, in letters of any size.
pub fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// The reply to a command that there is not.
pub fn unknown(name: &[u8], arguments: &[Bytes]) -> Reply {
    let shown = |bytes: &[u8]| {
        let most = bytes.len().min(128);
        String::from_utf8_lossy(&bytes[..most]).into_owned()
    };
    let mut text = format!(
        "ERR unknown command '{}', with args beginning with: ",
        shown(name)
    );
    for argument in arguments.iter().take(8) {
        text += &format!("'{}' ", shown(argument));
    }
    Reply::Error(text)
}
