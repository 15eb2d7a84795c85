//! `rota key`: makes and changes the key files of a cluster.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_net::{KeyError, KeyRing};
use serde::Serialize;

use crate::say::{complain, print, print_json};

#[derive(Clone, Debug, clap::Subcommand)]
pub enum Key {
    /// Make a file with one new key; never writes over a file
    New(FileArgs),
    /// Add a new key, which is accepted and not sent with
    Add(FileArgs),
    /// Send with this key
    Use(IdArgs),
    /// Take a key out, which is then not accepted any more
    Remove(IdArgs),
    /// Say which keys there are, without the keys
    Show(ShowArgs),
}

#[derive(Clone, Debug, clap::Args)]
pub struct FileArgs {
    /// The key file
    file: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ShowArgs {
    /// The key file
    file: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The numbers of keys, for programs.
#[derive(Debug, Serialize)]
struct Shown {
    sends: u16,
    takes: Vec<u16>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct IdArgs {
    /// The key file
    file: PathBuf,
    /// The id of the key
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    id: u16,
}

/// Does what was asked for, and says how the file is then.
pub fn main(key: &Key) -> ExitCode {
    let (file, done) = match key {
        Key::New(FileArgs { file }) => (file, new(file)),
        Key::Add(FileArgs { file }) => (file, change(file, |ring| ring.add().map(drop))),
        Key::Use(IdArgs { file, id }) => (file, change(file, |ring| ring.send_with(*id))),
        Key::Remove(IdArgs { file, id }) => (file, change(file, |ring| ring.remove(*id))),
        Key::Show(ShowArgs { file, .. }) => (file, KeyRing::load_of_anybody(file)),
    };
    match done {
        Ok(ring) if matches!(key, Key::Show(ShowArgs { json: true, .. })) => {
            print_json(&Shown {
                sends: ring.sending().get(),
                takes: ring.ids().map(|id| id.get()).collect(),
            });
            ExitCode::SUCCESS
        }
        Ok(ring) => {
            print(&format!("{}: {}", file.display(), describe(&ring)));
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&format!("{}: {error}", file.display()));
            ExitCode::from(2)
        }
    }
}

fn new(file: &Path) -> Result<KeyRing, KeyError> {
    let ring = KeyRing::generate()?;
    ring.create(file)?;
    Ok(ring)
}

fn change(
    file: &Path,
    change: impl FnOnce(&mut KeyRing) -> Result<(), KeyError>,
) -> Result<KeyRing, KeyError> {
    let mut ring = KeyRing::load_of_anybody(file)?;
    change(&mut ring)?;
    ring.replace(file)?;
    Ok(ring)
}

/// The numbers of the keys of a key file that are used, without the keys.
pub fn describe(ring: &KeyRing) -> impl Display + use<> {
    let ids: Vec<String> = ring.ids().map(|id| id.to_string()).collect();
    format!(
        "sends with key {}, takes {}",
        ring.sending(),
        ids.join(", ")
    )
}
