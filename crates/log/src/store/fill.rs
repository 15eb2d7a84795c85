//! The filling in of missing records from another replica.

use std::io;

use rota_storage::acceptor::LogDisk;

use super::record::Run;
use super::writer::Target;
use super::{Inner, Store, lock};

impl<D: LogDisk + 'static> Store<D> {
    /// Takes in the records of a run from another replica that are missing here. They are on the disk then, and durable
    /// with the next checkpoint. To be called by a thread that may wait for the disk.
    ///
    /// # Errors
    /// The system's own. Records that were not written are still missing.
    pub fn fill(&self, run: &Run) -> io::Result<()> {
        let inner = &self.inner;
        let _alone = lock(&inner.filling);
        let missing = {
            let state = lock(&inner.state);
            let entry = state.logs.get(&run.log());
            entry.map(|entry| entry.missing.within(run.first(), run.next()))
        };
        for (from, to) in missing.unwrap_or_default() {
            let Some(part) = run.part(from, to, usize::MAX) else {
                continue;
            };
            inner.fill(&part)?;
        }
        Ok(())
    }

    /// The missing positions of all logs.
    pub fn missing(&self) -> Vec<super::Missing> {
        let state = lock(&self.inner.state);
        let mut all = Vec::new();
        for (log, entry) in &state.logs {
            let log = *log;
            let missing = entry.missing.iter();
            all.extend(missing.map(|(from, to)| super::Missing { log, from, to }));
        }
        all
    }
}

impl<D: LogDisk> Inner<D> {
    fn fill(&self, part: &Run) -> io::Result<()> {
        let (log, first, next) = (part.log(), part.first(), part.next());
        let target = lock(&self.state).target(log, first, part.bytes().len(), |log| log.filler);
        let put = self.put(log, first, part.bytes(), target);
        let mut state = lock(&self.state);
        if let Err(error) = put {
            state.troubles.on_error("fill", &error);
            return Err(error);
        }
        // The records may have been trimmed meanwhile: then their file is removed as all trimmed ones are.
        let at = state.extend(log, first, next, part.bytes(), target);
        let Some(entry) = state.logs.get_mut(&log) else {
            return Ok(());
        };
        if at.is_some() {
            entry.missing.remove(first, next);
        }
        if let Target::New { .. } = target {
            entry.filler = at;
        }
        drop(state);
        self.work.notify_one();
        Ok(())
    }
}
