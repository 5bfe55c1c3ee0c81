//! A configuration file that changes while `serve` runs (D91).
//!
//! # The problem
//!
//! Another team's source must not cost a restart of the gateway's only server, and a typing error must not stop
//! anything. Files are replaced in many ways, and can be missing or half written for a moment.
//!
//! # The idea
//!
//! [`config_watch`] notices that the file is another one and has been quiet. The whole file is then checked as at the
//! start, with the flags and variables of the server, and only a file without errors has an effect. Its sources are
//! compared with those that are followed: an unchanged one keeps its loop, a changed one gets a new loop that shares a
//! lock with the old one, and one that is gone ends (`sources`). Startup options that differ are named in the log,
//! because they need a restart.
//!
//! For example, a platform team adds a source with a repository that does not exist yet. The reload follows it, waits
//! up to ten seconds for its first sync, and warns; the source is in the status as `Failed` until the repository is
//! there.
//!
//! # What it never does
//!
//! A reload deletes nothing: the resources of a source that was removed from the file stay. A missing or empty file
//! never counts as an empty configuration, unless it was empty before.

mod config_watch;
mod sources;

use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::{Command, FromArgMatches};

use super::{args::Args, log, service_manager::ServiceManager};
use crate::cli::config::Config;
use crate::cli::prelude::*;
use crate::manifest::tree::withhold_variables;
use crate::model::Claim;
use crate::server::auth::oidc::refused_people::RefusedPeople;
use crate::server::resources::write_policy::RestWrites;
use crate::server::telemetry::security::SecurityLog;
use crate::server::telemetry::security::event::{SecurityEvent, SecurityRecord};
use config_watch::ReloadCause;
use sources::{FollowedFrom, SourceChanges};

pub(super) use config_watch::ConfigWatch;
pub(super) use sources::LiveSources;

/// The metrics of the file.
const SUCCESSFUL: &str = "edgewright_config_last_reload_successful";
const SUCCEEDED_AT: &str = "edgewright_config_last_reload_success_timestamp_seconds";

/// Applies changes of the configuration file to a running server.
pub(super) struct Reloader<'a> {
    args: &'a Args,
    /// The last file without errors.
    config: Config,
    /// The startup values of the first file.
    at_start: BTreeMap<String, Value>,
    /// The options that the file can set: neither a flag nor a variable overrides them.
    options: BTreeSet<String>,
    sources: LiveSources<'a>,
    failure: Option<String>,
    /// Logs changes of sources with credentials.
    security_log: Option<SecurityLog>,
    /// The service manager that waits for the end of a reload it has asked for, and the URL of the server.
    manager: (ServiceManager, String),
    /// The policies that requests see.
    rest_writes: RestWrites,
    /// The people whom the server refuses.
    refused: RefusedPeople,
}

impl<'a> Reloader<'a> {
    /// Starts from the file that the server was started with.
    pub(super) fn new(
        args: &'a Args,
        config: Config,
        options: BTreeSet<String>,
        sources: LiveSources<'a>,
        security_log: Option<SecurityLog>,
        manager: (ServiceManager, String),
        rest_writes: RestWrites,
    ) -> Self {
        metrics::describe_gauge!(SUCCESSFUL, "1 if the configuration file was applied when it was last read.");
        metrics::describe_gauge!(SUCCEEDED_AT, "When the configuration file was last applied, in Unix time.");
        let at_start = config.startup_values.clone();
        let failure = None;
        let refused = config.openid_connect.as_ref().map(|provider| provider.refused.clone()).unwrap_or_default();
        let reloader =
            Self { args, at_start, config, options, sources, failure, security_log, manager, rest_writes, refused };
        reloader.record(true);
        reloader
    }

    fn record(&self, is_applied: bool) {
        self.sources.list().set_outdated(!is_applied);
        metrics::gauge!(SUCCESSFUL).set(f64::from(u8::from(is_applied)));
        if is_applied {
            metrics::gauge!(SUCCEEDED_AT).set(clock::now().as_second() as f64);
        }
    }

    /// Reads the file again whenever it is to be read, until the watch ends. One reload ends before the next one starts.
    /// `program` has the options that the file can set. Returns the last file without errors.
    pub(super) fn run(mut self, mut watch: ConfigWatch, program: &Command) -> Config {
        // The file may have changed between its first reading and the start of the watch.
        let mut cause = Some(ReloadCause::Changed);
        while let Some(now) = cause {
            if self.sources.list().is_stopping() {
                break;
            }
            if catch_unwind(AssertUnwindSafe(|| self.reload(now, program))).is_err() {
                self.record(false);
                tracing::error!("reading the configuration file panicked; the last good configuration stays in effect");
            }
            if now == ReloadCause::Asked {
                let (manager, url) = &self.manager;
                manager.ready(url);
            }
            cause = watch.wait();
        }
        self.config
    }

