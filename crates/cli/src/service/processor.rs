//! The processor time that the servers took.

use std::time::Duration;

use rota_bench::process_cpu_ns_of;

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

    /// The time that they have taken since; `None` if there are none.
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
    let of = |process: &u32| match process_cpu_ns_of(*process) {
        0 => Err(format!(
            "processor time of process {process}: there is none"
        )),
        nanos => Ok(Duration::from_nanos(nanos)),
    };
    processes.iter().map(of).sum()
}
