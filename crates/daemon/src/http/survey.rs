//! The other daemons, as a page shows them: asked through this one, as its client, while somebody looks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rota_client::{Client, PrivateName};
use rota_net::Complaints;

use crate::status::DaemonStatus;
use crate::teller::{self, Answer};

/// The largest age of what is shown: however many look, the others are asked once in this time.
const FRESH: Duration = Duration::from_millis(900);

/// The time that all of it may take. Daemons that have not answered then are not shown.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The statuses of all daemons at one time, each found out at that time or shortly before.
pub(super) type All = Arc<Vec<DaemonStatus>>;

/// The log has a line of it once in ten seconds at most.
const REFUSED: &str = "the page does not show this daemon: it cannot be asked through this one";

/// What came of asking.
#[derive(Debug, Default)]
struct Asked {
    newest: Option<(Instant, All)>,
    complaints: Complaints,
}

/// Asks all daemons, if they tell.
#[derive(Debug)]
pub(super) struct Survey {
    /// Where clients of this daemon connect; none where it does not tell.
    socket: Option<PathBuf>,
    asked: Mutex<Asked>,
    /// What is shown where daemons do not tell: the same each time, so that it is judged once.
    nobody: All,
}

impl Survey {
    /// Through the daemon at this socket.
    pub fn new(socket: Option<PathBuf>) -> Self {
        Self {
            socket,
            asked: Mutex::default(),
            nobody: All::default(),
        }
    }

    /// The statuses of all daemons that tell, this one among them, by node; none where daemons do not tell.
    pub fn all(&self) -> All {
        let Some(socket) = &self.socket else {
            return Arc::clone(&self.nobody);
        };
        let asked = self.asked.lock();
        let mut asked = asked.unwrap_or_else(PoisonError::into_inner);
        if let Some((at, all)) = &asked.newest
            && at.elapsed() < FRESH
        {
            return Arc::clone(all);
        }
        let answers = ask(socket).unwrap_or_else(|error| {
            tracing::debug!(error, "the other daemons cannot be asked");
            BTreeMap::new()
        });
        let mut all = told(answers, &mut asked.complaints);
        all.sort_unstable_by_key(|status| status.node);
        let all = Arc::new(all);
        asked.newest = Some((Instant::now(), Arc::clone(&all)));
        all
    }
}

fn ask(socket: &Path) -> Result<BTreeMap<PrivateName, Answer>, String> {
    let until = Instant::now() + PATIENCE;
    let client = Client::builder().timeout(PATIENCE).connect(socket);
    let mut client = client.map_err(|error| error.to_string())?;
    let tellers = teller::tellers(&mut client).map_err(|error| error.to_string())?;
    teller::ask(&mut client, &tellers, until).map_err(|error| error.to_string())
}

/// What daemons have told; of those that cannot be asked the log says so, and why.
fn told(answers: BTreeMap<PrivateName, Answer>, complaints: &mut Complaints) -> Vec<DaemonStatus> {
    let mut all = Vec::new();
    for (teller, answer) in answers {
        match answer {
            Ok(told) => all.push(*told.status),
            Err(code) => complaints.say(REFUSED, &teller.daemon, &code),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use rota_client::Code;
    use rota_core::contract::Time;

    use super::*;
    use crate::teller::Told;

    #[test]
    fn one_that_may_not_be_asked_is_not_shown_and_the_log_says_so() {
        let status = Box::new(DaemonStatus {
            node: 2,
            ..DaemonStatus::default()
        });
        let text = bytes::Bytes::new();
        let answers = [
            ("#rota-tell#n1", Err(Code::NotAllowed)),
            ("#rota-tell#n2", Ok(Told { status, text })),
        ];
        let answers = answers.map(|(name, answer)| (name.parse().expect("a name"), answer));
        let mut complaints = Complaints::default();
        let all = told(answers.into(), &mut complaints);
        assert_eq!(all.iter().map(|one| one.node).collect::<Vec<_>>(), [2]);
        assert_eq!(complaints.is_due(REFUSED, Time(0)), None, "a line just now");
    }
}
