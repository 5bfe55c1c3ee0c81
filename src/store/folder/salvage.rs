//! Plans a repair: what of a damaged store can be read, and what has to be given up (D100).
//!
//! The state is the newest readable base with every batch of the journals after it, up to the first one that cannot be
//! read. The history is what leads to that base without a gap.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    base::{self, Base, StoreId},
    files::{self, Part},
    format,
    given_up::{described, gaps, numbers},
    head::{self, Head},
    inspect::index_agrees,
    keys, log,
    reader::LogReader,
    restore,
    scan::{FrameRun, LogScan, ScannedFrame},
    twice::Damage,
};
use crate::{
    model::code::Code,
    store::{StoreError, engine::Tip, history::ScrubbedRecords, seal::MasterKeySource},
};

/// The most given-up records that are described.
const MOST_RECORDS: usize = 100;

/// What a repair finds, and what it would do.
pub(crate) struct Salvage {
    /// What is wrong.
    pub problems: Vec<String>,
    /// What is given up.
    pub given_up: Vec<String>,
    /// The revision after the repair.
    pub revision: u64,
    /// The position of the last record after it.
    pub position: u64,
    /// The records that the readable ones list as scrubbed: their hashes do not match their content.
    scrubbed: ScrubbedRecords,
    /// The id of the store.
    pub(super) store: StoreId,
    /// What has to be done, in this order.
    pub(super) steps: Vec<RepairStep>,
}

/// A change of a file.
#[derive(Debug)]
pub(super) enum RepairStep {
    /// Restores a file from its copy, or the other way round.
    Restore(Damage),
    /// Notes where the history begins.
    Kept(Tip),
    /// Writes a file of the log anew, from the frames at these offsets.
    Rewrite(Rewrite),
    /// Cuts a journal off.
    Cut {
        /// Its generation.
        generation: u64,
        /// The length that remains.
        length: usize,
    },
    /// Replaces a journal with an empty one.
    Empty {
        /// Its generation.
        generation: u64,
        /// The batch before it.
        start: Tip,
    },
    /// Removes a file.
    Remove(PathBuf),
    /// Removes the index, which the next server builds again.
    RemoveIndex,
    /// Writes the head.
    Head(Head),
}

/// A file of the log that is written anew.
#[derive(Debug)]
pub(super) struct Rewrite {
    /// The kind of the file.
    pub part: Part,
    /// Its generation.
    pub generation: u64,
    /// The batch before the first one.
    pub start: Tip,
    /// The offset of the first frame.
    pub begin: usize,
    /// The end of the last one.
    pub end: usize,
}

/// Plans the repair of a store that nobody has open. Fails if nothing can be done.
pub(super) fn plan(folder: &Path, source: &MasterKeySource) -> Result<Salvage, StoreError> {
    restore::check_complete(folder)?;
    format::check(folder)?;
    let mut salvage = Salvage {
        problems: Vec::new(),
        given_up: Vec::new(),
        revision: 0,
        position: 0,
        scrubbed: ScrubbedRecords::default(),
        store: StoreId::default(),
        steps: Vec::new(),
    };
    let (generation, base) = salvage.base(folder)?;
    salvage.store = base.store;
    salvage.damage(keys::read(folder, base.store)?.1);
    // Without the keys, nothing that can be repaired here makes the store open.
    let keyring = keys::open(folder, base.store, source)?;
    base.root_secret(&Part::Base.path(folder, generation), &keyring)?;
    let head = salvage.head(folder)?;
    let end = salvage.journals(folder, generation, base.tip, head)?;
    salvage.history(folder, generation, base.tip)?;
    (salvage.revision, salvage.position) = (end.tip.revision, end.tip.position);
    if salvage.problems.is_empty() {
        match index_agrees(folder) {
            Err(error) if error.code == Code::StoreCorrupt => salvage.problem(error.message),
            Err(error) => return Err(error),
            Ok(_) => return Ok(salvage),
        }
    }
    salvage.steps.push(RepairStep::RemoveIndex);
    if !end.is_acknowledged {
        let Tip { position, hash, .. } = end.tip;
        let store = salvage.store;
        salvage.steps.push(RepairStep::Head(Head { position, generation: end.generation, hash, store }));
    }
    Ok(salvage)
}

