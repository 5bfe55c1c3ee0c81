//! The configuration file: defaults of options (D32), levels of lints (D2), and the sources to follow (D82). `location.rs` finds it,
//! `text.rs` reads it, `section.rs` says which commands a mistake stops, `untrusted_file.rs` what a file in the working folder
//! cannot set (D43), and `empty_values.rs` refuses keys without a value.

mod empty_values;
pub(crate) mod location;
pub(crate) mod options;
pub(crate) mod section;
mod text;
pub(crate) mod untrusted_file;

use clap::{ArgMatches, Command};

use super::input::usage;
use super::serve::source_config::entry::SourceEntry;
use super::serve::source_config::{self, ConfiguredSource};
use crate::cli::prelude::*;
use crate::manifest::ManifestFile;
use crate::manifest::load::document::unreadable_yaml;
use crate::manifest::load::limits::TextFault;
use crate::manifest::load::{limits, syntax};
use crate::model::decode::decode;
use crate::model::diagnostics::Check;
use crate::model::diagnostics::fault::add_new_faults;
use crate::model::{Place, Segment, SourceFile};
use crate::server::auth::client_certificates::{CertificateOwner, ClientCertificates};
use crate::server::auth::oidc::config::OidcConfig;
use crate::server::notify::config::{NotificationConfig, NotificationTarget};
use crate::server::resources::write_policy::{WritePolicies, WritePolicy};
use crate::syntax::yaml::{Node, Tape};
use location::{config_path, named_path};
use options::{ValueCheck, scalar_text};
use section::ConfigSection;

