//! The records that a node keeps, and their files.

use bytes::Bytes;
use rota_core::contract::{LogId, LogRecord, NodeId, PersistError};
use rota_core::primary::PRIMARY_LOG;
use rota_ring::ELECTORATES_LOG;
use rota_storage::{OnDamage, OpenError, Opening, PrimaryFile, RingIdFile, StoreError};
use std::path::{Path, PathBuf};

use super::DriverError;
use crate::config::{NodeConfig, ResetPrimary};

/// The log of ring ids.
pub(super) const RING_IDS: LogId = LogId(1);
/// The one position in each log.
pub(super) const NEWEST: u64 = 0;

/// A record that can be kept. A newer one of a kind is written over the one before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Record {
    /// The newest ring id's number.
    RingId(u64),
    /// The node's knowledge of primaries.
    Primaries(Bytes),
    /// The electorates that the node has had and met.
    Electorates(Bytes),
}

impl Record {
    /// The newest of these records, which have to be of one kind; `None` if one is about anything else.
    pub(super) fn read(records: &[LogRecord]) -> Option<Self> {
        let mut newest: Option<Self> = None;
        for record in records {
            let next = Self::read_one(record)?;
            let is_one_kind = newest.is_none_or(|before| before.log() == next.log());
            newest = is_one_kind.then_some(next);
            newest.as_ref()?;
        }
        newest
    }

    fn read_one(record: &LogRecord) -> Option<Self> {
        match record {
            LogRecord::Put {
                log: RING_IDS,
                position: NEWEST,
                bytes,
            } => {
                let number = bytes.clone().into_bytes().as_ref().try_into().ok()?;
                Some(Self::RingId(u64::from_le_bytes(number)))
            }
            LogRecord::Put {
                log: PRIMARY_LOG,
                position: NEWEST,
                bytes,
            } => Some(Self::Primaries(bytes.clone().into_bytes())),
            LogRecord::Put {
                log: ELECTORATES_LOG,
                position: NEWEST,
                bytes,
            } => Some(Self::Electorates(bytes.clone().into_bytes())),
            LogRecord::Put { .. } | LogRecord::Trim { .. } => None,
        }
    }

    /// The log that the record belongs to.
    pub(super) const fn log(&self) -> LogId {
        match self {
            Self::RingId(_) => RING_IDS,
            Self::Primaries(_) => PRIMARY_LOG,
            Self::Electorates(_) => ELECTORATES_LOG,
        }
    }

    /// The contents as the engine knows them.
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            Self::RingId(number) => Bytes::copy_from_slice(&number.to_le_bytes()),
            Self::Primaries(bytes) | Self::Electorates(bytes) => bytes.clone(),
        }
    }
}

/// The records that are durable.
#[derive(Clone, Default, Debug)]
pub(super) struct Found {
    pub(super) ring_id: Option<u64>,
    /// `None`: this node keeps no such record.
    pub(super) primaries: Option<Bytes>,
    pub(super) electorates: Option<Bytes>,
}

impl Found {
    pub(super) fn take_over(&mut self, record: Record) {
        match record {
            Record::RingId(number) => self.ring_id = Some(number),
            Record::Primaries(bytes) => self.primaries = Some(bytes),
            Record::Electorates(bytes) => self.electorates = Some(bytes),
        }
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let ring_id = self.ring_id.map(Record::RingId);
        let primaries = self.primaries.clone().map(Record::Primaries);
        let electorates = self.electorates.clone().map(Record::Electorates);
        ring_id.into_iter().chain(primaries).chain(electorates)
    }
}

/// Makes records durable; may take its time.
pub(super) trait Store: Send {
    fn store(&mut self, record: &Record) -> Result<(), PersistError>;
}

/// A node's files.
#[derive(Debug)]
pub(super) struct Files {
    ring_id: RingIdFile,
    primaries: Option<PrimaryFile>,
    electorates: Option<PrimaryFile>,
}

