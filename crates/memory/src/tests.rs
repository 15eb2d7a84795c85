use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::{Reader, Writer, receive, send};

const MEMORY: usize = 16 << 10;

/// Both sides, in one thread.
struct Pair {
    writer: Writer,
    reader: Reader,
    to: UnixStream,
    from: UnixStream,
    descriptor: OwnedFd,
}

fn pair() -> Pair {
    let (to, from) = UnixStream::pair().expect("a pair");
    to.set_nonblocking(true).expect("a socket");
    from.set_nonblocking(true).expect("a socket");
    let (writer, descriptor) = Writer::new(MEMORY).expect("memory");
    let reader = Reader::new(&descriptor, MEMORY).expect("the same memory");
    Pair {
        writer,
        reader,
        to,
        from,
        descriptor,
    }
}

impl Pair {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (one, other) = bytes.split_at(bytes.len() / 3);
        let pieces = [IoSlice::new(one), IoSlice::new(other)];
        self.writer.write(&mut self.to, &pieces)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let from = &mut self.from;
        self.reader.read(into, |into| match from.read(into) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        })
    }

    /// Replaces the reader's count of taken bytes.
    fn forge(&self, taken: u64) {
        super::region::Region::open(&self.descriptor, MEMORY)
            .expect("the same memory")
            .set_taken(taken);
    }
}

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9E37_79B9) >> 11) as u8
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

