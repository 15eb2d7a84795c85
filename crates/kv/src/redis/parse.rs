//! Arguments of commands.

use bytes::Bytes;
use rota_front::command::{Refused, error, is, number, syntax};
use rota_resp::Reply;

use crate::store::{Life, Only, OnlyLife};

/// The unit and the origin of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    /// The unit, in milliseconds.
    each: i64,
    /// The time counts from 1970 on.
    is_absolute: bool,
}

pub(super) const SECONDS: Unit = Unit {
    each: 1000,
    is_absolute: false,
};
pub(super) const MILLIS: Unit = Unit {
    each: 1,
    is_absolute: false,
};
pub(super) const AT_SECONDS: Unit = Unit {
    each: 1000,
    is_absolute: true,
};
pub(super) const AT_MILLIS: Unit = Unit {
    each: 1,
    is_absolute: true,
};

fn unit(word: &[u8]) -> Option<Unit> {
    let units = [
        ("EX", SECONDS),
        ("PX", MILLIS),
        ("EXAT", AT_SECONDS),
        ("PXAT", AT_MILLIS),
    ];
    let unit = units.iter().find(|(name, _)| is(word, name));
    unit.map(|(_, unit)| *unit)
}

/// A time to come. `name`: the command.
pub(super) fn life(text: &[u8], unit: Unit, name: &str) -> Refused<Life> {
    let life = life_or_past(text, unit, name)?;
    match life {
        Life::Until(0) | Life::For(0) => Err(invalid_time(name)),
        life => Ok(life),
    }
}

/// A time that may be over already.
pub(super) fn life_or_past(text: &[u8], unit: Unit, name: &str) -> Refused<Life> {
    let time = number(text)?.checked_mul(unit.each);
    // Times stay far from the largest number, as the time of now is added.
    let time = time.filter(|time| time.unsigned_abs() < 1 << 62);
    let time = time.ok_or_else(|| invalid_time(name))?;
    let time = u64::try_from(time).unwrap_or(0);
    Ok(match unit.is_absolute {
        true => Life::Until(time),
        false => Life::For(time),
    })
}

fn invalid_time(name: &str) -> Reply {
    error(&format!("ERR invalid expire time in '{name}' command"))
}

/// The options behind the value of `SET`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SetOptions {
    pub life: Life,
    pub only: Only,
    pub get: bool,
}

pub(super) fn set_options(arguments: &[Bytes]) -> Refused<SetOptions> {
    let mut options = SetOptions {
        life: Life::Ever,
        only: Only::Always,
        get: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let is_free = (options.only, options.life);
        if is(argument, "NX") && is_free.0 == Only::Always {
            options.only = Only::New;
        } else if is(argument, "XX") && is_free.0 == Only::Always {
            options.only = Only::Old;
        } else if is(argument, "GET") {
            options.get = true;
        } else if is(argument, "KEEPTTL") && is_free.1 == Life::Ever {
            options.life = Life::Keep;
        } else if let Some(unit) = unit(argument).filter(|_| is_free.1 == Life::Ever) {
            let time = arguments.next().ok_or_else(syntax)?;
            options.life = life(time, unit, "set")?;
        } else {
            return Err(syntax());
        }
    }
    Ok(options)
}

/// The options behind the key of `GETEX`: without one the life stays.
pub(super) fn getex_options(arguments: &[Bytes]) -> Refused<Life> {
    match arguments {
        [] => Ok(Life::Keep),
        [word] if is(word, "PERSIST") => Ok(Life::Ever),
        [word, time] => match unit(word) {
            Some(unit) => life(time, unit, "getex"),
            None => Err(syntax()),
        },
        _ => Err(syntax()),
    }
}

/// The options behind the time of `EXPIRE` and its kin.
pub(super) fn only_life(arguments: &[Bytes]) -> Refused<OnlyLife> {
    let words = [
        ("NX", OnlyLife::Ever),
        ("XX", OnlyLife::Limited),
        ("GT", OnlyLife::Longer),
        ("LT", OnlyLife::Shorter),
    ];
    let find = |argument: &Bytes| words.iter().find(|(word, _)| is(argument, word));
    match arguments {
        [] => Ok(OnlyLife::Always),
        [word] => find(word).map(|(_, only)| *only).ok_or_else(|| {
            let word = String::from_utf8_lossy(word);
            error(&format!("ERR Unsupported option {word}"))
        }),
        // A key that lives longer than a limit is what `GT` alone asks for.
        [first, second] => match (find(first), find(second)) {
            (Some((_, OnlyLife::Limited)), Some((_, OnlyLife::Longer)))
            | (Some((_, OnlyLife::Longer)), Some((_, OnlyLife::Limited))) => Ok(OnlyLife::Longer),
            (Some(_), Some(_)) => Err(error(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            )),
            _ => Err(syntax()),
        },
        _ => Err(syntax()),
    }
}
