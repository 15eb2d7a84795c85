//! A checkpoint on disk, and the commands behind it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// So many commands behind a checkpoint are enough for another.
const LONG: usize = 100;

/// A file `LENGTH`, so many bytes of a snapshot, and a line for each command behind it.
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
    commands: usize,
}

/// What a journal has.
pub struct Found {
    pub snapshot: String,
    pub commands: Vec<String>,
}

impl Journal {
    pub const fn at(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            commands: 0,
        }
    }

    /// Reads what there is; a last line that was cut off is none.
    pub fn read(&self) -> io::Result<Option<Found>> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let wrong = || io::Error::other("not a journal");
        let (length, rest) = text.split_once('\n').ok_or_else(wrong)?;
        let length: usize = length.parse().map_err(|_| wrong())?;
        let (snapshot, commands) = rest.split_at_checked(length).ok_or_else(wrong)?;
        let whole = commands.rfind('\n').map_or("", |end| &commands[..end]);
        Ok(Some(Found {
            snapshot: snapshot.to_owned(),
            commands: whole.lines().map(str::to_owned).collect(),
        }))
    }

    /// Begins anew with this snapshot: the old file stays until the new one is on disk.
    pub fn checkpoint(&mut self, snapshot: &str) -> io::Result<()> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let mut file = File::create(&new)?;
        write!(file, "{}\n{snapshot}", snapshot.len())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        self.commands = 0;
        Ok(())
    }

    /// Adds a command, in one write.
    pub fn append(&mut self, command: &str) {
        let Some(file) = &mut self.file else {
            return;
        };
        // A disk that takes nothing makes this copy ask the others when it starts again.
        if file.write_all(format!("{command}\n").as_bytes()).is_err() {
            self.file = None;
        }
        self.commands += 1;
    }

    pub const fn is_long(&self) -> bool {
        self.commands >= LONG
    }
}
