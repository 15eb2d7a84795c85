//! Commands as operations.

use bytes::Bytes;
use rota_front::command::{Refused, error, is, not_a_number, number, syntax, wrong_count};

use super::parse::{
    AT_MILLIS, AT_SECONDS, MILLIS, SECONDS, Unit, getex_options, life, life_or_past, only_life,
    set_options,
};
use crate::store::{
    Action, Life, MOST_KEY_BYTES, MOST_VALUE_BYTES, Only, OnlyLife, Operation, Test, Wanted,
};

/// The form of the reply to one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Bytes, or nothing.
    Text,
    /// `OK`, or nothing.
    Status,
    /// A number.
    Number,
    /// 1 where it was done, 0 where not.
    Flag,
    /// A list of fields' bytes.
    List,
    /// The bytes of the only field that was asked for.
    First,
    /// 1 where the only field that was asked for is there.
    FirstFlag,
    /// Fields with their bytes.
    Pairs,
    /// Names of fields.
    Names,
    /// Bytes of all fields.
    Values,
    /// The rest of a key's life, in milliseconds or seconds.
    Life {
        /// In seconds.
        seconds: bool,
    },
    /// The kind of a value.
    Kind,
    /// A place in the order: round, ring, instance and message, with points between.
    Place,
    /// Keys with their values: this number of them at most.
    Entries(u32),
}

/// The way in which the replies to several operations become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// There is one operation; the answers of several partitions become one.
    One,
    /// The sum.
    Sum,
    /// A list, in which a key with another kind of value counts as missing.
    Texts,
    /// `OK`.
    Ok,
    /// 1 if the conditions held, 0 if not.
    AllOrNone,
}

/// The conditions and operations of a command, and the form of its reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan<'a> {
    /// The conditions.
    pub conditions: Vec<(&'a [u8], Test<'a>)>,
    /// The operations.
    pub operations: Vec<Operation<'a>>,
    /// The form of the reply to each operation.
    pub shape: Shape,
    /// The way to one reply.
    pub fold: Fold,
}

/// The number of keys of a range without `LIMIT`, at most.
const USUAL_RANGE: u32 = 1_000;

impl<'a> Plan<'a> {
    fn one(key: &'a Bytes, action: Action<'a>, shape: Shape) -> Self {
        Self::of(vec![Operation::Key(key, action)], shape, Fold::One)
    }

    const fn of(operations: Vec<Operation<'a>>, shape: Shape, fold: Fold) -> Self {
        Self {
            conditions: Vec::new(),
            operations,
            shape,
            fold,
        }
    }

    fn each(keys: &'a [Bytes], action: &Action<'a>, shape: Shape, fold: Fold) -> Self {
        let operation = |key: &'a Bytes| Operation::Key(key, action.clone());
        Self::of(keys.iter().map(operation).collect(), shape, fold)
    }

    /// The plan of a command. `name`: in small letters, of the table; `arguments`: those behind the name, as many as
    /// the table allows.
    ///
    /// # Errors
    /// The error reply to the client. `None`: it is a command without keys.
    pub fn new(name: &str, arguments: &'a [Bytes]) -> Option<Refused<Self>> {
        let plan = simple(name, arguments).map(Ok);
        plan.or_else(|| with_life(name, arguments))
            .or_else(|| of_many(name, arguments))
            .or_else(|| of_fields(name, arguments))
            .map(|plan| plan.and_then(within_limits))
    }
}

/// Refuses keys, values and fields that are larger than they may be.
fn within_limits(plan: Plan<'_>) -> Refused<Plan<'_>> {
    let is_large = |operation: &Operation<'_>| match operation {
        Operation::Key(key, _) if key.len() > MOST_KEY_BYTES => true,
        Operation::Key(_, Action::Set { value, .. } | Action::Append(value)) => {
            value.len() > MOST_VALUE_BYTES
        }
        Operation::Key(_, Action::SetFields(fields)) => fields
            .iter()
            .any(|(field, value)| field.len() + value.len() > MOST_VALUE_BYTES),
        _ => false,
    };
    match plan.operations.iter().any(is_large) {
        true => Err(error(&format!(
            "ERR string exceeds maximum allowed size ({MOST_VALUE_BYTES} bytes; keys {MOST_KEY_BYTES})"
        ))),
        false => Ok(plan),
    }
}

