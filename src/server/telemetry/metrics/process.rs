//! The process as Linux describes it, with the names that Prometheus clients have in common.

use std::{fs, sync::OnceLock};

use rustix::process::{Resource, getrlimit};

use super::exposition::Exposition;
use crate::store::clock;

static STARTED: OnceLock<i64> = OnceLock::new();

/// Records the start of the process.
pub(super) fn start() {
    STARTED.get_or_init(|| clock::now().as_second());
}

/// Writes the metrics of the process; where there is no `/proc`, only its start and its limit.
pub(super) fn write(page: &mut Exposition) {
    if let Some(started) = STARTED.get() {
        page.value("process_start_time_seconds", "Start of the server in Unix time.", *started as f64);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = getrlimit(Resource::Nofile).current.map(|most| most as f64);
    // The listing itself needs a descriptor.
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1) as f64);
    for (name, help, value) in [
        ("process_resident_memory_bytes", "Resident memory.", kibibytes(&status, "VmRSS:")),
        ("process_virtual_memory_bytes", "Virtual memory.", kibibytes(&status, "VmSize:")),
        ("process_open_fds", "Open file descriptors.", open),
        ("process_max_fds", "Limit of open file descriptors.", most),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_linux_is_read() {
        assert_eq!(kibibytes("Name:\tx\nVmRSS:\t    1234 kB\n", "VmRSS:"), Some(1_263_616.0));
        assert_eq!(kibibytes("Name:\tx\n", "VmRSS:"), None);
    }
}
