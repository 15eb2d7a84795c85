//! Bounds on the command line.

use rota_model::Bounds;

/// One number, or four.
pub(super) fn parse(text: &str) -> Result<Bounds, String> {
    let hint = || {
        "microseconds, 0 or more: a packet on the wire; or four, with a processor's to send a packet, to receive one, and for a rotation: \
         11.65, or 1.2,3.3,2,151"
            .to_owned()
    };
    let read = |text: &str| {
        let number: Option<f64> = text.trim().parse().ok();
        number.filter(|number| number.is_finite() && *number >= 0.0)
    };
    let numbers: Option<Vec<f64>> = text.split(',').map(read).collect();
    match numbers.as_deref() {
        Some(&[wire_us]) => Ok(Bounds {
            wire_us,
            ..Bounds::default()
        }),
        Some(&[wire_us, send_us, receive_us, token_us]) => Ok(Bounds {
            wire_us,
            send_us,
            receive_us,
            token_us,
        }),
        _ => Err(hint()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_or_four() {
        let one = parse("11.65").expect("a number");
        assert!((one.wire_us - 11.65).abs() < 1e-9 && one.token_us == 0.0);
        let four = parse("1.2, 3.3,2,151").expect("four numbers");
        let sum = four.wire_us + four.send_us + four.receive_us + four.token_us;
        assert!((sum - 157.5).abs() < 1e-9);
        for wrong in ["", "1,2", "-1", "nan", "1,2,3,4,5", "x"] {
            parse(wrong).expect_err(wrong);
        }
    }
}
