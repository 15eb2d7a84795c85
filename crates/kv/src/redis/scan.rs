//! `SCAN`.

use bytes::Bytes;
use rota_front::command::{error, is, number, syntax};
use rota_resp::Reply;

use super::work::Walk;

/// The bytes of a pattern, at most: each byte of each name may be compared with each of them.
const MOST_PATTERN_BYTES: usize = 256;
/// The number of keys that one step of a walk looks at, at most.
const MOST_WALKED: i64 = 10_000;
/// The same without `COUNT`.
const USUAL_WALK: u32 = 10;

/// Reads `SCAN cursor [MATCH pattern] [COUNT n] [TYPE kind]`.
pub(super) fn scan(arguments: &[Bytes]) -> Result<(u64, Walk), Reply> {
    let (at, mut rest) = arguments.split_first().ok_or_else(syntax)?;
    let at = std::str::from_utf8(at).ok().and_then(|at| at.parse().ok());
    let at = at.ok_or_else(|| error("ERR invalid cursor"))?;
    let mut walk = Walk {
        from: Bytes::new(),
        count: USUAL_WALK,
        pattern: None,
        kind: None,
    };
    while let Some((word, behind)) = rest.split_first() {
        let (value, behind) = behind.split_first().ok_or_else(syntax)?;
        if is(word, "MATCH") && value.len() > MOST_PATTERN_BYTES {
            return Err(error("ERR the pattern is too long"));
        } else if is(word, "MATCH") {
            walk.pattern = Some(value.clone());
        } else if is(word, "COUNT") {
            let count = number(value)?;
            if count < 1 {
                return Err(syntax());
            }
            walk.count = count.min(MOST_WALKED) as u32;
        } else if is(word, "TYPE") {
            walk.kind = Some(value.clone());
        } else {
            return Err(syntax());
        }
        rest = behind;
    }
    Ok((at, walk))
}
