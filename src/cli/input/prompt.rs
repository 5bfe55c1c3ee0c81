//! Questions on a terminal, and secrets that a person types or a pipe delivers.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::cli::prelude::*;

/// The most bytes of a secret.
const MOST_BYTES: usize = 4096;
/// Ctrl-C and Ctrl-D.
const CANCEL: [u8; 2] = [0x03, 0x04];
/// The bytes of the backspace key.
const ERASE: [u8; 2] = [0x08, 0x7f];

/// The most bytes of an answer that are read.
const MOST_ANSWERED: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmation {
    Expected,
    /// Another one, or none.
    Other,
    /// The question cannot be shown.
    Unseen,
    NoTerminal,
}

/// Asks a question on the terminal that only one answer affirms.
pub(crate) fn ask(question: &str, expected: &str) -> Confirmation {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !io::stderr().is_terminal() {
        return Confirmation::NoTerminal;
    }
    let mut stderr = anstream::stderr();
    // Who cannot see the question cannot answer it.
    if write!(stderr, "{question}").and_then(|()| stderr.flush()).is_err() {
        return Confirmation::Unseen;
    }
    if matches_answer(stdin.lock(), expected) { Confirmation::Expected } else { Confirmation::Other }
}

/// Whether the next line is the expected answer.
fn matches_answer(input: impl BufRead, expected: &str) -> bool {
    let mut line = String::new();
    let read = input.take(MOST_ANSWERED).read_line(&mut line);
    read.is_ok() && line.trim_end_matches(['\r', '\n']) == expected
}

/// Reads a secret from standard input. A terminal shows a prompt, and not what is typed.
pub(crate) fn secret(prompt: &str) -> Result<Secret, Failure> {
    let read = if io::stdin().is_terminal() { typed(prompt) } else { piped() };
    let bytes = read.map_err(|error| unread(&error.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unread("it is not UTF-8"))?.trim();
    if text.is_empty() { Err(unread("it is empty")) } else { Ok(Secret::new(text)) }
}

fn unread(reason: &str) -> Failure {
    Diagnostic::error(Code::Unreadable, format!("cannot read the token from standard input: {reason}"))
        .help("type the token, or redirect standard input from a file that contains only the token")
        .into()
}

fn piped() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES { Err(io::Error::other("it is too long")) } else { Ok(bytes) }
}

fn typed(prompt: &str) -> io::Result<Vec<u8>> {
    let mut stderr = io::stderr();
    write!(stderr, "{prompt}")?;
    stderr.flush()?;
    let quiet = QuietTerminal::start()?;
    let line = line(&mut io::stdin().lock());
    drop(quiet);
    // The line break was not shown either.
    writeln!(stderr)?;
    line
}

/// Reads a line, and obeys the keys that the terminal does not handle meanwhile.
fn line(from: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut typed = Vec::new();
    for byte in from.bytes() {
        match byte? {
            b'\n' | b'\r' => break,
            key if CANCEL.contains(&key) => return Err(io::Error::other("cancelled")),
            key if ERASE.contains(&key) => {
                let _ = typed.pop();
            }
            _ if typed.len() == MOST_BYTES => return Err(io::Error::other("it is too long")),
            other => typed.push(other),
        }
    }
    Ok(typed)
}

/// A terminal that does not show what is typed, until the value is dropped. Its signals are off: ended by Ctrl-C, the
/// process would leave it like that.
struct QuietTerminal {
    former: Termios,
}

impl QuietTerminal {
    fn start() -> io::Result<Self> {
        let former = tcgetattr(io::stdin())?;
        let mut quiet = former.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self { former })
    }
}

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.former);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_enter_and_obeys_backspace_and_cancel() {
        let typed = |keys: &str| line(&mut keys.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(typed("ew_1\nrest").unwrap(), "ew_1");
        assert_eq!(typed("ew_2\r").unwrap(), "ew_2");
        assert_eq!(typed("\u{7f}ew_4\u{8}3").unwrap(), "ew_3");
        assert_eq!(typed("no end").unwrap(), "no end");
        assert!(typed("ew_1\u{3}\n").is_err());
        assert!(typed(&"x".repeat(MOST_BYTES + 1)).is_err());
    }

    #[test]
    fn only_the_whole_answer_confirms() {
        for (typed, expected) in [
            ("shop\n", true),
            ("shop\r\n", true),
            ("shop", true),
            ("", false),
            ("\n", false),
            ("yes\n", false),
            ("shop \n", false),
            ("sho\np\n", false),
        ] {
            assert_eq!(matches_answer(typed.as_bytes(), "shop"), expected, "{typed:?}");
        }
    }
}
