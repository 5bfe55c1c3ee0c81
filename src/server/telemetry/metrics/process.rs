//! The process as Linux describes it, with the names that Prometheus clients have in common.

use std::{fs, sync::OnceLock};

use super::exposition::Exposition;
use crate::store::clock;

static STARTED: OnceLock<i64> = OnceLock::new();

/// Records the start of the process.
pub(super) fn start() {
    STARTED.get_or_init(|| clock::now().as_second());
}

/// Writes the metrics of the process; where there is no `/proc`, only its start.
pub(super) fn write(page: &mut Exposition) {
    if let Some(started) = STARTED.get() {
        page.value("process_start_time_seconds", "Start of the server in Unix time.", *started as f64);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    // The listing itself needs a descriptor.
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1) as f64);
    for (name, help, value) in [
        ("process_resident_memory_bytes", "Resident memory.", kibibytes(&status, "VmRSS:")),
        ("process_virtual_memory_bytes", "Virtual memory.", kibibytes(&status, "VmSize:")),
        ("process_open_fds", "Open file descriptors.", open),
        ("process_max_fds", "Limit of open file descriptors.", limit(&limits, "Max open files")),
    ] {
        if let Some(value) = value {
            page.value(name, help, value);
        }
    }
}

/// A field of `/proc/self/status` in bytes.
fn kibibytes(status: &str, field: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((kibibytes * 1024) as f64)
}

/// The soft limit of `/proc/self/limits`; none if there is no limit.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let values = limits.lines().find_map(|line| line.strip_prefix(name))?;
    values.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_linux_are_read() {
        assert_eq!(kibibytes("Name:\tx\nVmRSS:\t    1234 kB\n", "VmRSS:"), Some(1_263_616.0));
        assert_eq!(kibibytes("Name:\tx\n", "VmRSS:"), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024        524288   files\n";
        assert_eq!(limit(limits, "Max open files"), Some(1024.0));
        assert_eq!(limit("Max open files  unlimited  unlimited  files\n", "Max open files"), None);
    }
}