    fn reload(&mut self, cause: ReloadCause, program: &Command) {
        match self.take_effect(program) {
            Ok(changes) => {
                self.record(true);
                let is_news = self.failure.take().is_some() || cause == ReloadCause::Asked;
                if !changes.is_empty() {
                    self.say(&changes);
                } else if is_news && self.config.has_content {
                    tracing::info!("The configuration file is valid. No source has changed.");
                }
            }
            Err(failure) => {
                self.record(false);
                let text = failure.diagnostics.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("\n");
                // A file that stays broken is reported once, unless somebody asks.
                if cause == ReloadCause::Asked || self.failure.as_ref() != Some(&text) {
                    log::diagnostics(self.args.log_format, &failure.diagnostics, None);
                    tracing::error!(
                        "The configuration file is not applied; the last good configuration stays in effect."
                    );
                }
                self.failure = Some(text);
            }
        }
    }

    fn take_effect(&mut self, program: &Command) -> Result<SourceChanges, Failure> {
        let mut config = self.config.reload()?;
        check(&config, program)?;
        if let Some(provider) = &mut config.openid_connect {
            if self.refused.replace(&provider.refused) {
                tracing::info!("The people in `refused` of `openid_connect` in the configuration file are refused.");
            }
            // Whatever serves next has the same list.
            provider.refused = self.refused.clone();
        }
        withhold_variables(config.credential_variables.clone());
        let changes = self.sources.follow(self.args.wanted(&config), FollowedFrom::Reload)?;
        let keys = self.keys_for_a_restart(&config);
        if !keys.is_empty() {
            let keys = keys.join(", ");
            tracing::warn!(keys, "These keys of the configuration file take effect after a restart: {keys}");
        }
        self.log_credentials(&config, &changes);
        if config.rest_writes != self.config.rest_writes || !changes.is_empty() {
            self.sources.warn_of_unknown(&config.rest_writes);
        }
        if config.rest_writes != self.config.rest_writes {
            self.rest_writes.set(config.rest_writes.clone());
            tracing::info!("The policies of `rest_writes` in the configuration file are in effect.");
        }
        self.config = config;
        Ok(changes)
    }

    /// Logs the sources with credentials that are new, changed or gone, without the credentials.
    fn log_credentials(&self, config: &Config, changes: &SourceChanges) {
        let Some(log) = &self.security_log else { return };
        let has_credentials = |name: &str| {
            let mut all = self.config.sources.iter().chain(&config.sources);
            all.any(|source| source.name == name && source.has_credentials())
        };
        let SourceChanges { added, changed, removed } = changes;
        for (reason, sources) in [("added", added), ("changed", changed), ("removed", removed)] {
            for source in sources.iter().filter(|source| has_credentials(source)) {
                log.write(SecurityRecord {
                    source: Some(source.clone()),
                    reason: reason.into(),
                    ..SecurityRecord::new(SecurityEvent::CredentialsChanged)
                });
            }
        }
    }

    /// The keys whose new values take effect only at the start of a server, if that was not said before.
    fn keys_for_a_restart(&self, config: &Config) -> Vec<String> {
        let (started, last, now) = (&self.at_start, &self.config.startup_values, &config.startup_values);
        let keys: BTreeSet<&String> = last.keys().chain(now.keys()).collect();
        let is_changed = |key: &str| now.get(key) != last.get(key) && now.get(key) != started.get(key);
        let matters = |key: &str| key.strip_prefix("/options/").is_none_or(|option| self.options.contains(option));
        keys.into_iter().filter(|key| is_changed(key) && matters(key)).cloned().collect()
    }

    fn say(&mut self, changes: &SourceChanges) {
        let SourceChanges { added, changed, removed } = changes;
        for source in added {
            tracing::info!(source, "Following the source.");
        }
        for source in changed {
            tracing::info!(source, "Following the source with its new settings.");
        }
        let snapshot = self.sources.store().snapshot();
        for source in removed {
            let owner = source.as_str();
            let is_owned = |claim: &Claim| claim.source == owner;
            let resources = snapshot.iter().filter(|it| it.claim.as_deref().is_some_and(is_owned)).count();
            if resources == 0 {
                tracing::info!(source, resources, "No longer following the source. It owns no resources.");
                continue;
            }
            tracing::warn!(source, resources, "No longer following the source. Its resources stay in the store.");
        }
        let (added, changed, removed) = (added.len(), changed.len(), removed.len());
        let applied = format!(
            "The configuration file is applied: {added} added, {changed} changed and {removed} removed sources."
        );
        let (failed, unseen) = self.sources.first_results(changes);
        if !unseen.is_empty() {
            let sources = unseen.join(", ");
            tracing::info!(sources, "The first sync of these sources has not finished: {sources}.");
        }
        if failed.is_empty() {
            tracing::info!("{applied}");
        } else {
            let sources = failed.join(", ");
            tracing::warn!(sources, "{applied} Sources that cannot be read or applied: {sources}.");
        }
    }
}

/// Checks a file as the start of a server would, with the flags and variables of this process.
fn check(config: &Config, program: &Command) -> Result<(), Failure> {
    let matches = config.apply(program.clone())?.try_get_matches().map_err(|error| config.value_failure(error))?;
    match matches.subcommand() {
        Some((_, own)) if !config.sources.is_empty() => {
            let args = Args::from_arg_matches(own).map_err(|error| config.value_failure(error))?;
            args.check_alone(&matches)
        }
        _ => Ok(()),
    }
}
