//! What a server takes of the machine's memory.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::program::Folder;

#[test]
fn a_server_uses_no_huge_pages() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let status = fs::read_to_string(format!("/proc/{}/status", serve.pid())).unwrap();
    // Kernels before 5.0 do not tell.
    let told = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
    assert!(told.is_none_or(|enabled| enabled.trim() == "0"), "{status}");
    assert_eq!(serve.stop().code, 0);
}
