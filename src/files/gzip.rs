//! Decompression of gzip (RFC 1952): one or more members, as rotation and `cat` make them.
//!
//! Memory stays the same whatever the size: a window of the decompressed data, and a piece of the compressed data.

use std::io::{self, ErrorKind, Read};

use crc32fast::Hasher;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// The first bytes of a member.
pub(crate) const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The size of the pieces of compressed data.
const INPUT_BYTES: usize = 64 << 10;
/// The window: more than the 32 KiB that data can refer back, and a power of two.
const WINDOW_BYTES: usize = 64 << 10;
/// The flags of a header, for the fields that follow it.
const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// Reads the decompressed data of a reader.
pub(crate) struct GzipReader<R> {
    input: CompressedInput<R>,
    state: Box<DecompressorOxide>,
    window: Box<[u8]>,
    /// The part of the window that is decompressed and not yet read.
    ready: (usize, usize),
    /// Whether a member has begun and not ended.
    is_inside: bool,
    is_over: bool,
    /// The CRC-32 of the member so far.
    checksum: Hasher,
    /// The size of the member so far, modulo 2³² as in its end.
    size: u32,
}

impl<R: Read> GzipReader<R> {
    /// Decompresses a reader.
    pub(crate) fn new(input: R) -> Self {
        Self {
            input: CompressedInput { input, buffer: vec![0; INPUT_BYTES].into_boxed_slice(), unread: (0, 0) },
            state: Box::default(),
            window: vec![0; WINDOW_BYTES].into_boxed_slice(),
            ready: (0, 0),
            is_inside: false,
            is_over: false,
            checksum: Hasher::new(),
            size: 0,
        }
    }

    /// Decompresses the next piece, if there is one.
    fn advance(&mut self) -> io::Result<()> {
        if !self.is_inside {
            if !self.input.skip_header()? {
                self.is_over = true;
                return Ok(());
            }
            self.state.init();
            (self.is_inside, self.ready, self.size) = (true, (0, 0), 0);
        }
        let from = if self.ready.1 == self.window.len() { 0 } else { self.ready.1 };
        let compressed = self.input.fill()?;
        if compressed.is_empty() {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the compressed data is cut off"));
        }
        let flags = TINFL_FLAG_HAS_MORE_INPUT;
        let (status, read, written) = decompress(&mut self.state, compressed, &mut self.window, from, flags);
        self.input.consume(read);
        self.ready = (from, from + written);
        let piece = self.window.get(from..from + written).unwrap_or_default();
        self.checksum.update(piece);
        self.size = self.size.wrapping_add(u32::try_from(written).unwrap_or_default());
        match status {
            TINFLStatus::NeedsMoreInput | TINFLStatus::HasMoreOutput => Ok(()),
            TINFLStatus::Done => {
                self.is_inside = false;
                let checksum = std::mem::take(&mut self.checksum).finalize();
                let end = [checksum, self.size].map(u32::to_le_bytes).concat();
                let is_whole =
                    end.iter().try_fold(true, |is_whole, byte| self.input.byte().map(|it| is_whole && it == *byte))?;
                if is_whole { Ok(()) } else { Err(damaged("the checksum is wrong")) }
            }
            _ => Err(damaged("no valid gzip")),
        }
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.ready.0 == self.ready.1 && !self.is_over {
            self.advance()?;
        }
        let mut unread = self.window.get(self.ready.0..self.ready.1).unwrap_or_default();
        let count = unread.read(buffer)?;
        self.ready.0 += count;
        Ok(count)
    }
}

fn damaged(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the compressed data is damaged: {reason}"))
}

/// The compressed data, in pieces.
struct CompressedInput<R> {
    input: R,
    buffer: Box<[u8]>,
    /// The part of the buffer that is not yet read.
    unread: (usize, usize),
}

