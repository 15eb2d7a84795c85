//! The other daemons, as a page shows them: asked through this one, as its client, while somebody looks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rota_client::Client;

use crate::status::DaemonStatus;
use crate::teller;

/// The largest age of what is shown: however many look, the others are asked once in this time.
const FRESH: Duration = Duration::from_millis(900);

/// The time that all of it may take. Daemons that have not answered then are not shown.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The statuses of all daemons at one time, each found out at that time or shortly before.
pub(super) type All = Arc<Vec<DaemonStatus>>;

/// Asks all daemons, if they tell.
#[derive(Debug)]
pub(super) struct Survey {
    /// Where clients of this daemon connect; none where it does not tell.
    socket: Option<PathBuf>,
    newest: Mutex<Option<(Instant, All)>>,
    /// What is shown where daemons do not tell: the same each time, so that it is judged once.
    nobody: All,
}

impl Survey {
    /// Through the daemon at this socket.
    pub fn new(socket: Option<PathBuf>) -> Self {
        Self {
            socket,
            newest: Mutex::new(None),
            nobody: All::default(),
        }
    }

    /// The statuses of all daemons that tell, this one among them, by node; none where daemons do not tell.
    pub fn all(&self) -> All {
        let Some(socket) = &self.socket else {
            return Arc::clone(&self.nobody);
        };
        let newest = self.newest.lock();
        let mut newest = newest.unwrap_or_else(PoisonError::into_inner);
        if let Some((at, all)) = &*newest
            && at.elapsed() < FRESH
        {
            return Arc::clone(all);
        }
        let mut all = ask(socket).unwrap_or_else(|error| {
            tracing::debug!(error, "the other daemons cannot be asked");
            Vec::new()
        });
        all.sort_unstable_by_key(|status| status.node);
        let all = Arc::new(all);
        *newest = Some((Instant::now(), Arc::clone(&all)));
        all
    }
}

fn ask(socket: &Path) -> Result<Vec<DaemonStatus>, String> {
    let until = Instant::now() + PATIENCE;
    let client = Client::builder().timeout(PATIENCE).connect(socket);
    let mut client = client.map_err(|error| error.to_string())?;
    let tellers = teller::tellers(&mut client).map_err(|error| error.to_string())?;
    let answers = teller::ask(&mut client, &tellers, until).map_err(|error| error.to_string())?;
    let told = answers.into_values().flatten();
    let statuses = told.filter_map(|message| serde_json::from_slice(&message.payload).ok());
    Ok(statuses.collect())
}
