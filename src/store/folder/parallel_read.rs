//! Large files are read on all cores. Most of the time goes to the pages that they are read to, which the kernel clears first.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use rayon::{
    iter::{IndexedParallelIterator, ParallelIterator},
    slice::ParallelSliceMut,
};

use super::files;

/// The size of what one thread reads at a time.
const PIECE: usize = 1 << 22;
/// Memory for longer files is allocated as they are read: the length of a damaged one can be anything.
const MOST_BYTES: u64 = 1 << 32;

/// Reads a whole file of the store that nobody writes to.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = files::open(path, File::options().read(true))?;
    let length = file.metadata()?.len();
    if length <= PIECE as u64 || length > MOST_BYTES {
        return files::read(path);
    }
    read_part(&file, 0, length)
}

/// Reads a part of a file that has at least so many bytes after the offset.
pub(super) fn read_part(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    // The system gives memory of zeros, so nothing is written before the content is.
    let mut bytes: Vec<u8> = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    let pieces = bytes.par_chunks_mut(PIECE).enumerate();
    pieces.try_for_each(|(at, piece)| file.read_exact_at(piece, offset + (at * PIECE) as u64))?;
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_of_any_length_is_read_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base");
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7] {
            let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            fs::write(&path, &content).unwrap();
            assert!(read(&path).unwrap() == content, "{length} bytes");
            let file = File::open(&path).unwrap();
            let part = read_part(&file, length as u64 / 3, length as u64 / 2).unwrap();
            assert!(Some(part.as_slice()) == content.get(length / 3..length / 3 + length / 2), "{length} bytes");
        }
    }
}
