//! Threads that give way to others.

use rustix::process::nice;

/// The niceness of a thread that gives way. Beside a thread of the default niceness it gets about a quarter of a processor, so what it does
/// comes to an end on a busy machine too; at the lowest priority, 19, it would get a sixtieth.
const NICENESS: i32 = 5;

/// Makes this thread give way to other threads of the machine, for good. Where the system refuses, it runs as others do.
pub fn give_way() {
    // This changes this thread only.
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
