//! Plans a repair: what of a damaged store can be read, and what has to be given up (D100).
//!
//! The state is the newest one that can be read with every batch of the log after it, up to the first one that cannot: later
//! ones were computed on a state that nobody has any more. Without a state, the log has to lead there from its beginning. The
//! history is what leads to that state without a gap.
//!
//! ```text
//! log.1  1 … 400            whole                     given up: nothing links it to what follows
//! log.2  401 … 900          850 cannot be read        401 to 851 are given up; 852 to 900 stay
//! state.3                   after 900, readable       the state begins here
//! log.3  901 … 950          935 cannot be read        901 to 934 stay; 935 to 950 are given up
//! ```
//!
//! 851 can be read, but nothing says that it followed 850: its place in the chain cannot be verified, so the history begins
//! after it.
//!
//! Nothing is done here. Each [`RepairStep`] names one file, and they are in an order in which an interrupted repair leaves a
//! store that can be planned again: the history first, and the head last.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::inspect::index_agrees;
use super::loss_report::{describe_record, gaps, numbers};
use crate::model::Code;
use crate::store::commit::batch::Tip;
use crate::store::commit::header::ScrubbedRecords;
use crate::store::database::state::{self, Access};
use crate::store::disk::files::{self, Part};
use crate::store::error::StoreError;
use crate::store::folder::creation::FIRST_GENERATION;
use crate::store::folder::key_copies::{self, Damage};
use crate::store::folder::{format, interrupted_restore, keys};
use crate::store::log::head::{self, Head};
use crate::store::log::parts;
use crate::store::log::reader::LogReader;
use crate::store::log::scan::{FrameRun, LogScan, ScannedFrame};
use crate::store::seal::{Keyring, MasterKeySource, StoreId};

/// The most given-up records that are described.
const MOST_RECORDS: usize = 100;

/// The findings of a repair, and its steps.
#[derive(Default)]
pub(crate) struct Salvage {
    /// The folder of the store.
    pub(super) folder: PathBuf,
    pub problems: Vec<String>,
    /// The losses.
    pub given_up: Vec<String>,
    /// The revision after the repair.
    pub revision: u64,
    /// The position of the last record after it.
    pub position: u64,
    /// The records that the readable ones list as scrubbed: their hashes do not match their content.
    scrubbed: ScrubbedRecords,
    /// The positions of records that are given up, and that can be read.
    readable: BTreeSet<u64>,
    /// The id of the store.
    pub(super) store: StoreId,
    /// The steps, in this order.
    pub(super) steps: Vec<RepairStep>,
}

/// A change of a file.
#[derive(Debug)]
pub(super) enum RepairStep {
    /// Restores a file from its copy, or the other way round.
    Restore(Damage),
    /// Notes where the history begins.
    Kept(Tip),
    /// Writes a part of the log anew. It may be missing if none of its frames stays.
    Rewrite {
        generation: u64,
        /// The batch before the first one.
        start: Tip,
        /// The offsets of the frames that stay.
        frames: Range<usize>,
    },
    /// Removes a file or a database. The next server builds the index again.
    Remove(PathBuf),
    /// Writes the head.
    Head(Head),
}

/// Plans the repair of a store that nobody has open. Fails if nothing can be done.
pub(super) fn plan(folder: &Path, source: &MasterKeySource) -> Result<Salvage, StoreError> {
    interrupted_restore::check_complete(folder)?;
    format::check(folder)?;
    let mut salvage = Salvage { folder: folder.to_owned(), ..Salvage::default() };
    let head = salvage.head()?;
    salvage.store = head.map_or_else(|| store_of(folder), |head| Ok(head.store))?;
    salvage.damage(key_copies::read(folder, salvage.store)?.1);
    // Without the keys, nothing that can be repaired here makes the store open.
    let keyring = keys::open(folder, salvage.store, source)?;
    let start = salvage.state(head, &keyring)?;
    let end = salvage.logs(start.generation, start.tip, head)?;
    salvage.history(start.generation, start.tip)?;
    (salvage.revision, salvage.position) = (end.tip.revision, end.tip.position);
    if salvage.problems.is_empty() {
        match index_agrees(folder) {
            Err(error) if error.code == Code::StoreCorrupt => salvage.problem(error.message),
            Err(error) => return Err(error),
            Ok(_) => return Ok(salvage),
        }
    }
    salvage.steps.push(RepairStep::Remove(folder.join("index")));
    if !end.is_acknowledged || head.is_none_or(|head| head.state != start.state) {
        let Tip { position, hash, .. } = end.tip;
        let (generation, state, store) = (end.generation, start.state, salvage.store);
        salvage.steps.push(RepairStep::Head(Head { position, generation, state, hash, store }));
    }
    Ok(salvage)
}

