//! The scheduling of threads.

use std::io;

/// The shortest slice that the kernel gives.
const SLICE_NANOS: u64 = 100_000;

/// Asks for short time slices for the calling thread: when something comes for it, it then waits less
/// behind others that compute, and gets no more of the processor than before. Linux does so since 6.12,
/// and takes no notice before; it takes no rights. A thread with a policy of its own is left alone, and so
/// is one that the kernel will not change.
pub fn ask_for_short_slices() {
    let Ok(mut attributes) = attributes() else {
        return;
    };
    if attributes.sched_policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.sched_flags = 0;
    attributes.sched_runtime = SLICE_NANOS;
    change(&attributes);
}

/// Asks for the calling thread not to interrupt a thread that computes when something comes for it (`SCHED_BATCH`): it
/// then finds more at once. Where a processor is idle it starts as soon as before. A thread with a policy of its own is
/// left alone.
pub fn ask_not_to_interrupt() {
    let Ok(mut attributes) = attributes() else {
        return;
    };
    if attributes.sched_policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.sched_policy = libc::SCHED_BATCH.cast_unsigned();
    attributes.sched_flags = 0;
    // The thread waits for those that compute anyway, whatever slices it has inherited.
    attributes.sched_runtime = 0;
    change(&attributes);
}

/// Changes the scheduling of the calling thread, unless the kernel will not.
fn change(attributes: &libc::sched_attr) {
    let (me, flags): (libc::pid_t, libc::c_uint) = (0, 0);
    let to = std::ptr::from_ref(attributes);
    // SAFETY: `attributes` lives until the end of the call and says its size; the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_sched_setattr, me, to, flags) };
}

/// The scheduling of the calling thread.
fn attributes() -> io::Result<libc::sched_attr> {
    // SAFETY: it consists of numbers, and all bits zero are one.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>() as libc::c_uint;
    let (me, flags): (libc::pid_t, libc::c_uint) = (0, 0);
    attributes.size = size;
    let to = &raw mut attributes;
    // SAFETY: `attributes` lives until the end of the call and has `size` bytes.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, me, to, size, flags) };
    if result == 0 {
        Ok(attributes)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that gives slices says how long they are.
    #[test]
    fn slices_are_short_and_nothing_else_changes() {
        let asked = std::thread::spawn(|| {
            let before = attributes().expect("how this thread is scheduled");
            ask_for_short_slices();
            (before, attributes().expect("how this thread is scheduled"))
        });
        let (before, after) = asked.join().expect("a thread that ends");
        let expected = if before.sched_runtime == 0 {
            0
        } else {
            SLICE_NANOS
        };
        assert_eq!(after.sched_runtime, expected);
        assert_eq!(after.sched_policy, before.sched_policy);
        assert_eq!(after.sched_nice, before.sched_nice);
    }

    #[test]
    fn who_is_not_to_interrupt_says_so_and_keeps_its_share() {
        let asked = std::thread::spawn(|| {
            let before = attributes().expect("how this thread is scheduled");
            ask_for_short_slices();
            ask_not_to_interrupt();
            let after = attributes().expect("how this thread is scheduled");
            // A thread with another policy keeps it.
            ask_for_short_slices();
            let kept = attributes().expect("how this thread is scheduled");
            (before, after, kept)
        });
        let (before, after, kept) = asked.join().expect("a thread that ends");
        for now in [after, kept] {
            assert_eq!(now.sched_policy, libc::SCHED_BATCH.cast_unsigned());
            assert_eq!(now.sched_nice, before.sched_nice);
            assert_eq!(now.sched_runtime, before.sched_runtime);
        }
    }
}
