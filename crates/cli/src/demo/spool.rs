//! Takes the input in, once, and looks at what it is.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use super::DemoError;
use super::source::generate;
use super::tally::{Census, LineCensus, Longest};

/// A copy of the input that cannot change while the nodes read it. It has no name: whatever ends this process, nothing of it is left.
#[derive(Debug)]
pub struct Spool {
    /// The copy.
    pub file: File,
    /// The census of its lines.
    pub census: Census,
    /// The longest of them.
    pub longest: Longest,
}

/// The path at which other processes of this user open the copy, as long as this one has it.
pub fn path(file: &File) -> PathBuf {
    PathBuf::from(format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        file.as_raw_fd()
    ))
}

/// Copies `input` (`-`: standard input) to a temporary file.
pub fn spool(input: &Path) -> Result<Spool, DemoError> {
    let wrong = |error: io::Error| {
        DemoError::Usage(format!(
            "cannot read the input {}: {error}",
            input.display()
        ))
    };
    let mut from: Box<dyn Read> = if input == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(input).map_err(wrong)?)
    };
    let no_room = |error: io::Error| {
        DemoError::Failed(format!(
            "cannot write a temporary copy of the input: {error}"
        ))
    };
    let mut file = tempfile::tempfile().map_err(no_room)?;
    let mut lines = LineCensus::default();
    let mut buffer = vec![0; 256 << 10];
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(wrong)?,
        };
        if read == 0 {
            break;
        }
        lines.feed(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(no_room)?;
    }
    let (census, longest) = lines.finish();
    Ok(Spool {
        file,
        census,
        longest,
    })
}

/// The census of the generated messages.
pub fn generated(messages: u64, size: usize) -> Census {
    let mut census = Census::default();
    let mut message = Vec::new();
    for index in 0..messages {
        generate(index, messages, size, &mut message);
        census.add(&message);
    }
    census
}
