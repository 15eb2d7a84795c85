//! What processor time the servers took.

use std::fs;
use std::time::Duration;

/// When it began.
#[derive(Clone, Debug)]
pub struct Processor {
    processes: Vec<u32>,
    began: Duration,
}

impl Processor {
    /// Of these processes.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(processes: &[u32]) -> Result<Self, String> {
        let processes = processes.to_vec();
        let began = time(&processes)?;
        Ok(Self { processes, began })
    }

    /// How much they have taken since; `None` if there are none.
    ///
    /// # Errors
    /// One is gone.
    pub fn used(&self) -> Result<Option<Duration>, String> {
        if self.processes.is_empty() {
            return Ok(None);
        }
        Ok(Some(time(&self.processes)?.saturating_sub(self.began)))
    }
}

fn time(processes: &[u32]) -> Result<Duration, String> {
    processes.iter().map(|process| time_of(*process)).sum()
}

/// In user and system mode (proc_pid_stat(5): fields 14 and 15, the second field is in parentheses and may have spaces).
fn time_of(process: u32) -> Result<Duration, String> {
    let failed = |what: String| format!("processor time of process {process}: {what}");
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    let stat = stat.map_err(|error| failed(error.to_string()))?;
    let behind = stat.rsplit_once(')').map(|(_, behind)| behind);
    let fields: Vec<&str> = behind.unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => {
            let a_second = rustix::param::clock_ticks_per_second();
            Ok(Duration::from_secs_f64(
                (user + system) as f64 / a_second as f64,
            ))
        }
        _ => Err(failed("there is none".to_owned())),
    }
}
