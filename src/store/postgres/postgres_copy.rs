//! A copy of another store, in a database (D115). Until all of it is there, its head says that it is incomplete.

use std::path::Path;
use std::sync::Arc;

use super::engine::{link_to, name_of_process};
use super::group_transaction::WRITE_STATE;
use super::head::signed;
use super::link::DatabaseLink;
use super::row_digests::RowDigests;
use super::rows::StateRows;
use super::shared_files::SharedFiles;
use super::writer::{StoreWriter, WriterClaim};
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::engine::{SidecarFiles, StateRecords, StoreCopy};
use crate::store::error::StoreError;
use crate::store::seal::Keyring;

/// The database of a copy that is being written.
pub(crate) struct PostgresCopy {
    link: Arc<DatabaseLink>,
    writer: Arc<StoreWriter>,
}

impl PostgresCopy {
    /// Begins in a database without a store, with the keys of the store that is copied. The history begins after `start`.
    pub(crate) fn begin(address: &Path, keyring: &Keyring, start: Tip) -> Result<Self, StoreError> {
        let link = link_to(address)?;
        let mut claim = WriterClaim::take(&link, name_of_process(), None)?;
        if claim.head.is_some() {
            return Err(StoreError::new(Code::StoreFormat, format!("{} has a store already", link.shown())));
        }
        claim.create(&link, keyring, start, false)?;
        let (writer, _) = claim.begin(&link, RowDigests::new(keyring))?;
        Ok(Self { link, writer: Arc::new(writer) })
    }

    fn write(&self, piece: StateRows) -> Result<(), StoreError> {
        let piece = Arc::new(piece);
        self.writer.change(|client, _| {
            let rows = Arc::clone(&piece);
            async move { client.execute(WRITE_STATE, &rows.parameters()).await }
        })
    }
}

impl StoreCopy for PostgresCopy {
    fn append(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        if !batches.is_empty() {
            self.writer.append(self.writer.tip().position, batches)?;
        }
        Ok(())
    }

    fn keep_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let files = SharedFiles { link: Arc::clone(&self.link), writer: Ok(Arc::clone(&self.writer)) };
        files.write(name, bytes)
    }

    fn finish(self: Box<Self>, state: &mut StateRecords<'_>) -> Result<(), StoreError> {
        let (position, mut pieces) = (signed(self.writer.tip().position), Vec::new());
        for record in state {
            let (key, value) = record?;
            StateRows::push(&mut pieces, self.writer.digests(), key.into_bytes(), position, value);
            if pieces.len() > 1 {
                self.write(pieces.remove(0))?;
            }
        }
        pieces.into_iter().try_for_each(|piece| self.write(piece))?;
        self.writer.change(|client, epoch| async move {
            client.execute("UPDATE edgewright.head SET complete = true WHERE epoch = $1", &[&epoch]).await
        })
    }
}
