//! Looks at all places until what is to be said is said there.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::table::{PLACES, Say};

/// Within this everything is to be named.
const IN_TIME: Duration = Duration::from_secs(10);
/// From one look to the next: looking costs processor time that the daemons want, too.
const BETWEEN: Duration = Duration::from_millis(200);
/// Stands for anything in words on one line.
const ANYTHING: &str = " … ";

/// What was said before something was done.
pub struct Before {
    at: Instant,
    log: usize,
    status: String,
    metrics: Vec<String>,
}

impl Before {
    pub fn of(cluster: &Cluster<'_>) -> Self {
        Self {
            at: Instant::now(),
            log: cluster.log_length(),
            status: cluster.ask(&[]).0,
            metrics: cluster.metrics(),
        }
    }

    /// Whether these words are said at a place by now, and were not before; what is said there.
    fn is_said(&self, cluster: &Cluster<'_>, place: usize, words: &str) -> (bool, String) {
        match place {
            0 => in_lines(words, cluster.log_since(self.log).join("\n")),
            1 => {
                let old: HashSet<&str> = self.status.lines().collect();
                let status = cluster.ask(&[]).0;
                let new: Vec<&str> = status.lines().filter(|line| !old.contains(line)).collect();
                in_lines(words, new.join("\n"))
            }
            2 => in_lines(words, cluster.ask(&["--explain", "--interval", "500"]).0),
            _ => {
                let now = cluster.metrics();
                let seconds = self.at.elapsed().as_secs_f64();
                (
                    is_raised(words, (&self.metrics, &now), seconds),
                    String::new(),
                )
            }
        }
    }

    /// Waits until all is said that is to be; what is not said in time, where, and what is said there instead.
    pub fn expect(&self, cluster: &Cluster<'_>, all: &[Say; PLACES.len()]) -> Vec<String> {
        let began = Instant::now();
        let mut open: Vec<usize> = (0..PLACES.len()).collect();
        loop {
            let last = began.elapsed() >= IN_TIME;
            let mut wrong = Vec::new();
            open.retain(|place| {
                let Say::Words(words) = all[*place] else {
                    return false;
                };
                let (is_said, text) = self.is_said(cluster, *place, words);
                if !is_said {
                    wrong.push(format!("{}: no `{words}`: {text}", PLACES[*place]));
                }
                !is_said
            });
            if open.is_empty() || last {
                return wrong;
            }
            thread::sleep(BETWEEN);
        }
    }
}

fn in_lines(words: &str, text: String) -> (bool, String) {
    let parts: Vec<&str> = words.split(ANYTHING).collect();
    let mut lines = text.lines();
    let is_said = lines.any(|line| parts.iter().all(|part| line.contains(part)));
    (is_said, text)
}

/// Whether an alert like `NAME < 3`, `increase(NAME) > 0` or `rate(NAME) > 0.2` is raised for any daemon, from its page before and
/// now.
fn is_raised(alert: &str, (before, now): (&[String], &[String]), seconds: f64) -> bool {
    let words: Vec<&str> = alert.split(' ').collect();
    let [what, than, limit] = words[..] else {
        panic!("no alert: {alert}");
    };
    let (function, name) = match what.strip_suffix(')').and_then(|what| what.split_once('(')) {
        Some(both) => both,
        None => ("", what),
    };
    let limit: f64 = limit.parse().expect("a number");
    let value = |(before, now): (&String, &String)| {
        let now = sample(name, now)?;
        let before = sample(name, before).unwrap_or(0.0);
        // A counter that is less than it was began anew.
        let grown = if now < before { now } else { now - before };
        Some(match function {
            "increase" => grown,
            "rate" => grown / seconds,
            _ => now,
        })
    };
    let values = before.iter().zip(now).filter_map(value);
    values.into_iter().any(|value| match than {
        ">" => value > limit,
        "<" => value < limit,
        _ => panic!("no alert: {alert}"),
    })
}

/// The largest sample of a metric on a page.
fn sample(name: &str, page: &str) -> Option<f64> {
    let samples = page.lines().filter_map(|line| {
        let (key, value) = line.rsplit_once(' ')?;
        let is_it = key.split('{').next() == Some(name);
        is_it.then(|| value.parse::<f64>().ok()).flatten()
    });
    samples.reduce(f64::max)
}
