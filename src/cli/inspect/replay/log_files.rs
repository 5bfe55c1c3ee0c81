//! Logs in pieces of whole lines, decompressed on the way. A piece of constant size at a time is in memory.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::process::ChildStdout;

use crate::cli::prelude::*;
use crate::files::gzip::{self, GzipReader};
use crate::manifest::tree::similar_path;
use crate::subprocess::Subprocess;
use crate::syntax::access_log::{AccessLogFormat, LONGEST_LINE};

const STDIN: &str = "-";
const CHUNK_BYTES: u64 = 1 << 20;
/// The first bytes of data that zstd has compressed.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How often to check whether a program has ended that has closed its output.
const PAUSE: Duration = Duration::from_millis(2);

/// Whole lines of a log.
pub(super) struct LogChunk {
    pub(super) file: usize,
    pub(super) format: AccessLogFormat,
    pub(super) first_line: u64,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct AccessLogReader<'p> {
    path: &'p Path,
    file: usize,
    format: Option<AccessLogFormat>,
    input: Box<dyn Read>,
    /// The beginning of the line that is next.
    rest: Vec<u8>,
    next_line: u64,
}

impl<'p> AccessLogReader<'p> {
    /// Opens a log. Without a format, it is recognized by the first readable line.
    pub(super) fn open(path: &'p Path, file: usize, format: Option<AccessLogFormat>) -> Result<Self, Failure> {
        let input = open(path).map_err(|error| unreadable(path, &error))?;
        Ok(Self { path, file, format, input, rest: Vec::new(), next_line: 1 })
    }

    /// The next lines; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<LogChunk>, Failure> {
        let Some(bytes) = self.whole_lines().map_err(|error| unreadable(self.path, &error))? else { return Ok(None) };
        let first_line = self.next_line;
        self.next_line += bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        let format = match self.format {
            Some(format) => format,
            None => {
                let mut lines = bytes.split(|byte| *byte == b'\n');
                let recognized = lines.find_map(|line| AccessLogFormat::recognize(line.trim_ascii_end()));
                *self.format.insert(recognized.ok_or_else(|| unknown_format(self.path))?)
            }
        };
        Ok(Some(LogChunk { file: self.file, format, first_line, bytes }))
    }

    /// The next whole lines. The last one of a log may lack its line break. A line that is too long is cut: nobody reads it.
    fn whole_lines(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let read = self.input.by_ref().take(CHUNK_BYTES).read_to_end(&mut bytes)?;
            let end = bytes.iter().rposition(|byte| *byte == b'\n');
            match end {
                Some(end) => {
                    self.rest = bytes.split_off(end + 1);
                    return Ok(Some(bytes));
                }
                None if read == 0 => return Ok(Some(bytes).filter(|bytes| !bytes.is_empty())),
                None => bytes.truncate(LONGEST_LINE + 1),
            }
        }
    }
}

/// Opens a file, and decompresses it if it is compressed.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let is_stdin = path.as_os_str() == STDIN;
    let mut input: Box<dyn Read> = if is_stdin { Box::new(io::stdin().lock()) } else { Box::new(File::open(path)?) };
    let mut head = Vec::new();
    input.by_ref().take(4).read_to_end(&mut head)?;
    if head == ZSTD_MAGIC && is_stdin {
        return Err(io::Error::other("it is compressed with zstd; use `zstd -dc FILE | edgewright replay -`"));
    }
    let input: Box<dyn Read> = if head == ZSTD_MAGIC {
        Box::new(ZstdProgram::start(path)?)
    } else if head.starts_with(&gzip::MAGIC) {
        Box::new(GzipReader::new(Cursor::new(head).chain(input)))
    } else {
        Box::new(Cursor::new(head).chain(input))
    };
    Ok(input)
}

/// The program `zstd`, which decompresses a file.
struct ZstdProgram {
    running: Subprocess,
    output: ChildStdout,
    is_over: bool,
}

impl ZstdProgram {
    fn start(path: &Path) -> io::Result<Self> {
        let mut shell = Subprocess::shell("exec zstd -dcq -- \"$1\"");
        // It needs no token and no key.
        shell.arg(path).env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let mut running = Subprocess::start(shell)?;
        let output = running.child.stdout.take().ok_or_else(|| io::Error::other("`zstd` has no output"))?;
        Ok(Self { running, output, is_over: false })
    }
}

impl Read for ZstdProgram {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.output.read(buffer)?;
        if read > 0 || buffer.is_empty() || self.is_over {
            return Ok(read);
        }
        self.is_over = true;
        while !self.running.has_ended()? {
            std::thread::sleep(PAUSE);
        }
        let status = self.running.end()?;
        let failed = || io::Error::other(format!("the program `zstd` failed ({status}); is it installed?"));
        if status.success() { Ok(0) } else { Err(failed()) }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot read the log `{}`: {error}", shown(path));
    let help = match similar_path(path) {
        Some(similar) => format!("did you mean `{}`?", shown(&similar)),
        None => "check the path and its permissions; `-` reads standard input".to_owned(),
    };
    Diagnostic::error(Code::Unreadable, message).help(help).into()
}

fn unknown_format(path: &Path) -> Failure {
    let names = AccessLogFormat::ALL.map(AccessLogFormat::as_str).join(", ");
    Diagnostic::error(Code::InvalidFormat, format!("the format of the log `{}` is not known", shown(path)))
        .help(format!("set --log-format to one of {names}; the lines that cannot be read are then counted"))
        .into()
}

/// A path as messages and reports show it.
pub(super) fn shown(path: &Path) -> String {
    if path.as_os_str() == STDIN { "stdin".to_owned() } else { escaped(&path.display().to_string()).into_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_whole_lines_with_their_numbers() {
        let line = "192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let long = "x".repeat(3 << 20);
        fs::write(&path, format!("{}{long}\n{line}end", line.repeat(40_000))).unwrap();
        let mut reader = AccessLogReader::open(&path, 3, None).unwrap();
        let (mut lines, mut lengths) = (0, Vec::new());
        while let Some(chunk) = reader.next().unwrap() {
            assert_eq!((chunk.file, chunk.format, chunk.first_line), (3, AccessLogFormat::Combined, lines + 1));
            assert!(chunk.bytes.len() <= 3 << 20, "{}", chunk.bytes.len());
            let own: Vec<usize> = chunk.bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
            lines += chunk.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            lengths.extend(own);
        }
        assert_eq!(lines, 40_002);
        assert!(lengths.iter().all(|length| *length < CHUNK_BYTES as usize + LONGEST_LINE + 2));
        assert_eq!(lengths.iter().filter(|length| **length > LONGEST_LINE).count(), 1);
        assert_eq!(lengths.last(), Some(&3), "the last line lacks its line break");
    }
}