/// The end of the journals.
struct JournalsEnd {
    tip: Tip,
    /// The generation of the last one.
    generation: u64,
    /// Whether the head is right.
    is_acknowledged: bool,
}

/// A journal, and what it has to follow.
struct NextJournal {
    generation: u64,
    after: Tip,
    /// Whether it is the last one.
    is_last: bool,
    /// The position that the head acknowledges.
    acknowledged: u64,
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

    /// Finds the newest base that can be read, or whose copy can be.
    fn base(&mut self, folder: &Path) -> Result<(u64, Base), StoreError> {
        let mut damaged = None;
        for generation in base::generations(folder)?.into_iter().rev() {
            match base::read_both(folder, generation) {
                Ok((base, damage)) => {
                    self.damage(damage);
                    return Ok((generation, base));
                }
                Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                Err(error) => {
                    self.problem(error.message.clone());
                    self.gives_up(format!("`{}`: an older base takes its place", Part::Base.name(generation)));
                    for part in [Part::Copy, Part::Base] {
                        self.steps.push(RepairStep::Remove(part.path(folder, generation)));
                    }
                    damaged = Some(error);
                }
            }
        }
        let message = match damaged {
            Some(error) => {
                format!("{error}; it has no intact copy and there is no older base, so this cannot be repaired")
            }
            None => format!("{} has no base file, so it cannot be repaired", folder.display()),
        };
        Err(StoreError::new(Code::StoreCorrupt, message))
    }

    /// Reads the head, if it can be read.
    fn head(&mut self, folder: &Path) -> Result<Option<Head>, StoreError> {
        let path = head::path(folder);
        let found = match files::exists(&path)? {
            true => head::read_only(folder),
            false => Err(StoreError::corrupt(&path, "the file is missing")),
        };
        let problem = match found {
            Ok(head) if head.store == self.store => return Ok(Some(head)),
            Ok(_) => "`head` belongs to another store".to_owned(),
            Err(error) if error.code == Code::StoreCorrupt => error.message,
            Err(error) => return Err(error),
        };
        self.problem(problem);
        self.gives_up("`head`: whether more records than the readable ones had been acknowledged is unknown");
        Ok(None)
    }

    /// Follows the journals from the base on, as far as they can be read.
    fn journals(
        &mut self,
        folder: &Path,
        base: u64,
        start: Tip,
        head: Option<Head>,
    ) -> Result<JournalsEnd, StoreError> {
        let known = Part::Journal.generations(folder)?;
        let last = known.iter().copied().chain(head.map(|head| head.generation)).fold(base, u64::max);
        let acknowledged = head.map_or(0, |head| head.position);
        let (mut tip, mut generation, mut readable) = (start, base, BTreeSet::new());
        let mut is_confirmed = head.is_some_and(|head| (head.position, head.hash) == (start.position, start.hash));
        loop {
            let next = NextJournal { generation, after: tip, is_last: generation == last, acknowledged };
            let (scanned, is_whole) = self.journal(folder, &next, &mut readable)?;
            for frame in scanned {
                tip = frame.tip;
                is_confirmed |= head.is_some_and(|head| (head.position, head.hash) == (tip.position, tip.hash));
            }
            if !is_whole || next.is_last {
                break;
            }
            generation += 1;
        }
        // A history file beside a newer base has only what undoes its batches, so it leads nowhere from here.
        for part in [Part::Journal, Part::History] {
            let numbers = part.generations(folder)?.into_iter();
            let unused = |number: &u64| match part {
                Part::History => *number >= base && !known.contains(number),
                _ => *number > generation,
            };
            for number in numbers.filter(unused) {
                let path = part.path(folder, number);
                let scan = LogScan::read(&path, None, &self.scrubbed)?;
                self.gives_up(format!("`{}`: it follows what cannot be read", part.name(number)));
                self.records(&scan, std::iter::once(&scan.first).chain(&scan.later), &mut readable);
                self.steps.push(RepairStep::Remove(path));
            }
        }
        if acknowledged > tip.position {
            self.problem(format!(
                "`head` acknowledges record {acknowledged}, but the log can be read up to record {}",
                tip.position
            ));
        } else if head.is_some() && !is_confirmed {
            self.problem(format!("`head` acknowledges another record {acknowledged} than the log has"));
        }
        let upto = readable.last().copied().unwrap_or_default().max(acknowledged);
        for (from, to) in gaps(tip.position, upto, &readable) {
            self.gives_up(format!("{}: unreadable, so their revisions and resources are unknown", numbers(from, to)));
        }
        let is_acknowledged = is_confirmed && head.is_some_and(|head| head.generation <= generation);
        Ok(JournalsEnd { tip, generation, is_acknowledged })
    }

