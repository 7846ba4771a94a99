//! The memory that the process may have, and the shares of its parts.

use std::path::{Path, PathBuf};

/// Assumed where neither a limit nor the machine's memory is known, in bytes.
const UNKNOWN: u64 = 1 << 30;
/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Limits at or above this stand for "no limit" in version 1 of control groups, in bytes.
const NO_LIMIT: u64 = 1 << 60;

/// Part of the memory that a process may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The number of equal parts, of which this is one.
    parts: u64,
    /// The least size, in bytes.
    least: u64,
}

/// Memory of guests: a quarter, and at least what one call has by default.
pub const GUEST_MEMORY: Share = Share {
    parts: 4,
    least: 64 << 20,
};

impl Share {
    /// One of `parts`, and at least `least` bytes.
    #[must_use]
    pub const fn new(parts: u64, least: u64) -> Self {
        Self { parts, least }
    }

    /// The share of this many bytes, in bytes.
    #[must_use]
    pub fn of(self, bytes: u64) -> u64 {
        (bytes / self.parts.max(1)).max(self.least)
    }
}

/// The memory that this process may have, in bytes: the smallest limit of its control group and of those above it, or the
/// memory of the machine where that is less. 1 GiB on a system that tells neither.
#[must_use]
pub fn available_memory() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    available(&read)
}

/// As [`available_memory`], with the system's files as `read` gives them.
fn available(read: &impl Fn(&Path) -> Option<String>) -> u64 {
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limit = groups
        .lines()
        .filter_map(|group| limit_of(group, read))
        .min();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| machine_memory(&text));
    [limit, machine]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(UNKNOWN)
}

/// The smallest limit of a control group, as in `0::/pod/container` or `4:memory:/pod/container`, and of those above it.
fn limit_of(group: &str, read: &impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut parts = group.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (mount, file) = if controllers.is_empty() {
        (PathBuf::from(MOUNT), "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        (Path::new(MOUNT).join("memory"), "memory.limit_in_bytes")
    } else {
        return None;
    };
    // A container sees its own group at the mount, whatever the path says.
    let folders = Path::new(path.trim_start_matches('/')).ancestors();
    let limits = folders.filter_map(|folder| {
        let limit = read(&mount.join(folder).join(file))?;
        limit.trim().parse::<u64>().ok()
    });
    limits.filter(|limit| *limit < NO_LIMIT).min()
}

/// The total in `/proc/meminfo`, in bytes.
fn machine_memory(text: &str) -> Option<u64> {
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// The memory available on a system with these files, in MiB.
    fn mebibytes(files: &[(&str, &str)]) -> u64 {
        let read = |path: &Path| {
            let path = path.to_str().unwrap().trim_end_matches('/');
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_owned())
        };
        available(&read) >> 20
    }

    #[test]
    fn the_smallest_limit_counts() {
        let machine = (
            "/proc/meminfo",
            "MemTotal:       8388608 kB\nMemFree: 1 kB\n",
        );
        let v2 = ("/proc/self/cgroup", "0::/pod/app\n");
        let container = ("/proc/self/cgroup", "0::/\n");
        let v1 = (
            "/proc/self/cgroup",
            "5:cpu,cpuacct:/pod\n4:memory:/pod\n0::/\n",
        );
        let own = "/sys/fs/cgroup/pod/app/memory.max";
        let above = "/sys/fs/cgroup/pod/memory.max";
        let mount = "/sys/fs/cgroup/memory.max";
        let old = "/sys/fs/cgroup/memory/pod/memory.limit_in_bytes";
        let old_mount = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        let table: &[(&[(&str, &str)], u64)] = &[
            (&[], 1024),
            (&[machine], 8192),
            (&[machine, v2], 8192),
            (&[machine, v2, (own, "1073741824\n")], 1024),
            (&[machine, v2, (own, "max\n")], 8192),
            (&[machine, v2, (own, "max\n"), (above, "536870912\n")], 512),
            (
                &[machine, v2, (own, "268435456\n"), (above, "536870912\n")],
                256,
            ),
            (&[machine, v2, (own, "99999999999999\n")], 8192),
            // The group's path is that of the node, and only the container's own group is mounted.
            (&[machine, v2, (mount, "1073741824\n")], 1024),
            (&[machine, container, (mount, "1073741824\n")], 1024),
            (&[machine, v1, (old, "1073741824\n")], 1024),
            (&[machine, v1, (old_mount, "1073741824\n")], 1024),
            (&[machine, v1, (old, "9223372036854771712\n")], 8192),
            (&[v1, (old, "9223372036854771712\n")], 1024),
            (&[machine, ("/proc/self/cgroup", "nonsense\n")], 8192),
            (&[("/proc/meminfo", "MemTotal: much\n")], 1024),
        ];
        for (files, expected) in table {
            assert_eq!(mebibytes(files), *expected, "{files:?}");
        }
    }

    #[test]
    fn a_share_has_a_least_size() {
        assert_eq!(GUEST_MEMORY.of(2 * GIB), GIB / 2);
        assert_eq!(GUEST_MEMORY.of(GIB / 8), 64 << 20);
    }
}
