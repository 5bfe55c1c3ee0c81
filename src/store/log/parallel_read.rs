//! Large batches are read on all cores. Most of the time goes to the pages that they are read to, which the kernel clears first.

use std::{fs::File, io, os::unix::fs::FileExt};

use rayon::{
    iter::{IndexedParallelIterator, ParallelIterator},
    slice::ParallelSliceMut,
};

/// The size of what one thread reads at a time.
const PIECE: usize = 1 << 22;
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
    fn a_part_of_any_length_is_read_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base");
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7] {
            let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            fs::write(&path, &content).unwrap();
            let file = File::open(&path).unwrap();
            let part = read_part(&file, length as u64 / 3, length as u64 / 2).unwrap();
            assert!(Some(part.as_slice()) == content.get(length / 3..length / 3 + length / 2), "{length} bytes");
        }
    }
}