/// The keys that take effect while a server runs (D91), besides [`REFUSED`]; all others need a restart.
const LIVE: [&str; 5] = ["lints", "allowed_labels", "certificate_expiry_days", "sources", "rest_writes"];
/// The section of the provider, and its key that takes effect while a server runs.
const PROVIDER: &str = "openid_connect";
const REFUSED: &str = "refused";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConfigDocument {
    /// Values of options by their long names: `store: /var/lib/edgewright`.
    options: BTreeMap<String, Value>,
    lints: BTreeMap<String, String>,
    /// The label keys that manifests may use.
    allowed_labels: Option<BTreeSet<String>>,
    /// The number of days before a certificate expires that it is reported.
    certificate_expiry_days: Option<u32>,
    sources: Vec<SourceEntry>,
    notifications: NotificationConfig,
    /// The webhooks that `serve` accepts.
    hooks: HooksEntry,
    /// The owners that clients with certificates act as.
    client_certificates: Vec<CertificateOwner>,
    /// The provider through which people sign in.
    openid_connect: Option<OidcConfig>,
    /// The policies for writes over the API to the resources of a source.
    rest_writes: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HooksEntry {
    /// The webhook of forges (D90).
    git: Option<GitHookEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GitHookEntry {
    /// The file with the secret that requests are signed with.
    secret_file: PathBuf,
}

#[derive(Debug, Default)]
pub(crate) struct Config {
    options: BTreeMap<String, Vec<String>>,
    path: PathBuf,
    /// The text, for the lines of errors.
    text: String,
    /// Whether the path was set, rather than found in the working folder.
    named: bool,
    pub has_content: bool,
    keys: Vec<String>,
    /// The values that take effect only at the start of a server, by their paths in the file.
    pub startup_values: BTreeMap<String, Value>,
    /// The errors of each section. They fail only the commands that use it: a mistake in the list of sources must not
    /// prevent a look at the history. Those without a section fail every command.
    errors: Vec<(Option<ConfigSection>, Failure)>,
    pub lints: LintLevels,
    pub sources: Vec<ConfiguredSource>,
    /// The variables with credentials of sources, also of those with errors.
    pub credential_variables: BTreeSet<String>,
    pub notifications: Vec<NotificationTarget>,
    /// The file with the secret of the webhook at `/hooks/git`, if the server accepts it.
    pub git_hook: Option<PathBuf>,
    /// The owners that clients with certificates act as.
    pub client_certificates: Vec<CertificateOwner>,
    /// The provider through which people sign in, if there is one.
    pub openid_connect: Option<OidcConfig>,
    /// The policies for writes over the API to the resources of a source.
    pub rest_writes: WritePolicies,
}

impl Config {
    /// Reads the file named by the environment, or the default one if it exists.
    pub(super) fn read() -> Result<Self, Failure> {
        let (path, is_named) = (config_path(), named_path().is_some());
        let text = if is_named { text::read_named(&path).map(Some) } else { text::read_found(&path) };
        match text.map_err(|fault| unusable(&path, "", &fault))? {
            Some(text) => Ok(Self { named: is_named, ..Self::parse(&path, &text)? }.check_trust()),
            None => Ok(Self::default()),
        }
    }

    /// The path of the file if there is one, and why it is read.
    pub(crate) fn origin(&self) -> Option<(&Path, &'static str)> {
        let why = if self.named { "variable EDGEWRIGHT_CONFIG" } else { "found in the working folder" };
        (!self.path.as_os_str().is_empty()).then_some((self.path.as_path(), why))
    }

    /// Fails with the errors of the sections that a command uses.
    pub(super) fn check(&mut self, used: &[ConfigSection]) -> Result<(), Failure> {
        let errors = std::mem::take(&mut self.errors).into_iter();
        let is_used = |section: Option<ConfigSection>| section.is_none_or(|section| used.contains(&section));
        let (failing, others): (Vec<_>, Vec<_>) = errors.partition(|(section, _)| is_used(*section));
        self.errors = others;
        if failing.is_empty() {
            return Ok(());
        }
        let diagnostics = failing.into_iter().flat_map(|(_, failure)| failure.diagnostics).collect();
        Err(Failure::of_configuration(diagnostics))
    }

    /// Reads the file again, for a server that runs. Once it had content, it must have some: a file that is just being
    /// replaced must not stop all sources.
    pub(super) fn reload(&self) -> Result<Self, Failure> {
        let mut now = Self::read()?;
        now.check(&ConfigSection::ALL)?;
        if self.has_content && !now.has_content {
            let fault = Fault::new(Code::Unreadable, "the file is missing or empty");
            return Err(unusable(&self.path, "", &fault.help("restore the file, or write `{}` to configure nothing")));
        }
        Ok(now)
    }

    pub(super) fn sets(&self, name: &str) -> bool {
        self.options.contains_key(name) && !self.is_refused(name)
    }

    /// The error of a value that an option does not accept.
    pub(super) fn value_failure(&self, error: clap::Error) -> Failure {
        let option = usage::invalid_value(&error).map(|(option, _)| option);
        let text = usage::escape_arguments(error).to_string();
        let reason = text.lines().next().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        let values = text.lines().find_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
        let fault = Fault { help: values.map(str::to_owned), ..Fault::new(Code::Parameter, reason) };
        match option {
            Some(option) if self.options.contains_key(&option) => self.option_failure(&option, fault),
            _ => self.failure_at(fault),
        }
    }

    pub(super) fn causes(&self, error: &clap::Error) -> bool {
        usage::invalid_value(error).is_some_and(|(option, value)| {
            // Some options take several values in one text.
            let is_it = |text: &String| *text == value || text.split(',').any(|part| part == value);
            self.options.get(&option).is_some_and(|values| values.iter().any(is_it))
        })
    }

    /// Adds an error for each option with a value that a command does not accept. Flags and variables of this process do not
    /// count.
    pub(super) fn check_values(&mut self, command: &Command) {
        let mut failures = Vec::new();
        for (name, values) in self.options.iter().filter(|(name, _)| !self.is_refused(name)) {
            let (command, _) = options::set_default(command.clone(), name, Some(values.as_slice()));
            let command = command.mut_args(|argument| argument.env(None::<&'static str>));
            match command.try_get_matches_from([""]) {
                Err(error) if self.causes(&error) => failures.push(self.value_failure(error)),
                _ => {}
            }
        }
        self.errors.extend(failures.into_iter().map(|failure| (Some(ConfigSection::Server), failure)));
    }

    /// The matches of a command that has the values of the file alone; none if one of them is invalid.
    pub(super) fn matches(&self, mut command: Command) -> Option<ArgMatches> {
        for (name, values) in self.options.iter().filter(|(name, _)| !self.is_refused(name)) {
            command = options::set_default(command, name, Some(values.as_slice())).0;
        }
        let command = command.mut_args(|argument| argument.env(None::<&'static str>));
        command.try_get_matches_from([""]).ok()
    }

    pub(super) fn add_error_of_server(&mut self, failure: Failure) {
        self.errors.push((Some(ConfigSection::Server), failure));
    }

    fn option_failure(&self, name: &str, fault: Fault) -> Failure {
        self.failure_at(fault.at(FieldPath::root().join("options").join(name)))
    }

    fn failure_at(&self, fault: Fault) -> Failure {
        unusable(&self.path, &self.text, &fault)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let fail = |fault: &Fault| unusable(path, text, fault);
        if let Some(fault) = limits::yaml_fault(text) {
            return Err(fail(&fault));
        }
        let mut content: Tape = serde_yaml::from_str(text).map_err(|error| unreadable(path, text, &error))?;
        if content.root().is_null() {
            return Ok(Self::default());
        }
        let mut faults = content.take_faults();
        let (file, found) = decode::<ConfigDocument>(content.root(), None);
        faults.extend(found.into_iter().map(|fault| with_place(fault, content.root())));
        faults.extend(empty_values::faults(content.root()));
        let is_readable = file.is_some();
        let file = file.unwrap_or_default();
        let whole: BTreeMap<String, Value> = decode(content.root(), None).0.unwrap_or_default();
        let (keys, startup_values) = (whole.keys().cloned().collect(), startup_values(whole));
        let mut checked = Vec::new();
        let lints = or_default("lints", LintLevels::named(&file.lints, file.allowed_labels), &mut checked);
        let lints = LintLevels { certificate_expiry_days: file.certificate_expiry_days, ..lints };
        let notifications = file.notifications.targets().unwrap_or_else(|found| {
            checked.extend(found.into_iter().map(|fault| under_key("notifications", fault)));
            Vec::new()
        });
        let credential_variables = source_config::credential_variables(&file.sources);
        let sources = source_config::parse_sources(file.sources, &lints).unwrap_or_else(|found| {
            checked.extend(found);
            Vec::new()
        });
        let clients = ClientCertificates::check(&file.client_certificates);
        or_default("client_certificates", clients, &mut checked);
        let provider_faults = file.openid_connect.iter().flat_map(Check::faults);
        checked.extend(provider_faults.map(|fault| under_key(PROVIDER, fault)));
        let rest_writes = or_default("rest_writes", WritePolicy::parse(&file.rest_writes), &mut checked);
        add_checked(&mut faults, checked);
        let section = |fault: &Fault| ConfigSection::from_path(&fault.path).filter(|_| is_readable);
        let errors = faults.iter().map(|fault| (section(fault), fail(fault))).collect();
        let options = file.options.into_iter().map(|(name, value)| (name, option_values(value))).collect();
        let git_hook = file.hooks.git.map(|hook| hook.secret_file);
        Ok(Self {
            options,
            path: path.to_owned(),
            text: text.to_owned(),
            named: false,
            has_content: true,
            keys,
            startup_values,
            errors,
            lints,
            sources,
            credential_variables,
            notifications,
            git_hook,
            client_certificates: file.client_certificates,
            openid_connect: file.openid_connect,
            rest_writes,
        })
    }

    /// Sets the configured values as defaults of the options in every command. Flags and the environment take
    /// precedence. Fails with all errors of the file if one fails every command.
    pub(super) fn apply(&self, mut command: Command) -> Result<Command, Failure> {
        let mut unusable = Vec::new();
        for (name, values) in &self.options {
            let set = Some(values.as_slice()).filter(|_| !self.is_refused(name));
            let (with_default, checked) = options::set_default(command, name, set);
            command = with_default;
            match checked {
                ValueCheck::Set => {}
                ValueCheck::OneValue => unusable.push(self.list_of_one_value(name, values.len())),
                ValueCheck::Unknown => unusable.push(self.unknown_option(name, &command)),
            }
        }
        if unusable.is_empty() && self.errors.iter().all(|(section, _)| section.is_some()) {
            return Ok(command);
        }
        let of_content = self.errors.iter().filter(|(section, _)| *section != Some(ConfigSection::Trust));
        let failures = of_content.map(|(_, failure)| failure).chain(&unusable);
        let diagnostics = failures.flat_map(|failure| &failure.diagnostics).cloned().collect();
        Err(Failure::of_configuration(diagnostics))
    }

    fn list_of_one_value(&self, name: &str, found: usize) -> Failure {
        let message = format!("option `{name}` takes one value (found {found})");
        self.option_failure(name, Fault::new(Code::Parameter, message).help("write one value instead of a list"))
    }

    fn unknown_option(&self, name: &str, command: &Command) -> Failure {
        let fault = Fault::new(Code::UnknownField, format!("unknown option `{name}`"));
        let near = nearest(name, options::names(command)).map(|near| format!("did you mean `{near}`?"));
        self.option_failure(name, Fault { help: near, ..fault })
    }
}

/// The values of an option: one, or those of a list.
fn option_values(value: Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.into_iter().map(scalar_text).collect(),
        value => vec![scalar_text(value)],
    }
}

/// Adds what checks found to the faults of decoding. What is wrong with an entry that was only read in part may be a
/// consequence.
fn add_checked(faults: &mut Vec<Fault>, checked: Vec<Fault>) {
    let unreadable = faults.len();
    add_new_faults(faults, checked);
    let checked = faults.split_off(unreadable);
    let decoding: Vec<FieldPath> = faults.iter().map(|fault| fault.path.clone()).collect();
    let is_consequence = |fault: &Fault| {
        let own = entry(&fault.path);
        decoding.iter().map(entry).any(|other| own.starts_with(other) || other.starts_with(own))
    };
    faults.extend(checked.into_iter().filter(|fault| !is_consequence(fault)));
}

/// The path of the first list's entry that a field is in, or its whole path if it is in no list.
fn entry(path: &FieldPath) -> &[Segment] {
    path.0.split_inclusive(|step| matches!(step, Segment::Index(_))).next().unwrap_or_default()
}

/// The value of a key, or its default after a fault, which is added to others.
fn or_default<T: Default>(key: &str, checked: Result<T, Fault>, faults: &mut Vec<Fault>) -> T {
    checked.unwrap_or_else(|fault| {
        faults.push(under_key(key, fault));
        T::default()
    })
}

/// Says where an option belongs that is beside `options`: its value is no list and no mapping.
fn with_place(fault: Fault, root: Node<'_>) -> Fault {
    let value = fault.unknown_field().and_then(|field| root.get(field));
    if value.is_none_or(|value| value.entries().is_some() || value.items().is_some()) {
        return fault;
    }
    fault.help("set an option of the command line below `options`, as in `options: {store: edgewright.db}`")
}

fn under_key(key: &str, fault: Fault) -> Fault {
    let path = fault.path.under(&FieldPath::root().join(key));
    fault.at(path)
}

/// The values of a file that take effect only at the start, by their paths.
fn startup_values(whole: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut startup_values = BTreeMap::new();
    for (key, value) in whole {
        let place = FieldPath::root().join(key.as_str());
        match value {
            _ if LIVE.contains(&key.as_str()) => {}
            Value::Object(options) if key == "options" => {
                let options = options.into_iter().map(|(name, value)| (place.join(name.as_str()).to_string(), value));
                startup_values.extend(options);
            }
            Value::Object(mut provider) if key == PROVIDER => {
                provider.remove(REFUSED);
                startup_values.insert(place.to_string(), Value::Object(provider));
            }
            value => drop(startup_values.insert(place.to_string(), value)),
        }
    }
    startup_values
}

/// The failure for a fault in a file, with the line of its field.
fn unusable(path: &Path, text: &str, fault: &Fault) -> Failure {
    let place = place_in(text, fault);
    let message = format!("invalid configuration {}{place}: {}", path.display(), fault.message);
    Failure::of_configuration(vec![Diagnostic { help: fault.help.clone(), ..Diagnostic::error(fault.code, message) }])
}

/// The failure for a file that is no YAML, with the lines around the error.
fn unreadable(path: &Path, text: &str, error: &serde_yaml::Error) -> Failure {
    let TextFault { span, help, .. } = unreadable_yaml(text, error);
    let message = format!("invalid configuration {}: {}", path.display(), syntax::reason_and_place(error));
    let file = Arc::new(SourceFile::new(path.display().to_string(), text.to_owned()));
    let fault = Diagnostic::error(Code::Syntax, message).help(help);
    Failure::of_configuration(vec![Diagnostic { place: Some(Place { file, span }), ..fault }])
}

/// Says where a fault is in a YAML file, such as ` at /sources/0/name (line 3)`; empty if it is in no field.
pub(super) fn place_in(text: &str, fault: &Fault) -> String {
    if fault.path.0.is_empty() {
        return String::new();
    }
    let file = ManifestFile::new(String::new(), text.to_owned(), PathBuf::new(), PathBuf::new());
    let (line, _) = file.place(file.map().locate(0, &fault.path, fault.target)).line_column();
    format!(" at {} (line {line})", fault.path)
}

/// The property of any text: it is a configuration, or there is an error.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzzed(text: &str) {
    if let Err(failure) = Config::parse(Path::new("fuzzed.yaml"), text) {
        assert!(!failure.diagnostics.is_empty());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        let checked = Config::parse(Path::new("c.yaml"), text).and_then(|mut config| {
            config.check(&ConfigSection::ALL)?;
            Ok(config)
        });
        checked.map_err(|failure| failure.diagnostics.into_iter().map(|it| it.message).collect())
    }

    #[test]
    fn deep_nesting_is_refused_before_it_is_read() {
        let error = parsed(&format!("lints: {{}}\noptions: {}", "[".repeat(100_000))).err().unwrap_or_default();
        assert!(error.contains("nest more than 128 levels deep, at line 2"), "{error}");
    }

    #[test]
    fn what_a_server_reads_only_at_its_start_is_told_apart() {
        let text = "options: {store: a, manifests: [b]}\nlints: {team-format: deny}\nsources: [{name: a, path: a}]\n\
                    allowed_labels: [a]\ncertificate_expiry_days: 3\n";
        let config = parsed(text).unwrap();
        assert_eq!(config.startup_values.keys().collect::<Vec<_>>(), ["/options/manifests", "/options/store"]);
        assert!(config.has_content && !parsed("# nothing\n").unwrap().has_content);
        assert!(parsed("{}").unwrap().has_content);
    }

    #[test]
    fn an_error_of_a_field_names_its_line() {
        let found = parsed("lints: {}\nsources:\n- {name: a, path: a}\n- name: b\n  path: b\n  interval: soon\n");
        let expected = "invalid configuration c.yaml at /sources/1/interval (line 6): expected a duration";
        assert!(found.as_ref().is_err_and(|message| message.starts_with(expected)), "{found:?}");
    }

    #[test]
    fn an_error_of_a_part_fails_only_those_who_use_it() {
        let fails = |text: &str, used: &[ConfigSection]| {
            let config = Config::parse(Path::new("c.yaml"), text);
            config.and_then(|mut config| config.check(used)).is_err()
        };
        for (text, lints, server) in [
            ("sources: [{name: a, path: a, interval: soon}]", false, true),
            ("sources: [{name: a, path: a, nope: 1}]", false, true),
            ("sources: 7", false, true),
            ("hooks: {git: {}}", false, true),
            ("notifications: {files: [{name: a}]}", false, true),
            ("lints: {nope: warn}", true, false),
            ("certificate_expiry_days: soon", true, false),
            ("allowed_labels: {a: 1}", true, false),
        ] {
            let found = [fails(text, &[]), fails(text, &[ConfigSection::Lints]), fails(text, &[ConfigSection::Server])];
            assert_eq!(found, [false, lints, server], "{text}");
        }
        for text in ["source: []", "options: [a]", "options: {store: a, store: b}", "sources: ["] {
            assert!(fails(text, &[]), "{text}");
        }
    }
}