/// The store that the parts of a log belong to, if the head does not say it.
fn store_of(folder: &Path) -> Result<StoreId, StoreError> {
    for generation in Part::Log.generations(folder)?.into_iter().rev() {
        if let Ok(reader) = LogReader::open_headers(&Part::Log.path(folder, generation)) {
            return Ok(reader.store);
        }
    }
    Err(StoreError::corrupt(folder, "neither its head nor any part of its log can be read, so it cannot be repaired"))
}

/// Where the log begins that leads to the present.
struct SalvagedStart {
    tip: Tip,
    /// The generation of the part of the log that follows.
    generation: u64,
    /// The generation of the state, or 0 if it is the beginning of the log.
    state: u64,
}

/// The end of the log.
struct LogEnd {
    tip: Tip,
    /// The generation of its last part.
    generation: u64,
    /// Whether the head is right.
    is_acknowledged: bool,
}

impl Salvage {
    fn problem(&mut self, found: impl Into<String>) {
        self.problems.push(found.into());
    }

    fn gives_up(&mut self, what: impl Into<String>) {
        self.given_up.push(what.into());
    }

    /// Notes damage that costs nothing, because the content is on the disk twice.
    fn damage(&mut self, damage: Option<Damage>) {
        if let Some(damage) = damage {
            self.problem(damage.error.message.clone());
            self.steps.push(RepairStep::Restore(damage));
        }
    }

    /// Finds the newest state that can be read, or the beginning of the log.
    fn state(&mut self, head: Option<Head>, keyring: &Keyring) -> Result<SalvagedStart, StoreError> {
        let mut candidates = Part::State.generations(&self.folder)?;
        // A newer one than the head names was not complete.
        candidates.retain(|generation| head.is_none_or(|head| *generation < head.state));
        candidates.extend(head.map(|head| head.state).filter(|named| *named > 0));
        let mut damaged = None;
        for generation in candidates.into_iter().rev() {
            match state::read(&self.folder, generation, Access::ReadOnly) {
                Ok(saved) if saved.identity.store == self.store => {
                    return Ok(SalvagedStart { tip: saved.identity.tip, generation, state: generation });
                }
                Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                found => {
                    let name = Part::State.name(generation);
                    let error = found.err().unwrap_or_else(|| {
                        StoreError::new(Code::StoreCorrupt, format!("`{name}` belongs to another store"))
                    });
                    self.problem(error.message.clone());
                    self.steps.push(RepairStep::Remove(Part::State.path(&self.folder, generation)));
                    damaged = Some(error);
                }
            }
        }
        let first = Part::Log.generations(&self.folder)?.first().copied();
        let begins = |generation: &u64| {
            let reader = LogReader::open_headers(&Part::Log.path(&self.folder, *generation));
            reader.map_or(*generation == FIRST_GENERATION, |reader| reader.start.position == 0)
        };
        match first.filter(begins).filter(|_| damaged.is_none() || !keyring.has_destroyed()) {
            Some(generation) => Ok(SalvagedStart { tip: Tip::default(), generation, state: 0 }),
            None => {
                let (folder, why) = (self.folder.display(), "the log does not go back to the beginning");
                let message = match damaged {
                    Some(error) => {
                        format!("{error}; there is no older state, and {why}, so the store cannot be repaired")
                    }
                    None => {
                        format!("{folder} has neither a state nor the beginning of its log, so it cannot be repaired")
                    }
                };
                Err(StoreError::new(Code::StoreCorrupt, message))
            }
        }
    }

    /// Reads the head, if it can be read.
    fn head(&mut self) -> Result<Option<Head>, StoreError> {
        let path = head::path(&self.folder);
        let found = match files::exists(&path)? {
            true => head::read_only(&self.folder),
            false => Err(StoreError::corrupt(&path, "the file is missing")),
        };
        let problem = match found {
            Ok(head) => return Ok(Some(head)),
            Err(error) if error.code == Code::StoreCorrupt => error.message,
            Err(error) => return Err(error),
        };
        self.problem(problem);
        self.gives_up("`head`: records after the last readable one may have been acknowledged");
        Ok(None)
    }

