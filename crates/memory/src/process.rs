//! The number of this process, for those who ask for it all the time.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of the page; where pages are larger the kernel takes a whole one.
const PAGE_BYTES: usize = 4096;

/// What is kept: [`NOTHING`], or a number on a page that is never given back. Null until somebody asks.
static KEPT: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Where no page can be had that a child has empty, nothing is kept.
static NOTHING: AtomicU32 = AtomicU32::new(0);

/// The number of this process, as [`std::process::id`] tells it, in a child too. That is a system call each time; this is one
/// when a process asks first. The number is kept on a page that the kernel empties in each child (madvise(2),
/// `MADV_WIPEONFORK`). Kernels before 4.14 do not, and there it is a system call each time.
pub fn process_id() -> u32 {
    let kept = kept();
    match kept.load(Ordering::Relaxed) {
        0 => {
            let id = process::id();
            if !ptr::eq(kept, &NOTHING) {
                kept.store(id, Ordering::Relaxed);
            }
            id
        }
        id => id,
    }
}

fn kept() -> &'static AtomicU32 {
    // SAFETY: it is null, or the address of a static, or of a mapping that stays: see `first`.
    let kept = unsafe { KEPT.load(Ordering::Acquire).as_ref() };
    kept.unwrap_or_else(first)
}

/// A page for the number, if there is none yet. No lock: a child of a process in which another thread is here waits for
/// nobody.
#[cold]
fn first() -> &'static AtomicU32 {
    let page = page().unwrap_or(&NOTHING);
    let place = ptr::from_ref(page).cast_mut();
    let kept = KEPT.compare_exchange(ptr::null_mut(), place, Ordering::AcqRel, Ordering::Acquire);
    match kept {
        Ok(_) => page,
        // Another thread was faster. The page of this one stays behind, which happens once.
        //
        // SAFETY: as in `kept`, and not null.
        Err(other) => unsafe { other.as_ref() }.unwrap_or(&NOTHING),
    }
}

/// A page that a child of this process has empty.
fn page() -> Option<&'static AtomicU32> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping where the kernel likes it, which nothing else refers to.
    let start =
        unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, protection, MapFlags::PRIVATE) };
    let start = start.ok()?;
    // SAFETY: the whole mapping, which Rust has no reference into yet.
    let wiped = unsafe { madvise(start, PAGE_BYTES, Advice::LinuxWipeOnFork) };
    if wiped.is_err() {
        // SAFETY: the same, and nothing uses it any more. Of a failure nothing follows.
        let _ = unsafe { munmap(start, PAGE_BYTES) };
        return None;
    }
    // SAFETY: the mapping is aligned to a page, is zero, which is a number, and stays as long as the process.
    unsafe { start.cast::<AtomicU32>().as_ref() }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_has_a_number_of_its_own() {
        let parent = process_id();
        assert_eq!(parent, process::id());
        assert_eq!(process_id(), parent, "kept");
        let mut command = Command::new("true");
        let in_child = move || {
            let is_own = process_id() == process::id() && process_id() != parent;
            is_own
                .then_some(())
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        // SAFETY: what runs between fork(2) and exec(2) makes two system calls, and takes no lock and no memory.
        unsafe { command.pre_exec(in_child) };
        let ended = command
            .status()
            .expect("the child's own number is told there");
        assert!(ended.success(), "{ended}");
        assert_eq!(process_id(), parent, "the parent's stays");
    }

    #[test]
    fn a_page_is_empty_in_a_child_and_the_parent_keeps_it() {
        let page = page().expect("a kernel of this century");
        page.store(7, Ordering::Relaxed);
        let mut command = Command::new("true");
        let in_child = move || match page.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        };
        // SAFETY: as above, without any system call.
        unsafe { command.pre_exec(in_child) };
        let ended = command.status().expect("it is empty there");
        assert!(ended.success(), "{ended}");
        assert_eq!(page.load(Ordering::Relaxed), 7);
    }
}