fn set_always<'a>(key: &'a Bytes, value: &'a Bytes, life: Life) -> Operation<'a> {
    let action = Action::Set {
        value,
        life,
        only: Only::Always,
        get: false,
    };
    Operation::Key(key, action)
}

fn simple<'a>(name: &str, arguments: &'a [Bytes]) -> Option<Plan<'a>> {
    let (key, rest) = arguments.split_first()?;
    let one = |action, shape| Some(Plan::one(key, action, shape));
    let set = |value: &'a Bytes, only, get, shape| {
        let action = Action::Set {
            value,
            life: Life::Ever,
            only,
            get,
        };
        Some(Plan::one(key, action, shape))
    };
    match (name, rest) {
        ("get", []) => one(Action::Get, Shape::Text),
        ("getdel", []) => one(Action::Take, Shape::Text),
        ("place", []) => one(Action::Place, Shape::Place),
        ("strlen", []) => one(Action::Length, Shape::Number),
        ("type", []) => one(Action::Kind, Shape::Kind),
        ("ttl", []) => one(Action::LivesUntil, Shape::Life { seconds: true }),
        ("pttl", []) => one(Action::LivesUntil, Shape::Life { seconds: false }),
        ("persist", []) => {
            let ever = Action::Lives(Life::Ever, OnlyLife::Always);
            one(ever, Shape::Number)
        }
        ("incr", []) => one(Action::Add(1), Shape::Number),
        ("decr", []) => one(Action::Add(-1), Shape::Number),
        ("append", [value]) => one(Action::Append(value), Shape::Number),
        ("getset", [value]) => set(value, Only::Always, true, Shape::Text),
        ("setnx", [value]) => set(value, Only::New, false, Shape::Flag),
        _ => None,
    }
}

/// Commands with a number, a time or options.
fn with_life<'a>(name: &str, arguments: &'a [Bytes]) -> Option<Refused<Plan<'a>>> {
    let (key, rest) = arguments.split_first()?;
    let expire = |unit| expire(name, (key, rest), unit);
    let setex = |unit| setex(name, (key, rest), unit);
    Some(match name {
        "incrby" => added(key, rest, 1),
        "decrby" => added(key, rest, -1),
        "set" => set(key, rest),
        "getex" => {
            let plan = |life| Plan::one(key, Action::GetAndLives(life), Shape::Text);
            getex_options(rest).map(plan)
        }
        "setex" => setex(SECONDS),
        "psetex" => setex(MILLIS),
        "expire" => expire(SECONDS),
        "pexpire" => expire(MILLIS),
        "expireat" => expire(AT_SECONDS),
        "pexpireat" => expire(AT_MILLIS),
        _ => return None,
    })
}

fn added<'a>(key: &'a Bytes, rest: &'a [Bytes], sign: i64) -> Refused<Plan<'a>> {
    let by = number(rest.first().ok_or_else(syntax)?)?;
    let by = by
        .checked_mul(sign)
        .ok_or_else(|| error("ERR decrement would overflow"))?;
    Ok(Plan::one(key, Action::Add(by), Shape::Number))
}

fn set<'a>(key: &'a Bytes, rest: &'a [Bytes]) -> Refused<Plan<'a>> {
    let (value, options) = rest.split_first().ok_or_else(syntax)?;
    let options = set_options(options)?;
    let action = Action::Set {
        value,
        life: options.life,
        only: options.only,
        get: options.get,
    };
    let shape = match options.get {
        true => Shape::Text,
        false => Shape::Status,
    };
    Ok(Plan::one(key, action, shape))
}

fn setex<'a>(name: &str, (key, rest): (&'a Bytes, &'a [Bytes]), unit: Unit) -> Refused<Plan<'a>> {
    let [time, value] = rest else {
        return Err(wrong_count(name));
    };
    let operations = vec![set_always(key, value, life(time, unit, name)?)];
    Ok(Plan::of(operations, Shape::Status, Fold::One))
}

fn expire<'a>(name: &str, (key, rest): (&'a Bytes, &'a [Bytes]), unit: Unit) -> Refused<Plan<'a>> {
    let (time, options) = rest.split_first().ok_or_else(|| wrong_count(name))?;
    let life = life_or_past(time, unit, name)?;
    let action = Action::Lives(life, only_life(options)?);
    Ok(Plan::one(key, action, Shape::Number))
}