    /// Follows the log from the state on, as far as it can be read.
    fn logs(&mut self, first: u64, start: Tip, head: Option<Head>) -> Result<LogEnd, StoreError> {
        let known = Part::Log.generations(&self.folder)?;
        let last = known.iter().copied().chain(head.map(|head| head.generation)).fold(first, u64::max);
        let acknowledged = head.map_or(0, |head| head.position);
        let (mut tip, mut generation) = (start, first);
        let mut is_confirmed = head.is_some_and(|head| (head.position, head.hash) == (start.position, start.hash));
        loop {
            let is_last = generation == last;
            let (scanned, is_whole) = self.part(generation, tip, is_last, acknowledged)?;
            for frame in scanned {
                tip = frame.tip;
                is_confirmed |= head.is_some_and(|head| (head.position, head.hash) == (tip.position, tip.hash));
            }
            if !is_whole || is_last {
                break;
            }
            generation += 1;
        }
        for number in known.into_iter().filter(|number| *number > generation) {
            let path = Part::Log.path(&self.folder, number);
            let scan = LogScan::read(&path, None, &self.scrubbed)?;
            self.gives_up(format!("`{}`: the records before it cannot be read", Part::Log.name(number)));
            self.records(&scan, std::iter::once(&scan.first).chain(&scan.later));
            self.steps.push(RepairStep::Remove(path));
        }
        if acknowledged > tip.position {
            self.problem(format!(
                "`head` acknowledges record {acknowledged}, but the log can be read up to record {}",
                tip.position
            ));
        } else if head.is_some() && !is_confirmed {
            self.problem(format!("record {acknowledged} in the log is not the one that `head` acknowledges"));
        }
        let upto = self.readable.last().copied().unwrap_or_default().max(acknowledged);
        for (from, to) in gaps(tip.position, upto, &self.readable) {
            self.gives_up(format!("{}: unreadable, so their revisions and resources are unknown", numbers(from, to)));
        }
        let is_acknowledged = is_confirmed && head.is_some_and(|head| head.generation <= generation);
        Ok(LogEnd { tip, generation, is_acknowledged })
    }

    /// Reads one part of the log. Returns the frames that continue it, and whether it can go on in the next part.
    fn part(
        &mut self,
        generation: u64,
        after: Tip,
        is_last: bool,
        acknowledged: u64,
    ) -> Result<(Vec<ScannedFrame>, bool), StoreError> {
        let (path, name) = (Part::Log.path(&self.folder, generation), Part::Log.name(generation));
        if !files::exists(&path)? {
            self.problem(format!("`{name}` is missing"));
            self.steps.push(RepairStep::Rewrite { generation, start: after, frames: 0..0 });
            return Ok((Vec::new(), false));
        }
        let scan = LogScan::read(&path, Some(after), &self.scrubbed)?;
        let is_next = |(store, start): (StoreId, Tip)| store == self.store && start.is_same(&after);
        if !scan.header.is_none_or(is_next) {
            self.problem(format!("`{name}` does not follow record {}", after.position));
            self.gives_up(format!("`{name}`: it belongs to another state of the store, or to another store"));
            self.records(&scan, std::iter::once(&scan.first).chain(&scan.later));
            self.steps.push(RepairStep::Rewrite { generation, start: after, frames: 0..0 });
            return Ok((Vec::new(), false));
        }
        let (begin, end) = (scan.first.begin, scan.first.end);
        let tip = scan.first.tip().unwrap_or(after);
        // The rest of an interrupted write was never acknowledged, and the next start cuts it off.
        let is_torn = is_last && scan.later.is_empty() && tip.position >= acknowledged;
        let is_damaged = !scan.is_whole() && !is_torn;
        if scan.header.is_none() {
            self.problem(format!("the header of `{name}` cannot be read"));
        }
        if scan.header.is_none() || is_damaged {
            self.steps.push(RepairStep::Rewrite { generation, start: after, frames: begin..end });
        }
        if is_damaged {
            self.problem(format!("record {} in `{name}` at byte {end} cannot be read", tip.position + 1));
            self.gives_up(format!("{} bytes of `{name}` from byte {end} on", scan.size() - end));
            self.records(&scan, &scan.later);
        }
        self.scrubbed.extend(scan.listed);
        Ok((scan.first.frames, !is_damaged))
    }

