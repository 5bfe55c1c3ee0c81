//! Programs that this process runs: each in a process group of its own, which ends with this process, however that ends.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Ends the process group when standard input ends. What follows has nothing to read.
const GUARD: &str = "exec 3<&0 </dev/null; { read -r _ <&3; kill -s KILL 0; } >/dev/null 2>&1 & exec 3<&-; ";

/// A shell that runs a script, with all processes that it starts, which end with this value.
pub(crate) struct Subprocess {
    /// The shell. Its standard input stays open.
    pub child: Child,
    is_over: bool,
}

impl Subprocess {
    /// The command of a script, whose arguments are to be added. The signals of a terminal do not reach it.
    pub(crate) fn shell(script: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!("{GUARD}{script}")).arg("sh");
        shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        shell
    }

    /// Starts a command of [`Subprocess::shell`].
    pub(crate) fn start(mut shell: Command) -> io::Result<Self> {
        Ok(Self { child: shell.spawn()?, is_over: false })
    }

    /// Whether the shell has ended. Until [`Subprocess::end`], no other process gets its number.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.child)), options)?.is_some())
    }

    /// Ends what is still running, and returns how the shell ended.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        if !self.is_over {
            self.is_over = true;
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        self.child.wait()
    }
}

impl Drop for Subprocess {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
