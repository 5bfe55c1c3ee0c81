//! The text of the configuration file. A pull request can put anything in the place of a file that is found in the working
//! folder, such as a link to a file of the machine (D43).

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use crate::cli::prelude::*;
use crate::files::{if_exists, open_regular};

const MOST_BYTES: u64 = 1 << 20;

/// Reads a file that somebody named. It can also be a pipe, a link or the null device.
pub(super) fn read_named(path: &Path) -> Result<String, Fault> {
    let help = "set EDGEWRIGHT_CONFIG to the path of a configuration file, or unset it";
    read_text(File::open(path).map_err(|error| unreadable(&error).help(help))?)
}

/// Reads a file that is found in the working folder if it exists. It must be a regular file.
pub(super) fn read_found(path: &Path) -> Result<Option<String>, Fault> {
    match if_exists(open_regular(path, File::options().read(true))) {
        Ok(file) => file.map(read_text).transpose(),
        Err(error) if error.kind() == ErrorKind::Other => {
            let fault = Fault::new(Code::Unreadable, "the file must be a regular file, not a link");
            Err(fault.help("replace it with a file, or name the file in EDGEWRIGHT_CONFIG"))
        }
        Err(error) => Err(unreadable(&error)),
    }
}

fn read_text(file: File) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Fault::new(Code::TooLarge, "the file is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| Fault::new(Code::NotUtf8, "invalid UTF-8").help("save the file as UTF-8"))
}

fn unreadable(error: &io::Error) -> Fault {
    Fault::new(Code::Unreadable, error.to_string())
}
