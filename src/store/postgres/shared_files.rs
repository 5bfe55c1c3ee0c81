//! Files of others that belong to a store, such as suspended sources, as rows: a process that takes the store over must know
//! them.

use std::sync::Arc;

use super::link::DatabaseLink;
use super::writer::StoreWriter;
use crate::store::engine::SidecarFiles;
use crate::store::error::StoreError;

/// The files in a database. Only the writer can change them.
pub(super) struct SharedFiles {
    pub(super) link: Arc<DatabaseLink>,
    /// The writer, or why this process is not the one.
    pub(super) writer: Result<Arc<StoreWriter>, StoreError>,
}

impl SidecarFiles for SharedFiles {
    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.link.check_store()?;
        let name = name.to_owned();
        let found = self.link.ask(move |client| {
            let name = name.clone();
            async move {
                let row = client.query_opt("SELECT content FROM edgewright.files WHERE name = $1", &[&name]).await?;
                row.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()
            }
        })?;
        Ok(found.filter(|bytes| bytes.len() as u64 <= most))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let writer = self.writer.as_ref().map_err(StoreError::clone)?;
        let (name, bytes) = (name.to_owned(), bytes.to_vec());
        writer.change(move |client, epoch| {
            let (name, bytes) = (name.clone(), bytes.clone());
            async move {
                let sql = "WITH held AS (SELECT 1 FROM edgewright.head WHERE epoch = $1 FOR SHARE) \
                           INSERT INTO edgewright.files (name, content) SELECT $2::text, $3::bytea FROM held \
                           ON CONFLICT (name) DO UPDATE SET content = EXCLUDED.content";
                client.execute(sql, &[&epoch, &name, &bytes]).await
            }
        })
    }
}