impl<R: Read> CompressedInput<R> {
    /// The next bytes; none at the end.
    fn fill(&mut self) -> io::Result<&[u8]> {
        if self.unread.0 == self.unread.1 {
            let read = loop {
                match self.input.read(&mut self.buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
            self.unread = (0, read);
        }
        Ok(self.buffer.get(self.unread.0..self.unread.1).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.unread.0 = (self.unread.0 + count).min(self.unread.1);
    }

    fn byte_if_any(&mut self) -> io::Result<Option<u8>> {
        let byte = self.fill()?.first().copied();
        self.consume(1);
        Ok(byte)
    }

    fn byte(&mut self) -> io::Result<u8> {
        let cut_off = || io::Error::new(ErrorKind::UnexpectedEof, "the compressed data is cut off");
        self.byte_if_any()?.ok_or_else(cut_off)
    }

    fn skip_text(&mut self) -> io::Result<()> {
        while self.byte()? != 0 {}
        Ok(())
    }

    /// Skips the header of a member. Returns whether there is one: zeros can fill the end of a file.
    fn skip_header(&mut self) -> io::Result<bool> {
        let first = loop {
            match self.byte_if_any()? {
                None => return Ok(false),
                Some(0) => {}
                Some(first) => break first,
            }
        };
        if [first, self.byte()?] != MAGIC || self.byte()? != 8 {
            return Err(damaged("no valid gzip"));
        }
        let flags = self.byte()?;
        for _ in 0..6 {
            self.byte()?;
        }
        if flags & HAS_EXTRA != 0 {
            let length = u16::from_le_bytes([self.byte()?, self.byte()?]);
            for _ in 0..length {
                self.byte()?;
            }
        }
        for _ in [HAS_NAME, HAS_COMMENT].into_iter().filter(|flag| flags & flag != 0) {
            self.skip_text()?;
        }
        if flags & HAS_CHECKSUM != 0 {
            self.byte()?;
            self.byte()?;
        }
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// A member with stored blocks, which needs no compressor.
    fn member(data: &[u8], flags: u8) -> Vec<u8> {
        let mut bytes = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        if flags & HAS_EXTRA != 0 {
            bytes.extend([2, 0, 7, 7]);
        }
        if flags & HAS_NAME != 0 {
            bytes.extend(b"access.log\0");
        }
        let mut chunks = data.chunks(60_000).peekable();
        while let Some(chunk) = chunks.next() {
            let length = u16::try_from(chunk.len()).unwrap();
            bytes.push(u8::from(chunks.peek().is_none()));
            bytes.extend(length.to_le_bytes());
            bytes.extend((!length).to_le_bytes());
            bytes.extend(chunk);
        }
        bytes.extend(crc32fast::hash(data).to_le_bytes());
        bytes.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        GzipReader::new(bytes).read_to_end(&mut data).map(|_| data)
    }

    #[test]
    fn members_follow_each_other_and_are_larger_than_the_window() {
        let large: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[1]).collect();
        let bytes = [member(&large, HAS_NAME | HAS_EXTRA), member(b"end", 0), vec![0; 512]].concat();
        assert_eq!(read(&bytes).unwrap(), [large, b"end".to_vec()].concat());
        assert_eq!(read(b"").unwrap(), b"");
    }

    #[test]
    fn the_output_of_a_compressor_is_read() {
        // `printf 'GET /cart\nGET /cart\nGET /cart\n' | gzip -n`
        let bytes = [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x73, 0x77, 0x0d, 0x51, 0xd0, 0x4f, 0x4e, 0x2c,
            0x2a, 0xe1, 0x72, 0xc7, 0xc2, 0x02, 0x00, 0x74, 0x91, 0x02, 0xa8, 0x1e, 0x00, 0x00, 0x00,
        ];
        assert_eq!(read(&bytes).unwrap(), b"GET /cart\nGET /cart\nGET /cart\n");
    }

    #[test]
    fn damage_is_an_error_and_never_an_end() {
        let whole = member(b"GET /cart", 0);
        for length in 1..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
        for at in [0, 2, 11, 17, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            assert!(read(&bytes).is_err(), "{at}");
        }
        assert!(read(&[whole, b"rest".to_vec()].concat()).is_err());
    }
}
