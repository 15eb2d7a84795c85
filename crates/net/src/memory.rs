//! How the process's memory is kept.

/// Buffers up to this size come from memory that is kept, in bytes: a few times the largest message of a link.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BUFFER: i32 = 4 << 20;
/// So much that is free at the end of it goes back to the system, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_FREE: i32 = 16 << 20;

/// Asks the allocator to keep what large buffers took, where it is the GNU C library's: by itself it may take each buffer of more than
/// 128 KiB from the system and give it back at once, and the kernel has to clear its pages each time. It is meant for programs
/// that do nothing else, as it holds for all that the process allocates.
pub fn keep_large_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (what, bytes) in [
        (libc::M_MMAP_THRESHOLD, KEPT_BUFFER),
        (libc::M_TRIM_THRESHOLD, KEPT_FREE),
    ] {
        // SAFETY: it takes two numbers; what it refuses stays as it was.
        unsafe {
            libc::mallopt(what, bytes);
        }
    }
}