/// Commands with several keys, or none.
fn of_many<'a>(name: &str, arguments: &'a [Bytes]) -> Option<Refused<Plan<'a>>> {
    let all = |action: &Action<'a>| Plan::each(arguments, action, Shape::Number, Fold::Sum);
    Some(match name {
        "del" | "unlink" => Ok(all(&Action::Delete)),
        "exists" | "touch" => Ok(all(&Action::Exists)),
        "mget" => Ok(Plan::each(
            arguments,
            &Action::Get,
            Shape::Text,
            Fold::Texts,
        )),
        "mset" => {
            pairs(name, arguments).map(|operations| Plan::of(operations, Shape::Status, Fold::Ok))
        }
        "msetnx" => pairs(name, arguments).map(|operations| {
            let keys = arguments.iter().step_by(2);
            let conditions = keys.map(|key| (&key[..], Test::Version(None)));
            Plan {
                conditions: conditions.collect(),
                ..Plan::of(operations, Shape::Status, Fold::AllOrNone)
            }
        }),
        "dbsize" => Ok(Plan::of(
            vec![Operation::Size(None)],
            Shape::Number,
            Fold::Sum,
        )),
        "flushall" | "flushdb" => match arguments {
            [] => Ok(Plan::of(
                vec![Operation::Clear(None)],
                Shape::Status,
                Fold::Ok,
            )),
            [word] if is(word, "ASYNC") || is(word, "SYNC") => Ok(Plan::of(
                vec![Operation::Clear(None)],
                Shape::Status,
                Fold::Ok,
            )),
            _ => Err(syntax()),
        },
        "range" => range(arguments),
        _ => return None,
    })
}

fn pairs<'a>(name: &str, arguments: &'a [Bytes]) -> Refused<Vec<Operation<'a>>> {
    let (pairs, rest) = arguments.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong_count(name));
    }
    let set = |[key, value]: &'a [Bytes; 2]| set_always(key, value, Life::Ever);
    Ok(pairs.iter().map(set).collect())
}

/// `RANGE start end [LIMIT n]`: keys from the one on to before the other; `+`: to the end.
fn range(arguments: &[Bytes]) -> Refused<Plan<'_>> {
    let (ends, options) = arguments.split_at(2);
    let limit = match options {
        [] => USUAL_RANGE,
        [word, count] if is(word, "LIMIT") => {
            let count = number(count)?;
            u32::try_from(count).map_err(|_| not_a_number())?
        }
        _ => return Err(syntax()),
    };
    let operation = Operation::Range {
        from: &ends[0],
        to: (&ends[1][..] != b"+").then_some(&ends[1][..]),
        limit,
        wanted: Wanted::Values,
        of: None,
    };
    let shape = Shape::Entries(limit);
    Ok(Plan::of(vec![operation], shape, Fold::One))
}

fn of_fields<'a>(name: &str, arguments: &'a [Bytes]) -> Option<Refused<Plan<'a>>> {
    let (key, rest) = arguments.split_first()?;
    let fields = || rest.iter().map(|field| &field[..]).collect::<Vec<_>>();
    let one = |action, shape| Some(Ok(Plan::one(key, action, shape)));
    match name {
        "hget" => one(Action::Fields(fields()), Shape::First),
        "hexists" => one(Action::Fields(fields()), Shape::FirstFlag),
        "hmget" => one(Action::Fields(fields()), Shape::List),
        "hgetall" => one(Action::AllFields, Shape::Pairs),
        "hkeys" => one(Action::AllFields, Shape::Names),
        "hvals" => one(Action::AllFields, Shape::Values),
        "hlen" => one(Action::CountFields, Shape::Number),
        "hdel" => one(Action::DeleteFields(fields()), Shape::Number),
        "hset" | "hmset" => {
            let (pairs, left) = rest.as_chunks::<2>();
            if !left.is_empty() {
                return Some(Err(wrong_count(name)));
            }
            let pair = |[field, value]: &'a [Bytes; 2]| (&field[..], &value[..]);
            let action = Action::SetFields(pairs.iter().map(pair).collect());
            match name {
                "hset" => one(action, Shape::Number),
                _ => Some(Ok(Plan::of(
                    vec![Operation::Key(key, action)],
                    Shape::Status,
                    Fold::Ok,
                ))),
            }
        }
        _ => None,
    }
}
