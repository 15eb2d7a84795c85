//! The stretches of datagrams in a burst that survive a check, cut out without copies.

use bytes::Bytes;

/// Calls `take` with each longest stretch of datagrams that `keep` accepts. A burst that is kept as
/// a whole is handed on as it is.
pub(crate) fn kept_runs(
    bytes: &Bytes,
    segment: usize,
    mut keep: impl FnMut(usize, &[u8]) -> bool,
    mut take: impl FnMut(Bytes),
) {
    let mut run = 0;
    let mut at = 0;
    for (index, datagram) in bytes.chunks(segment.max(1)).enumerate() {
        let end = at + datagram.len();
        if !keep(index, datagram) {
            if run < at {
                take(bytes.slice(run..at));
            }
            run = end;
        }
        at = end;
    }
    if run < at {
        take(bytes.slice(run..at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(text: &'static str, segment: usize, drop: &[usize]) -> Vec<String> {
        let mut found = Vec::new();
        let keep = |index: usize, _: &[u8]| !drop.contains(&index);
        kept_runs(&Bytes::from_static(text.as_bytes()), segment, keep, |run| {
            found.push(String::from_utf8(run.to_vec()).unwrap());
        });
        found
    }

    #[test]
    fn a_burst_falls_apart_where_datagrams_are_dropped() {
        assert_eq!(runs("aabbccd", 2, &[]), ["aabbccd"]);
        assert_eq!(runs("aabbccd", 2, &[1]), ["aa", "ccd"]);
        assert_eq!(runs("aabbccd", 2, &[0, 3]), ["bbcc"]);
        assert_eq!(runs("aabbccd", 2, &[0, 1, 2, 3]), Vec::<String>::new());
    }
}