impl Files {
    /// The files that the configuration of node `me` names; `None` if it names none.
    pub(super) fn open(config: &NodeConfig, me: NodeId) -> Result<Option<Self>, DriverError> {
        let Some(path) = config.ring_id_file(me) else {
            return Ok(None);
        };
        let ring_id = RingIdFile::open(path.clone(), me, on_damage(config.reset_ring_id));
        let ring_id = ring_id.map_err(DriverError::State)?;
        if ring_id.lost_a_slot() {
            warn_of_damage(&path);
        }
        let primaries = open_primaries(config, me, &ring_id).map_err(DriverError::State)?;
        let electorates = open_electorates(config, me).map_err(DriverError::State)?;
        Ok(Some(Self {
            ring_id,
            primaries,
            electorates,
        }))
    }

    pub(super) fn found(&self) -> Found {
        let primaries = self.primaries.as_ref();
        let electorates = self.electorates.as_ref().map(PrimaryFile::record);
        // A new file has none.
        let electorates = electorates.filter(|record| !record.is_empty());
        Found {
            ring_id: self.ring_id.value(),
            primaries: primaries.map(|file| Bytes::copy_from_slice(file.record())),
            electorates: electorates.map(Bytes::copy_from_slice),
        }
    }
}

fn open_primaries(
    config: &NodeConfig,
    me: NodeId,
    ring_id: &RingIdFile,
) -> Result<Option<PrimaryFile>, OpenError> {
    let Some(path) = config.primary_file(me) else {
        return Ok(None);
    };
    let opening = Opening {
        first: &config.first_primary_record(me),
        // A node without its record must not begin as one that never had any.
        lived_before: ring_id.value().is_some(),
        on_damage: on_damage(config.reset_primary.is_some()),
    };
    open_record(path, me, opening).map(Some)
}

fn open_record(path: PathBuf, me: NodeId, opening: Opening<'_>) -> Result<PrimaryFile, OpenError> {
    let file = PrimaryFile::open(path.clone(), me, opening)?;
    if file.lost_a_copy() {
        warn_of_damage(&path);
    }
    Ok(file)
}

fn open_electorates(config: &NodeConfig, me: NodeId) -> Result<Option<PrimaryFile>, OpenError> {
    let Some(path) = config.electorate_file(me) else {
        return Ok(None);
    };
    let opening = Opening {
        first: &[],
        // Earlier versions kept none.
        lived_before: false,
        on_damage: on_damage(config.reset_primary.is_some()),
    };
    let mut file = open_record(path.clone(), me, opening)?;
    let is_over = config.reset_primary == Some(ResetPrimary::First);
    if is_over && let Err(error) = file.store(&[]) {
        let problem = std::io::Error::other(error.to_string());
        return Err(OpenError::Io {
            path,
            doing: "reset it",
            error: problem,
        });
    }
    Ok(Some(file))
}

const fn on_damage(reset: bool) -> OnDamage {
    if reset {
        OnDamage::Reset
    } else {
        OnDamage::Refuse
    }
}

fn warn_of_damage(path: &Path) {
    tracing::warn!(
        path = %path.display(),
        "one of the two copies in this file was damaged, and the other is used: look at the disk"
    );
}

impl Store for Files {
    fn store(&mut self, record: &Record) -> Result<(), PersistError> {
        let file = match record {
            Record::RingId(_) => None,
            Record::Primaries(_) => self.primaries.as_mut(),
            Record::Electorates(_) => self.electorates.as_mut(),
        };
        let stored = match (record, file) {
            (Record::RingId(number), _) => self.ring_id.store(*number),
            (Record::Primaries(bytes) | Record::Electorates(bytes), Some(file)) => {
                file.store(bytes)
            }
            (Record::Primaries(_) | Record::Electorates(_), None) => {
                let error = "this node has no file for primaries".to_owned();
                return Err(PersistError::Io(error));
            }
        };
        stored.map_err(|error| match error {
            StoreError::NoSpace(_) => PersistError::NoSpace,
            StoreError::Io(_) | StoreError::TooLong(_) | StoreError::Failed => {
                PersistError::Io(error.to_string())
            }
        })
    }
}