    /// Reads one journal. Returns the frames that continue the log, and whether it can go on in the next journal.
    fn journal(
        &mut self,
        folder: &Path,
        next: &NextJournal,
        readable: &mut BTreeSet<u64>,
    ) -> Result<(Vec<ScannedFrame>, bool), StoreError> {
        let NextJournal { generation, after, is_last, acknowledged } = *next;
        let (path, name) = (Part::Journal.path(folder, generation), Part::Journal.name(generation));
        if !files::exists(&path)? {
            self.problem(format!("`{name}` is missing"));
            self.steps.push(RepairStep::Empty { generation, start: after });
            return Ok((Vec::new(), false));
        }
        let scan = LogScan::read(&path, Some(after), &self.scrubbed)?;
        let is_next = |(store, start): (StoreId, Tip)| store == self.store && is_same(start, after);
        if !scan.header.is_none_or(is_next) {
            self.problem(format!("`{name}` does not follow record {}", after.position));
            self.gives_up(format!("`{name}`: it belongs to another state of the store, or to another store"));
            self.records(&scan, std::iter::once(&scan.first).chain(&scan.later), readable);
            self.steps.push(RepairStep::Empty { generation, start: after });
            return Ok((Vec::new(), false));
        }
        let (begin, end) = (scan.first.begin, scan.first.end);
        let tip = scan.first.tip().unwrap_or(after);
        // The rest of an interrupted write was never acknowledged, and the next start cuts it off.
        let is_torn = is_last && scan.later.is_empty() && tip.position >= acknowledged;
        let is_damaged = !scan.is_whole() && !is_torn;
        if scan.header.is_none() {
            self.problem(format!("the header of `{name}` cannot be read"));
            let rewrite = Rewrite { part: Part::Journal, generation, start: after, begin, end };
            self.steps.push(RepairStep::Rewrite(rewrite));
        } else if is_damaged {
            self.steps.push(RepairStep::Cut { generation, length: end });
        }
        if is_damaged {
            self.problem(format!("record {} in `{name}` at byte {end} cannot be read", tip.position + 1));
            self.gives_up(format!("{} bytes of `{name}` from byte {end} on", scan.size() - end));
            self.records(&scan, &scan.later, readable);
        }
        self.scrubbed.extend(scan.listed);
        Ok((scan.first.frames, !is_damaged))
    }

