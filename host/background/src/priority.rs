//! The priority of threads.

use rustix::process::nice;

/// The niceness of background threads. Beside a thread of the default niceness they get about a quarter of a processor, so they make progress
/// on a busy machine. At the lowest priority, 19, they would get a sixtieth.
const NICENESS: i32 = 5;

/// Lowers the priority of this thread permanently. Has no effect if the system refuses.
pub fn give_way() {
    // On Linux this affects the calling thread only.
    let _ = nice(NICENESS);
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn a_thread_that_gives_way_has_a_lower_priority_and_others_do_not() {
        let before = getpriority_process(None).unwrap();
        let given = std::thread::spawn(|| {
            give_way();
            getpriority_process(None).unwrap()
        });
        assert!(given.join().unwrap() > before);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