    /// Describes the readable records that are given up.
    fn records<'r>(&mut self, scan: &LogScan, runs: impl IntoIterator<Item = &'r FrameRun>) {
        for frame in runs.into_iter().flat_map(|run| &run.frames) {
            self.readable.insert(frame.tip.position);
            match self.readable.len() {
                1..=MOST_RECORDS => self.gives_up(describe_record(scan, frame)),
                found if found == MOST_RECORDS + 1 => self.gives_up("more records, which are in the copy of the store"),
                _ => {}
            }
        }
    }

    /// Follows the history back from the state, as far as it can be read without a gap.
    fn history(&mut self, first: u64, end: Tip) -> Result<(), StoreError> {
        let parts: Vec<u64> =
            Part::Log.generations(&self.folder)?.into_iter().filter(|number| *number < first).collect();
        let (mut oldest, mut is_cut, mut steps) = (end, false, Vec::new());
        for (at, generation) in parts.iter().copied().enumerate().rev() {
            let (path, name) = (Part::Log.path(&self.folder, generation), Part::Log.name(generation));
            if is_cut {
                self.gives_up(format!("`{name}`: nothing links it to the records after it"));
                steps.push(RepairStep::Remove(path));
                continue;
            }
            let mut scan = LogScan::read(&path, None, &self.scrubbed)?;
            let mut start = scan.header.filter(|(store, _)| *store == self.store).map(|(_, start)| start);
            if scan.header.is_none() {
                self.problem(format!("the header of `{name}` cannot be read"));
                start = self.end_before(parts.get(..at).unwrap_or_default())?;
                if let Some(start) = start {
                    scan = scan.rescanned(start, &self.scrubbed);
                }
            }
            if let Some(start) = start
                && scan.is_whole()
                && oldest.is_same(&scan.first.tip().unwrap_or(start))
            {
                if scan.header.is_none() {
                    let frames = scan.first.begin..scan.first.end;
                    steps.push(RepairStep::Rewrite { generation, start, frames });
                }
                oldest = start;
                self.scrubbed.extend(scan.listed);
                continue;
            }
            is_cut = true;
            oldest = after_damage(generation, path, &scan, oldest, &mut steps);
            let record = oldest.position + 1;
            self.problem(format!(
                "the history before record {record} cannot be read: `{name}` is damaged or has a gap"
            ));
        }
        self.start_of_history(oldest, is_cut)?;
        self.steps.append(&mut steps);
        Ok(())
    }

    /// Reports what is missing before the oldest record, beyond what retention has removed, and notes where the history begins
    /// then. `is_cut` says whether the damage is reported.
    fn start_of_history(&mut self, oldest: Tip, is_cut: bool) -> Result<(), StoreError> {
        let (allowed, is_readable) = match parts::history_start(&self.folder) {
            Ok(kept) => (kept.position, true),
            Err(error) if error.code == Code::StoreCorrupt => {
                self.problem(error.message);
                (0, false)
            }
            Err(error) => return Err(error),
        };
        if oldest.position > allowed || !is_readable {
            if is_readable && !is_cut {
                self.problem(format!("the history before record {} is missing", oldest.position + 1));
            }
            if oldest.position > 0 {
                let what = numbers(allowed + 1, oldest.position.max(allowed + 1));
                self.gives_up(format!("the history: {what}, and the states of their revisions"));
            }
            self.steps.push(RepairStep::Kept(oldest));
        }
        Ok(())
    }

    /// The end of the part before one whose header cannot be read.
    fn end_before(&self, parts: &[u64]) -> Result<Option<Tip>, StoreError> {
        let Some(generation) = parts.last() else { return Ok(parts::history_start(&self.folder).ok()) };
        let scan = LogScan::read(&Part::Log.path(&self.folder, *generation), None, &self.scrubbed)?;
        let start = scan.header.filter(|(store, _)| *store == self.store).map(|(_, start)| start);
        Ok(start.filter(|_| scan.is_whole()).map(|start| scan.first.tip().unwrap_or(start)))
    }
}

/// Keeps what follows the damage in a file of the history. Returns the batch before it.
fn after_damage(generation: u64, path: PathBuf, scan: &LogScan, end: Tip, steps: &mut Vec<RepairStep>) -> Tip {
    let run = scan.later.last().filter(|run| run.end == scan.size());
    let run = run.filter(|run| run.tip().is_some_and(|tip| tip.is_same(&end)));
    // Nothing is left of what the first frame followed, so the file starts after it.
    let kept = run.and_then(|run| Some((run.frames.first()?.tip, run.frames.get(1)?.offset..run.end)));
    match kept {
        Some((start, frames)) => {
            steps.push(RepairStep::Rewrite { generation, start, frames });
            start
        }
        None => {
            steps.push(RepairStep::Remove(path));
            end
        }
    }
}
