//! The priority of threads.

use std::time::Duration;

use rustix::process::nice;

/// The part of a processor that a thread gets beside a thread of the default niceness.
///
/// A smaller part delays other threads less: on Linux, a thread that has used more than its part does not interrupt another one when it wakes,
/// but waits until the other one has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// About a quarter, for work with a deadline.
    Quarter,
    /// About a tenth, for work that must only make progress. At the lowest priority it would get a sixtieth.
    Tenth,
}

impl Part {
    const fn niceness(self) -> i32 {
        match self {
            Self::Quarter => 5,
            Self::Tenth => 10,
        }
    }
}

/// Lowers the priority of this thread permanently, so that it gets this part of a processor. Has no effect if the system refuses.
///
/// On Linux 6.12 and later, the scheduler slice also becomes longer, so that a thread with a shorter one interrupts this thread when it
/// wakes. Otherwise it may wait for the next tick of the scheduler, about 4 ms.
pub fn give_way(part: Part) {
    const SLICE: Duration = Duration::from_millis(50);
    // On Linux this affects the calling thread only.
    if let Ok(niceness) = nice(part.niceness()) {
        #[cfg(target_os = "linux")]
        linux::set_policy(linux::Policy::Normal, niceness, SLICE);
    }
}

/// Lets this thread permanently run only while a processor is idle, as far as the system allows: every other thread interrupts it at once. If
/// all processors are busy it makes hardly any progress, so its work must be able to go on elsewhere. On systems other than Linux, this
/// is [`give_way`] with a tenth.
pub fn run_when_idle() {
    #[cfg(target_os = "linux")]
    linux::set_policy(linux::Policy::Idle, 0, Duration::ZERO);
    #[cfg(not(target_os = "linux"))]
    give_way(Part::Tenth);
}

#[cfg(target_os = "linux")]
mod linux {
    use super::Duration;

    /// `SCHED_…` of Linux.
    #[derive(Clone, Copy)]
    pub(super) enum Policy {
        Normal = 0,
        Idle = 5,
    }

    /// `struct sched_attr` of the kernel, in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        /// The slice in nanoseconds; 0: the scheduler's default. Kernels before 6.12 ignore it.
        runtime: u64,
        deadline: u64,
        period: u64,
    }

    /// Sets the scheduler policy, the niceness and the slice of this thread. A slice of zero is the scheduler's default. Has no effect if the
    /// system refuses.
    #[allow(unsafe_code, reason = "libc has no safe interface to sched_setattr")]
    pub(super) fn set_policy(policy: Policy, nice: i32, slice: Duration) {
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: policy as u32,
            nice,
            runtime: u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX),
            ..Attributes::default()
        };
        // SAFETY: the kernel reads `size` bytes from a pointer that is valid during the call. 0 is the calling thread.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn a_thread_that_gives_way_has_a_lower_priority_and_others_do_not() {
        let before = getpriority_process(None).unwrap();
        let given = std::thread::spawn(|| {
            give_way(Part::Quarter);
            getpriority_process(None).unwrap()
        });
        assert!(given.join().unwrap() > before);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_runs_when_idle_has_the_idle_policy_and_others_do_not() {
        // The policy is the 41st field; the second, the name, may have spaces.
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(')').unwrap();
            fields.split_whitespace().nth(38).unwrap().to_owned()
        };
        let idle = std::thread::spawn(move || {
            run_when_idle();
            policy()
        });
        assert_eq!((idle.join().unwrap(), policy()), ("5".into(), "0".into()));
    }
}
