//! A source as the configuration file has it.

use crate::{cli::prelude::*, manifest::tree::CommitVerifier};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceEntry {
    pub(super) name: String,
    /// A folder or file; with `repository`, inside the repository.
    pub(super) path: Option<PathBuf>,
    /// Folders and files of other sources, which this one uses without owning them.
    #[serde(default)]
    pub(super) with: Vec<PathBuf>,
    /// The local path or the URL of a Git repository.
    pub(super) repository: Option<String>,
    /// A branch, tag or commit of the repository.
    #[serde(rename = "ref")]
    pub(super) revision: Option<String>,
    /// The URL of the forge's page of a commit.
    #[serde(default)]
    pub(super) commit_url: String,
    /// The URL of the forge's page of a line in a file.
    #[serde(default)]
    pub(super) file_url: String,
    /// The folder with the values that the commits of the repository do not have.
    pub(super) values: Option<PathBuf>,
    /// The environment variables that the manifests can read.
    #[serde(default)]
    pub(super) variables: Vec<String>,
    /// The time between two syncs without an event.
    pub(super) interval: Option<Value>,
    pub(super) prune: Option<bool>,
    pub(super) isolate: Option<bool>,
    /// Whether resources whose stated ID does not exist are created under it: to build a lost store again.
    #[serde(default)]
    pub(super) recreate_ids: bool,
    pub(super) scope: Option<ScopeEntry>,
    /// Whether to plan without applying.
    pub(super) suspend: Option<bool>,
    pub(super) drift: Option<String>,
    pub(super) max_deletes: Option<Value>,
    /// Levels of lints, over those of the whole file.
    #[serde(default)]
    pub(super) lints: BTreeMap<String, String>,
    /// A range of versions: the highest tag in it is read.
    pub(super) semver: Option<String>,
    /// The user at the server of the repository.
    pub(super) username: Option<String>,
    pub(super) password_file: Option<PathBuf>,
    /// The environment variable with the password or token.
    pub(super) password_env: Option<String>,
    pub(super) ssh_key_file: Option<PathBuf>,
    /// The file with the passphrase of the key.
    pub(super) ssh_key_passphrase_file: Option<PathBuf>,
    /// The keys of SSH servers.
    pub(super) known_hosts_file: Option<PathBuf>,
    /// The authorities of HTTPS servers.
    pub(super) ca_file: Option<PathBuf>,
    /// The signatures that a commit needs to be applied.
    pub(super) verify: Option<CommitVerifier>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ScopeEntry {
    /// The kinds of resources, or `*`.
    pub(super) kinds: Option<Vec<String>>,
    /// The kinds of resources without a source that it may adopt, or `*`.
    pub(super) adopt: Option<Vec<String>>,
    pub(super) hosts: Option<Vec<String>>,
    /// The roles of the owners of API keys.
    pub(super) roles: Option<Vec<Role>>,
    pub(super) owners: Option<Vec<String>>,
    pub(super) token_folder: Option<PathBuf>,
}
