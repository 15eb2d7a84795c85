//! Work beside that of clients, judged by the state in the end and by the answers meanwhile: hashes that are copied in
//! parts, many keys of one slot, conditions.

use rota_core::random::Random;
use rota_kv::store::{Action, Batch, Life, Only, Operation, Test};

const HASHES: u64 = 2;
const FIELDS: u64 = 4;
/// A hash is copied in several parts.
const FIELD_BYTES: usize = 12_000;
/// So many keys of one slot change at once: more than are copied while nobody writes.
const GROUPS: u64 = 2;
const OF_A_GROUP: u64 = 80;

/// What is to be ordered.
pub struct Disturbance {
    condition: Option<(String, Option<String>)>,
    writes: Vec<(String, Write)>,
}

enum Write {
    Set(String),
    Field(String, String),
    NoField(String),
    Delete,
}

fn hash(number: u64) -> String {
    format!("hash{number}")
}

fn of_group(group: u64, number: u64) -> String {
    format!("{{group{group}}}{number}")
}

/// All keys that are written here.
pub fn keys() -> impl Iterator<Item = String> {
    let groups = (0..GROUPS).map(|group| of_group(group, 0));
    (0..HASHES).map(hash).chain(groups)
}

impl Disturbance {
    pub fn draw(random: &mut Random, value: &str) -> Self {
        let group = random.below(GROUPS);
        let member = of_group(group, random.below(OF_A_GROUP));
        let field = format!("f{}", random.below(FIELDS));
        let (mut condition, key) = (None, hash(random.below(HASHES)));
        let writes = match random.below(8) {
            0..3 => vec![(
                key,
                Write::Field(field, value.repeat(FIELD_BYTES / value.len())),
            )],
            3 => vec![(key, Write::NoField(field))],
            4 => vec![(key, Write::Delete)],
            5 => (0..OF_A_GROUP)
                .map(|number| (of_group(group, number), Write::Set(value.to_owned())))
                .collect(),
            _ => {
                let other = of_group(group, random.below(OF_A_GROUP));
                let is_there = random.below(2) == 0;
                condition = Some((other, is_there.then(|| value.to_owned())));
                vec![(member, Write::Set(value.to_owned()))]
            }
        };
        Self { condition, writes }
    }

    pub fn batch(&self, (stamp, epoch): (u64, u64)) -> Batch<'_> {
        let condition = self.condition.iter().map(|(key, value)| {
            let value = value.as_ref().map(String::as_bytes);
            (key.as_bytes(), Test::Value(value))
        });
        let operations = self.writes.iter().map(|(key, write)| {
            let action = match write {
                Write::Set(value) => Action::Set {
                    value: value.as_bytes(),
                    life: Life::Ever,
                    only: Only::Always,
                    get: false,
                },
                Write::Field(field, value) => {
                    Action::SetFields(vec![(field.as_bytes(), value.as_bytes())])
                }
                Write::NoField(field) => Action::DeleteFields(vec![field.as_bytes()]),
                Write::Delete => Action::Delete,
            };
            Operation::Key(key.as_bytes(), action)
        });
        Batch {
            stamp,
            epoch,
            conditions: condition.collect(),
            operations: operations.collect(),
        }
    }
}
