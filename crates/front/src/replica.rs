//! The metrics of a service's replica.

use rota_replica::ReplicaStatus;

use crate::metrics::Text;
use crate::rings;

/// Writes the metrics of a replica and of its rings.
pub fn tell(text: &mut Text, status: &ReplicaStatus) {
    let counts = &status.counts;
    text.counters(&[
        (
            "applied",
            counts.applied,
            "Messages of commands that were applied.",
        ),
        ("applied_bytes", counts.bytes, "Their bytes."),
        (
            "checkpoints",
            counts.checkpoints,
            "States that were written.",
        ),
        (
            "checkpoints_failed",
            counts.checkpoints_failed,
            "States that could not be written.",
        ),
        (
            "recoveries",
            counts.recoveries,
            "How often it began anew with a state of another replica.",
        ),
        (
            "recovered_bytes",
            counts.recovered_bytes,
            "Bytes that came for that.",
        ),
    ]);
    text.gauges(&[
        (
            "answers_kept",
            status.answers_kept as u64,
            "Answers to messages of other processes that are kept, as those may come for them.",
        ),
        (
            "answers_kept_bytes",
            status.answers_kept_bytes as u64,
            "Their bytes.",
        ),
        (
            "stopped",
            u64::from(status.ended.is_some()),
            "The replica has stopped.",
        ),
    ]);
    if let Some(rings) = &status.rings {
        rings::tell(text, rings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_replica::Counts;

    #[test]
    fn a_service_says_the_same_of_its_replica_whichever_it_is() {
        let status = ReplicaStatus {
            counts: Counts {
                applied: 1,
                bytes: 2,
                checkpoints: 3,
                checkpoints_failed: 4,
                recoveries: 5,
                recovered_bytes: 6,
                ..Counts::default()
            },
            sessions: 0,
            sessions_bytes: 0,
            answers_kept: 7,
            answers_kept_bytes: 8,
            began: None,
            rings: None,
            ended: Some("it is over".to_owned()),
        };
        for service in ["kv", "log"] {
            let mut text = Text::new(service);
            tell(&mut text, &status);
            for said in [
                "applied_total 1",
                "applied_bytes_total 2",
                "checkpoints_total 3",
                "checkpoints_failed_total 4",
                "recoveries_total 5",
                "recovered_bytes_total 6",
                "answers_kept 7",
                "answers_kept_bytes 8",
                "stopped 1",
            ] {
                let line = format!("\nrota_{service}_{said}\n");
                assert!(text.text().contains(&line), "{line}: {}", text.text());
            }
        }
    }
}