    /// Describes the readable records that are given up.
    fn records<'r>(
        &mut self,
        scan: &LogScan,
        runs: impl IntoIterator<Item = &'r FrameRun>,
        readable: &mut BTreeSet<u64>,
    ) {
        for frame in runs.into_iter().flat_map(|run| &run.frames) {
            readable.insert(frame.tip.position);
            match readable.len() {
                1..=MOST_RECORDS => self.gives_up(described(scan, frame)),
                found if found == MOST_RECORDS + 1 => self.gives_up("more records, which the copy of the store has"),
                _ => {}
            }
        }
    }

    /// Follows the history back from the base, as far as it can be read without a gap.
    fn history(&mut self, folder: &Path, base: u64, end: Tip) -> Result<(), StoreError> {
        let parts: Vec<(Part, u64)> = log::parts(folder)?.into_iter().filter(|(_, number)| *number < base).collect();
        let (mut oldest, mut is_cut, mut steps) = (end, false, Vec::new());
        for (at, (part, generation)) in parts.iter().copied().enumerate().rev() {
            let (path, name) = (part.path(folder, generation), part.name(generation));
            if is_cut {
                self.gives_up(format!("`{name}`: nothing links it to the records after it"));
                steps.push(RepairStep::Remove(path));
                continue;
            }
            let mut scan = LogScan::read(&path, None, &self.scrubbed)?;
            let mut start = scan.header.filter(|(store, _)| *store == self.store).map(|(_, start)| start);
            if scan.header.is_none() {
                self.problem(format!("the header of `{name}` cannot be read"));
                start = self.end_before(folder, parts.get(..at).unwrap_or_default())?;
                if let Some(start) = start {
                    scan = scan.again(start, &self.scrubbed);
                }
            }
            if let Some(start) = start
                && scan.is_whole()
                && is_same(scan.first.tip().unwrap_or(start), oldest)
            {
                if scan.header.is_none() {
                    let (begin, end) = (scan.first.begin, scan.first.end);
                    steps.push(RepairStep::Rewrite(Rewrite { part, generation, start, begin, end }));
                }
                oldest = start;
                self.scrubbed.extend(scan.listed);
                continue;
            }
            is_cut = true;
            oldest = after_damage((part, generation), path, &scan, oldest, &mut steps);
            let record = oldest.position + 1;
            self.problem(format!(
                "the history before record {record} cannot be read: `{name}` is damaged or has a gap"
            ));
        }
        let kept = log::kept(folder);
        let noted = match files::exists(&kept)? {
            true => LogReader::open(&kept, false).map(|kept| kept.start.position),
            false => Ok(0),
        };
        let (allowed, is_readable) = match noted {
            Ok(position) => (position, true),
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
        self.steps.append(&mut steps);
        Ok(())
    }

    /// The end of the part before one whose header cannot be read.
    fn end_before(&self, folder: &Path, parts: &[(Part, u64)]) -> Result<Option<Tip>, StoreError> {
        let Some((part, generation)) = parts.last() else {
            let kept = log::kept(folder);
            return match files::exists(&kept)? {
                true => Ok(LogReader::open(&kept, false).ok().map(|kept| kept.start)),
                false => Ok(Some(Tip::default())),
            };
        };
        let scan = LogScan::read(&part.path(folder, *generation), None, &self.scrubbed)?;
        let start = scan.header.filter(|(store, _)| *store == self.store).map(|(_, start)| start);
        Ok(start.filter(|_| scan.is_whole()).map(|start| scan.first.tip().unwrap_or(start)))
    }
}

/// Keeps what follows the damage in a file of the history. Returns the batch before it.
fn after_damage(
    (part, generation): (Part, u64),
    path: PathBuf,
    scan: &LogScan,
    end: Tip,
    steps: &mut Vec<RepairStep>,
) -> Tip {
    let run = scan.later.last().filter(|run| run.end == scan.size());
    let run = run.filter(|run| run.tip().is_some_and(|tip| is_same(tip, end)));
    // Nothing is left of what the first frame followed, so the file starts after it.
    let kept = run.and_then(|run| Some((run.frames.first()?.tip, run.frames.get(1)?.offset, run.end)));
    match kept {
        Some((start, begin, end)) => {
            steps.push(RepairStep::Rewrite(Rewrite { part, generation, start, begin, end }));
            start
        }
        None => {
            steps.push(RepairStep::Remove(path));
            end
        }
    }
}

fn is_same(one: Tip, other: Tip) -> bool {
    (one.position, one.hash) == (other.position, other.hash)
}
