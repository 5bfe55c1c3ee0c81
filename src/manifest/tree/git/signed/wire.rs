//! The wire format of SSH (RFC 4251): lengths and bytes.

/// Reads values from bytes.
pub(super) struct WireReader<'b>(pub(super) &'b [u8]);

impl<'b> WireReader<'b> {
    /// The next bytes.
    pub(super) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of four bytes.
    pub(super) fn number(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_be_bytes(*bytes.first_chunk()?))
    }

    /// A length and as many bytes.
    pub(super) fn string(&mut self) -> Option<&'b [u8]> {
        let length = self.number()?;
        self.take(length as usize)
    }

    /// A string of text.
    pub(super) fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// A positive number of any size, without leading zeros.
    pub(super) fn big_number(&mut self) -> Option<&'b [u8]> {
        let bytes = self.string()?;
        let is_negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.get(zeros..).filter(|rest| !rest.is_empty() && !is_negative)
    }

    /// Succeeds at the end of the bytes.
    pub(super) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Appends a length and as many bytes.
pub(super) fn put_string(bytes: &mut Vec<u8>, string: &[u8]) -> Option<()> {
    bytes.extend_from_slice(&u32::try_from(string.len()).ok()?.to_be_bytes());
    bytes.extend_from_slice(string);
    Some(())
}
