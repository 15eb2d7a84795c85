//! What the commands of services have in common.

pub mod connection;
pub mod figures;
pub mod info;
pub mod processes;
pub mod processor;
pub mod serve;
pub mod status;
pub mod talk;
pub mod trouble;
pub mod where_to;
pub mod who;

use rota_node::VoteStorage;

/// Where votes are kept, as it is written.
pub fn storage(text: &str) -> Result<VoteStorage, String> {
    match text {
        "sync" => Ok(VoteStorage::Sync),
        "async" => Ok(VoteStorage::Async),
        "memory" => Ok(VoteStorage::Memory),
        _ => Err("sync, async or memory".to_owned()),
    }
}
