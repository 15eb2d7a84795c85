//! The paper's figure: a value, a bound, a range, or something to be seen.

/// What a claim says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    /// About this.
    Value(f64),
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// From this to that.
    Range(f64, f64),
    /// Something that holds or does not.
    Holds,
}

impl Target {
    /// Reads the columns `metric` and `value` of the table.
    pub fn parse(metric: &str, value: &str, is_point: bool) -> Self {
        if let Some((low, high)) = value.split_once('-')
            && let (Ok(low), Ok(high)) = (low.parse(), high.parse())
        {
            return Self::Range(low, high);
        }
        let Ok(value) = value.parse() else {
            return Self::Holds;
        };
        match metric {
            _ if is_point => Self::Value(value),
            metric if metric.ends_with("_min") => Self::AtLeast(value),
            metric if metric.ends_with("_max") => Self::AtMost(value),
            _ => Self::Value(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_says_on_which_side_a_value_may_be() {
        assert_eq!(
            Target::parse("throughput", "986", false),
            Target::Value(986.0)
        );
        assert_eq!(
            Target::parse("latency_mean_max", "400", false),
            Target::AtMost(400.0)
        );
        assert_eq!(
            Target::parse("throughput_min", "920", false),
            Target::AtLeast(920.0)
        );
        assert_eq!(
            Target::parse("x_range", "0.55-0.98", false),
            Target::Range(0.55, 0.98)
        );
        assert_eq!(Target::parse("x_max", "5.65", true), Target::Value(5.65));
        assert_eq!(Target::parse("grows", "monotone", false), Target::Holds);
        assert_eq!(Target::parse("shares", "700/300/0", false), Target::Holds);
    }
}
