//! The table of all ways between sources. `edgewright explain tenancy` prints it, docs/explanation/tenancy.md has it, and a test in
//! tests/it/security/tenancy has a case for each row. A new way needs a row before it needs code.

use std::fmt;

/// Who decides whether a source may change what another one's requests meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decider {
    /// Nobody may.
    Forbidden,
    /// The source that is affected, in its own manifests.
    Consent,
    /// An admin, in the scope of an API key or of a followed source.
    Reserved,
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decider::Forbidden => "forbidden",
            Decider::Consent => "consent",
            Decider::Reserved => "reserved",
        })
    }
}

/// A way in which one source could change what the requests of another one meet.
#[derive(Debug)]
struct Rule {
    /// The name.
    name: &'static str,
    /// What a source could do.
    way: &'static str,
    /// Who decides.
    decider: Decider,
    /// How they decide.
    how: &'static str,
}

const fn rule(name: &'static str, way: &'static str, decider: Decider, how: &'static str) -> Rule {
    Rule { name, way, decider, how }
}

/// Every way.
static RULES: [Rule; 22] = [
    rule(
        "hostport",
        "Serve a host of another source's edge on any port, or a host below its wildcard or a wildcard above its hosts on the same port",
        Decider::Consent,
        "`delegates_to` of that edge with `path_prefix: /`; otherwise `NOT_DELEGATED`",
    ),
    rule(
        "hostport-without-source",
        "Serve a host of an edge that no source owns",
        Decider::Forbidden,
        "Adopt the edge with `metadata.id`; an API key with a scope needs `HttpsEdge` in `kinds` for that, and a repository `adopt`",
    ),
    rule(
        "new-host",
        "Take a host that no edge has yet, such as one that another team will need",
        Decider::Reserved,
        "`hosts` in the scope of an API key and of a followed source; without it, whoever comes first",
    ),
    rule(
        "route-without-source",
        "Add a route to an edge that no source owns",
        Decider::Reserved,
        "`HttpsEdge` in `kinds` of the scope of an API key, and in `adopt` of that of a repository",
    ),
    rule(
        "route",
        "Add a route to another source's edge, or move one there",
        Decider::Consent,
        "`delegates_to` of that edge with a prefix of the route's path; otherwise `NOT_DELEGATED`",
    ),
    rule(
        "required-module",
        "Leave a module out of a route on another source's edge that requires it",
        Decider::Forbidden,
        "`REQUIRED_MODULE`; the source of the edge changes `required_modules`",
    ),
    rule(
        "certificate",
        "Present a certificate for a host of another source's edge",
        Decider::Consent,
        "`certificates_from` of that edge; the gateway configuration has no other certificate of a source there",
    ),
    rule(
        "certificate-without-source",
        "Create, adopt, release or delete a certificate without a source, which edges present for hosts without one of their own",
        Decider::Reserved,
        "`global` in the scope of an API key; a repository needs `TlsCertificate` in `adopt`",
    ),
    rule(
        "name",
        "Take a name that another source uses: of an authority, an edge or any other resource",
        Decider::Forbidden,
        "A reference that several sources could mean is `AMBIGUOUS_REFERENCE` and needs `SOURCE/NAME`, one that has resolved keeps its resource, and each source has its own resource of a name",
    ),
    rule(
        "id",
        "Change, adopt or delete a resource of another source by its ID",
        Decider::Forbidden,
        "`OWNER_CONFLICT` in manifests; over the API, the right to apply the other source, and its `rest_writes`",
    ),
    rule(
        "transfer",
        "Move a resource from one source to another",
        Decider::Consent,
        "`transfer_to` in the manifest of the source that has it; by command, the right to apply both",
    ),
    rule(
        "adoption",
        "Adopt or change a resource that no source owns",
        Decider::Reserved,
        "`kinds` in the scope of an API key, and `secrets` to adopt one with secrets; a repository beside other sources needs `adopt`",
    ),
    rule(
        "release",
        "Give a resource up, so that no source owns it",
        Decider::Reserved,
        "As for the creation of one without a source: `kinds`, and `global` for certificates",
    ),
    rule(
        "global-kind",
        "Create, change or delete what acts on every source: `IpRestriction`",
        Decider::Reserved,
        "`global` in the scope of an API key, `kinds` in the scope of a followed source",
    ),
    rule(
        "api-key",
        "Create an API key with more rights, or change or delete that of somebody else",
        Decider::Reserved,
        "An API key with a scope manages only keys of its own owner within its own role and scope; a followed repository needs `ApiKey` in the `kinds` of its `scope`, the owner's role in `roles`, and a `token_folder`, and its keys a `scope` within its own source",
    ),
    rule(
        "event-source",
        "Add an event type to a subscription that another source declares",
        Decider::Reserved,
        "By name, each source has its own subscription. By ID, an API key with a scope or a repository needs the right to apply every source that declares a type of it; a type that another source declares is `OWNER_CONFLICT`",
    ),
    rule(
        "event-subscription",
        "Declare the event subscription of somebody else, which is a record of another system, before its owner does",
        Decider::Reserved,
        "`EventSubscription` in the `kinds` of an API key, or in `adopt` of a repository, to declare a new one by its ID; from then on, it belongs to that source",
    ),
    rule(
        "tls-edge",
        "Configure the TLS edge of somebody else, which is a record of another system, before its owner does",
        Decider::Reserved,
        "`TlsEdge` in the `kinds` of an API key, or in `adopt` of a repository, to declare one by its ID; from then on, it belongs to that source, which needs no right to declare it again after others deleted it",
    ),
    rule(
        "module-set",
        "Change the modules of another source's routes by a set that they use",
        Decider::Consent,
        "A set counts only for runs that name its file with `--with` or `with`",
    ),
    rule(
        "deletion",
        "Delete what another source uses, or keep another source from its changes by using what it deletes",
        Decider::Forbidden,
        "`IN_USE`: the resource is kept, with a warning that names what uses it, until nothing does; everything else of the source is applied",
    ),
    rule(
        "rollback",
        "Bring back a state in which another source had less",
        Decider::Reserved,
        "An API key needs the right to apply every source that the rollback changes, and the consent above",
    ),
    rule(
        "history",
        "Push the records of others out of the history",
        Decider::Forbidden,
        "An owner of API keys, and each followed source, fills at most an eighth of the history in a day (D77)",
    ),
];

/// The table as Markdown.
pub(crate) fn table() -> String {
    let rows = RULES.iter().map(|it| format!("| `{}` | {} | {} | {} |\n", it.name, it.way, it.decider, it.how));
    let head = "| Rule | A source could | Decided by | How |\n| --- | --- | --- | --- |\n";
    [head.to_owned()].into_iter().chain(rows).collect()
}
