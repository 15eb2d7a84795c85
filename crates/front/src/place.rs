//! Places in the order, as clients read and write them: round, ring, instance and message, with points between.

use rota_multiring::{Place, Rank};

/// The beginning of the order, before every place.
const BEGINNING: &str = "0";

/// A place as text; `None`: the beginning.
pub fn place_text(place: Option<Place>) -> String {
    match place {
        Some(place) => {
            let (ring, instance) = (place.rank.0, place.instance);
            format!("{}.{ring}.{instance}.{}", place.round, place.index)
        }
        None => BEGINNING.to_owned(),
    }
}

/// The place that [`place_text`] has written; `None` for anything else.
pub fn place_of(text: &[u8]) -> Option<Option<Place>> {
    let text = std::str::from_utf8(text).ok()?;
    if text == BEGINNING {
        return Some(None);
    }
    let mut numbers = text.split('.');
    let place = Place {
        round: number(numbers.next()?)?,
        rank: Rank(number(numbers.next()?)?),
        instance: number(numbers.next()?)?,
        index: number(numbers.next()?)?,
    };
    numbers.next().is_none().then_some(Some(place))
}

fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_nothing_else_is_one() {
        let place = Place {
            round: u64::MAX,
            rank: Rank(7),
            instance: 12,
            index: 0,
        };
        for place in [None, Some(place)] {
            assert_eq!(place_of(place_text(place).as_bytes()), Some(place));
        }
        for text in [
            "",
            "1",
            "1.2.3",
            "1.2.3.4.5",
            "1.65536.3.4",
            "1.2.3.4294967296",
            "+1.2.3.4",
            "1..3.4",
            "-1.2.3.4",
            "1.2.3.x",
            " 1.2.3.4",
            "18446744073709551616.1.1.1",
            "$",
        ] {
            assert_eq!(place_of(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(place_of(b"\xff.1.1.1"), None);
    }
}
