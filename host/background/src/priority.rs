//! The priority of threads.

use rustix::process::nice;

/// The niceness of background threads. Beside a thread of the default niceness they get about a quarter of a processor, so they make progress
/// on a busy machine. At the lowest priority, 19, they would get a sixtieth.
const NICENESS: i32 = 5;

/// Lowers the priority of this thread permanently. Has no effect if the system refuses.
pub fn give_way() {
    // On Linux this affects the calling thread only.
    if let Ok(niceness) = nice(NICENESS) {
        #[cfg(target_os = "linux")]
        lengthen_slice(niceness);
    }
}

/// Lengthens the scheduler slice of this thread, so that a thread with a shorter slice interrupts it when it wakes. Otherwise it may wait
/// for the next tick of the scheduler, about 4 ms. Requires Linux 6.12; older kernels ignore it.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "libc has no safe interface to sched_setattr")]
fn lengthen_slice(niceness: i32) {
    const KEEP_POLICY: u64 = 0x08;
    /// In nanoseconds. The scheduler's own is about 3 ms, its maximum is 100 ms.
    const SLICE: u64 = 50_000_000;
    /// `struct sched_attr` of the kernel, in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        flags: KEEP_POLICY,
        nice: niceness,
        runtime: SLICE,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads `size` bytes from a pointer that is valid during the call. 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
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
