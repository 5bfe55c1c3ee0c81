//! The options of `keys create` for the scope of a key (D101).

use super::role::scope_role;
use crate::cli::input::choice::Choice;
use crate::cli::prelude::*;
use crate::model::KeyScope;
use crate::model::key_scope::WriteAction;
use crate::reconcile::check_new_source;

/// The scope of the key. Without any of these options, it may do what its owner's role allows.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = help::SCOPE)]
pub(super) struct ScopeArgs {
    /// Highest role of the key, below that of its owner: viewer, planner, editor or admin.
    #[arg(long, value_name = "ROLE", env = "EDGEWRIGHT_SCOPE_ROLE")]
    #[arg(value_parser = scope_role(), hide_possible_values = true)]
    scope_role: Option<Role>,
    /// Source that the key may plan; can end in `*`. Repeatable.
    #[arg(long, value_name = "SOURCE", env = "EDGEWRIGHT_SCOPE_PLAN", value_delimiter = ',', value_parser = sources)]
    plan: Vec<String>,
    /// Source that the key may plan, apply and change; can end in `*`. Repeatable.
    #[arg(long, value_name = "SOURCE", env = "EDGEWRIGHT_SCOPE_APPLY", value_delimiter = ',', value_parser = sources)]
    apply: Vec<String>,
    /// Kind that the key may change without a source, or `*`. Repeatable.
    #[arg(long, value_name = "KIND", env = "EDGEWRIGHT_SCOPE_KINDS", value_delimiter = ',')]
    kind: Vec<String>,
    /// Allowed change: create, update or delete (default: all). Repeatable.
    #[arg(long, value_name = "ACTION", env = "EDGEWRIGHT_SCOPE_ACTIONS", value_delimiter = ',')]
    #[arg(value_parser = action(), hide_possible_values = true)]
    action: Vec<WriteAction>,
    /// Host for edges, such as *.docs.example.com (default: any). Repeatable.
    #[arg(long, value_name = "HOST", env = "EDGEWRIGHT_SCOPE_HOSTS", value_delimiter = ',')]
    host: Vec<String>,
    /// Let the key see all secrets, not only those of sources it may apply.
    #[arg(long, env = "EDGEWRIGHT_SCOPE_SECRETS")]
    all_secrets: bool,
    /// Let the key change what affects every source, such as IP restrictions.
    #[arg(long, env = "EDGEWRIGHT_SCOPE_GLOBAL")]
    global: bool,
    /// Time at which the key expires, such as 2027-01-31T18:00:00Z.
    #[arg(help_heading = help::VALIDITY)]
    #[arg(long, value_name = "TIME", env = "EDGEWRIGHT_SCOPE_EXPIRES_AT")]
    #[arg(default_value = "", hide_default_value = true)]
    expires_at: String,
    /// Network that the key works from, such as 192.0.2.0/24 (default: any). Repeatable.
    #[arg(help_heading = help::VALIDITY)]
    #[arg(long, value_name = "NETWORK", env = "EDGEWRIGHT_SCOPE_ADDRESSES", value_delimiter = ',')]
    address: Vec<String>,
}

impl ScopeArgs {
    pub(super) fn scope(self) -> Option<KeyScope> {
        let scope = KeyScope {
            role: self.scope_role,
            plan: self.plan,
            apply: self.apply,
            kinds: self.kind,
            actions: self.action,
            hosts: self.host,
            secrets: self.all_secrets,
            global: self.global,
            expires_at: self.expires_at,
            addresses: self.address,
        };
        (scope != KeyScope::default()).then_some(scope)
    }
}

/// Returns a warning for each name in a scope that selects none of the known sources: it may be misspelt.
pub(super) fn unknown_sources(scope: &KeyScope, known: &[String]) -> Vec<String> {
    let warning = |pattern: &str| {
        let name = pattern.strip_suffix('*').unwrap_or(pattern);
        let has = if name == pattern { "is called" } else { "begins with" };
        let warning = format!("No source {has} `{}` yet.", printable(name));
        match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("{warning} Did you mean `{}`?", printable(near)),
            None => warning,
        }
    };
    scope.unmatched(known).into_iter().map(warning).collect()
}

/// Refuses the scope of a new key that could never work with the role of its owner.
pub(super) fn check_usable(scope: &KeyScope, role: Option<Role>) -> Result<(), Failure> {
    if let Some(fault) = scope.past_expiry(None, clock::now()) {
        let message = format!("--expires-at {} is in the past", printable(&scope.expires_at));
        return Err(Diagnostic::error(fault.code, message).help("set a later time, or omit --expires-at").into());
    }
    let Some(fault) = scope.gateway_fault().filter(|_| role == Some(Role::Gateway)) else { return Ok(()) };
    let sources = [("--plan", &scope.plan), ("--apply", &scope.apply)];
    let given: Vec<&str> = sources.iter().filter(|(_, names)| !names.is_empty()).map(|(option, _)| *option).collect();
    let others = KeyScope { plan: Vec::new(), apply: Vec::new(), ..scope.clone() };
    let help = match (given.is_empty(), others == KeyScope::default()) {
        (false, true) => format!("omit {}", given.join(" and ")),
        (false, false) => format!("omit {}, and add --all-secrets", given.join(" and ")),
        (true, _) => "add --all-secrets".to_owned(),
    };
    Err(Diagnostic::error(fault.code, fault.message).help(help).into())
}

/// Returns a note for a key that may apply no source, although its scope lists some to apply.
pub(super) fn plans_only(scope: &KeyScope, owner: Role) -> Option<String> {
    let role = scope.role.map_or(owner, |most| most.min(owner));
    if scope.apply.is_empty() || !matches!(role, Role::Viewer | Role::Planner) {
        return None;
    }
    let sources = match scope.apply.as_slice() {
        _ if scope.may_apply_all() => "every source".to_owned(),
        [source] => format!("source {}", printable(source)),
        sources => format!("sources {}", printable(&sources.join(", "))),
    };
    Some(format!("The role {} cannot apply: this key can only plan {sources}.", role.as_str()))
}

/// Parses the name of a source, or the start of several names. No new source can have another one.
fn sources(text: &str) -> Result<String, String> {
    let name = text.strip_suffix('*').unwrap_or(text);
    if name.contains('*') {
        return Err("`*` can only end the name of a source, such as `shop-*`".to_owned());
    }
    if text != "*" {
        check_new_source(name).map_err(|fault| fault.message)?;
    }
    Ok(text.to_owned())
}

fn action() -> Choice<WriteAction> {
    let parse = |text: &str| WriteAction::from_name(text).ok_or_else(|| "expected create, update or delete".to_owned());
    Choice::new(parse, || WriteAction::ALL.map(|action| action.as_str().to_owned()).to_vec())
}