#[test]
fn a_stream_arrives_whole_whatever_the_pieces() {
    for seed in 1..=40 {
        let (mut pair, mut dice) = (pair(), Dice(seed));
        let total = 3_000_000;
        let stream: Vec<u8> = (0..total).map(byte).collect();
        let (mut written, mut read) = (0, 0);
        let mut into = vec![0; 70_000];
        while read < total {
            for _ in 0..dice.below(6) {
                let most = [100, 3000, 50_000][dice.below(3)];
                let end = total.min(written + 1 + dice.below(most));
                match pair.write(&stream[written..end]) {
                    Ok(bytes) => written += bytes,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            for _ in 0..dice.below(6) {
                let most = [10, 1000, 70_000][dice.below(3)];
                match pair.read(&mut into[..most]).expect("it reads") {
                    Some(bytes) => {
                        assert_eq!(into[..bytes], stream[read..read + bytes], "seed {seed}");
                        read += bytes;
                    }
                    None => assert_eq!(read, written, "seed {seed}"),
                }
            }
        }
        assert_eq!(read, total);
    }
}

#[test]
fn what_is_there_is_read_without_waiting_for_the_socket() {
    let mut pair = pair();
    assert_eq!(pair.write(&[7; 9000]).expect("there is room"), 9000);
    let mut into = [0; 4000];
    assert!(!pair.reader.has_more());
    assert_eq!(pair.read(&mut into).expect("it reads"), Some(4000));
    assert!(pair.reader.has_more());
    assert_eq!(pair.read(&mut into).expect("it reads"), Some(4000));
    assert_eq!(pair.read(&mut into).expect("it reads"), Some(1000));
    assert!(!pair.reader.has_more());
    assert_eq!(pair.read(&mut into).expect("it reads"), None);
}

#[test]
fn a_reader_that_does_not_read_is_found_by_the_socket() {
    let mut pair = pair();
    let mut written = 0;
    let error = loop {
        match pair.write(&[1; 30_000]) {
            Ok(bytes) => written += bytes,
            Err(error) => break error,
        }
        assert!(written < 10 << 20, "nothing holds it back");
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let (mut read, mut into) = (0, [0; 30_000]);
    while let Some(bytes) = pair.read(&mut into).expect("it reads") {
        read += bytes;
    }
    assert_eq!(read, written);
    assert_eq!(pair.write(&[1; 3000]).expect("there is room again"), 3000);
}

#[test]
fn the_end_of_the_stream_is_the_sockets() {
    let mut pair = pair();
    let _ = pair.write(&[1; 5000]).expect("there is room");
    pair.to
        .shutdown(std::net::Shutdown::Write)
        .expect("a socket");
    let mut into = [0; 9000];
    assert_eq!(pair.read(&mut into).expect("it reads"), Some(5000));
    assert_eq!(pair.read(&mut into).expect("it reads"), Some(0));
}

#[test]
fn an_end_within_a_record_is_an_error() {
    for bytes in [&[5_u8, 0, 0][..], &[5, 0, 0, 0, 255, 255, 255, 255, 1]] {
        let mut pair = pair();
        pair.to.write_all(bytes).expect("there is room");
        pair.to
            .shutdown(std::net::Shutdown::Write)
            .expect("a socket");
        let mut into = [0; 9000];
        let mut result = pair.read(&mut into);
        if matches!(result, Ok(Some(1))) {
            result = pair.read(&mut into);
        }
        let error = result.expect_err("it ends too early");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn what_arrived_before_an_error_is_read_before_it() {
    let cut_short = [5_u8, 0, 0, 0, 255, 255, 255, 255, 1];
    let impossible = [0; 8];
    for (tail, kind, part) in [
        (&cut_short[..], ErrorKind::UnexpectedEof, 1),
        (&impossible[..], ErrorKind::InvalidData, 0),
    ] {
        let mut pair = pair();
        assert_eq!(pair.write(&[7; 5000]).expect("there is room"), 5000);
        pair.to.write_all(tail).expect("there is room");
        pair.to
            .shutdown(std::net::Shutdown::Write)
            .expect("a socket");
        let mut into = [0; 9000];
        assert_eq!(pair.read(&mut into).expect("it reads"), Some(5000 + part));
        assert_eq!(into[..5000], [7; 5000]);
        // The socket does not become ready for these bytes.
        assert!(pair.reader.has_more());
        let error = pair.read(&mut into).expect_err("that was all");
        assert_eq!(error.kind(), kind);
    }
}

#[test]
fn records_that_cannot_be_are_refused() {
    let beyond = (MEMORY as u32 - 10).to_le_bytes();
    for (bytes, at) in [
        ([0; 4], [0; 4]),
        ([11, 0, 0, 0], beyond),
        ([255; 4], [1, 0, 0, 0]),
    ] {
        let mut pair = pair();
        pair.to.write_all(&bytes).expect("there is room");
        pair.to.write_all(&at).expect("there is room");
        let error = pair.read(&mut [0; 100]).expect_err("it cannot be");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}

#[test]
fn records_together_are_about_no_more_than_the_memory_has() {
    let record = |bytes: u32, at: u32| [bytes.to_le_bytes(), at.to_le_bytes()].concat();
    let half = MEMORY as u32 / 2;
    let mut pair = pair();
    let mut into = [0; 3 * MEMORY];
    // All of it, again and again: that can be when it was taken in between.
    for _ in 0..3 {
        let records = [record(half, 0), record(half, half)].concat();
        pair.to.write_all(&records).expect("there is room");
        assert_eq!(pair.read(&mut into).expect("it reads"), Some(MEMORY));
    }
    let records = [record(half, 0), record(half, half), record(1, 0)].concat();
    pair.to.write_all(&records).expect("there is room");
    assert_eq!(pair.read(&mut into).expect("it reads"), Some(MEMORY));
    let error = pair.read(&mut into).expect_err("it cannot be");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn a_reader_that_lies_is_found_out_and_gets_nothing_beyond_the_memory() {
    for taken in [9001, u64::MAX, u64::MAX - MEMORY as u64] {
        let mut pair = pair();
        let _ = pair.write(&[1; 9000]).expect("there is room");
        pair.forge(taken);
        let error = pair.write(&[1; 9000]).expect_err("it lies");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
    let mut pair = pair();
    for _ in 0..3 {
        let _ = pair.write(&[1; 9000]).expect("there is room");
    }
    // The reader takes its count back: more would wait than there is room for.
    let mut into = [0; 30_000];
    while pair.read(&mut into).expect("it reads").is_some() {}
    for _ in 0..3 {
        let _ = pair.write(&[1; 9000]).expect("there is room");
        while pair.read(&mut into).expect("it reads").is_some() {}
    }
    pair.forge(0);
    let error = pair.write(&[1; 9000]).expect_err("it lies");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn a_descriptor_arrives_with_its_bytes_and_ends_the_read() {
    let (to, from) = UnixStream::pair().expect("a pair");
    let (_, memory) = Writer::new(MEMORY).expect("memory");
    assert_eq!(send(&to, b"welcome", memory.as_fd()).expect("it sends"), 7);
    (&to).write_all(b"more").expect("it writes");
    let mut into = [0; 100];
    let (bytes, descriptor) = receive(&from, &mut into).expect("it receives");
    assert_eq!(&into[..bytes], b"welcome");
    let descriptor = descriptor.expect("it came with them");
    assert!(Reader::new(&descriptor, MEMORY).is_ok());
    assert!(Reader::new(&descriptor, MEMORY + 1).is_err());
    let (bytes, descriptor) = receive(&from, &mut into).expect("it receives");
    assert!((&into[..bytes], descriptor.is_none()) == (&b"more"[..], true));
}

#[test]
fn memory_that_could_shrink_is_not_taken() {
    let file = tempfile();
    rustix::fs::ftruncate(&file, 4096 + MEMORY as u64).expect("a file");
    let error = Reader::new(&file, MEMORY).expect_err("it is not sealed");
    assert!(
        matches!(
            error.kind(),
            ErrorKind::InvalidData | ErrorKind::InvalidInput
        ),
        "{error}"
    );
}

/// A memory file without seals.
fn tempfile() -> OwnedFd {
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    rustix::fs::memfd_create("other", flags).expect("memory")
}

/// Another process that still maps the memory keeps none of the pages that the writer has filled, and the reader takes
/// no zeros for bytes of the stream.
#[test]
fn the_memory_is_given_back_with_its_writer() {
    let Pair {
        mut writer,
        mut reader,
        mut to,
        mut from,
        descriptor,
    } = pair();
    let pages = |descriptor: &OwnedFd| rustix::fs::fstat(descriptor).expect("it is open").st_blocks;
    let bytes = [7; 8 << 10];
    let written = writer.write(&mut to, &[IoSlice::new(&bytes)]);
    assert_eq!(written.expect("there is room"), bytes.len());
    assert!(!writer.is_read());
    let mut read = |into: &mut [u8]| reader.read(into, |into| from.read(into).map(Some));
    let mut half = [0; 4 << 10];
    assert_eq!(read(&mut half).expect("there is some"), Some(half.len()));
    assert!(half.iter().all(|byte| *byte == 7));
    assert!(pages(&descriptor) >= 3 * 8, "the head and what was written");
    drop(writer);
    assert_eq!(pages(&descriptor), 0);
    let lost = read(&mut half).expect_err("it was not there any more");
    assert_eq!(lost.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_reader_that_has_taken_all_has_read_all() {
    let mut pair = pair();
    assert!(pair.writer.is_read());
    pair.write(&[1; 5000]).expect("there is room");
    assert!(!pair.writer.is_read());
    let mut into = [0; 5000];
    pair.read(&mut into).expect("there is some");
    assert!(pair.writer.is_read());
}
