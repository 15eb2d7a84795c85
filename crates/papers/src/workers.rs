//! Work on several threads, whose results do not depend on them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What becomes of each item, in the order of the items.
pub fn each<T: Sync, R: Send>(jobs: usize, items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let one = make(item);
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push((at, one));
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn results_are_in_the_order_of_the_items_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
        for jobs in [0, 1, 2, 7] {
            let made = each(jobs, &items, |item| {
                // The first ones take longest.
                std::thread::sleep(std::time::Duration::from_micros((100 - item) * 3));
                item * item
            });
            assert_eq!(made, squares);
        }
    }
}
