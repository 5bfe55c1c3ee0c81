//! Standard output. Everything on it goes through this file.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::fs::FileType;

use crate::cli::prelude::*;
use crate::plan::format::text::Paint;

/// Writes data to standard output, as the end of a command. A closed pipe is not an error: its reader is done (D31).
pub(crate) fn print(data: impl AsRef<[u8]>) -> CommandResult {
    unless_closed(write(data.as_ref())).map(|()| Exit::Done)
}

/// A value as JSON on one line.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&json::bytes(value, Secrets::Masked)?).into_owned() + "\n")
}

/// Writes data that must arrive, such as a token: a closed pipe is an error too.
pub(crate) fn print_all(data: impl AsRef<[u8]>) -> Result<(), Failure> {
    check_not_discarded()?;
    write(data.as_ref()).map_err(|error| unwritable(&error))
}

/// Fails if nobody would ever see what is written to standard output. One that was closed is the null device by now.
pub(crate) fn check_not_discarded() -> Result<(), Failure> {
    let null = rustix::fs::stat("/dev/null").map(|null| null.st_rdev);
    let stdout = rustix::fs::fstat(io::stdout()).map(|stdout| stdout.st_rdev);
    match (null, stdout) {
        (Ok(null), Ok(stdout)) if null == stdout => Err(unwritable(&io::Error::other("it is closed or discarded"))),
        _ => Ok(()),
    }
}

/// Converts a write error on standard output into a failure, unless it is a closed pipe.
pub(crate) fn unless_closed(written: io::Result<()>) -> Result<(), Failure> {
    is_read(written).map(drop)
}

/// Whether the reader of standard output is still there. Any other write error is a failure.
fn is_read(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritable(&error)),
        Ok(()) => Ok(true),
    }
}

/// Flushes standard output; at exit, a write error would go unnoticed.
pub(crate) fn flush() -> io::Result<()> {
    io::stdout().flush()
}

/// Whether standard output is a file that other users can read.
pub(crate) fn is_readable_by_others() -> bool {
    let is_open = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile && mode & 0o044 != 0;
    rustix::fs::fstat(io::stdout()).is_ok_and(|facts| is_open(facts.st_mode))
}

/// Writes data at once.
pub(super) fn write(data: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(data)?;
    stdout.flush()
}

/// Writes text with colours, which are stripped if stdout is not a terminal.
pub(crate) fn print_coloured(text: &str) -> Result<(), Failure> {
    append(text).map(drop)
}

/// Writes the next text of an output without an end. Returns whether its reader is still there.
pub(crate) fn append(text: &str) -> Result<bool, Failure> {
    is_read(match paint() {
        Paint::Coloured => write(text.as_bytes()),
        Paint::Plain => write(anstream::adapter::strip_str(text).to_string().as_bytes()),
    })
}

/// Writes text in place of what a terminal shows. Returns whether the terminal is still there.
pub(crate) fn redraw(text: &str) -> Result<bool, Failure> {
    const CLEAR: &[u8] = b"\x1b[H\x1b[2J";
    write(CLEAR).map_err(|error| unwritable(&error))?;
    append(text)
}

pub(crate) fn is_on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The width of the terminal that standard output is; none for a pipe or a file.
pub(super) fn terminal_width() -> Option<usize> {
    width_of(io::stdout())
}

/// The width of a terminal; none for a pipe or a file.
pub(super) fn width_of(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Whether stdout shows colours.
pub(super) fn paint() -> Paint {
    match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => Paint::Plain,
        _ => Paint::Coloured,
    }
}

fn unwritable(error: &io::Error) -> Failure {
    Diagnostic::error(Code::Unreadable, format!("cannot write to standard output: {error}"))
        .help("check the destination of standard output, such as its free disk space")
        .into()
}
