//! The groups of the public API: re-exports for programs that embed the library.

pub mod resources {
    //! Resources: their kinds, keys and Specs, and the operations that change them.
    //!
    //! A Spec is the typed content of a resource. It implements serde's traits, so it can be read from JSON or YAML, and
    //! it is stored behind [`AnyResource`], the form for all kinds. [`Check::faults`] returns the violations of its rules.
    //!
    //! ```
    //! use std::sync::Arc;
    //!
    //! use edgewright::{
    //!     Snapshot,
    //!     resources::{Check, HttpsEdge, Key, Kind, Operation, fresh_id, now},
    //! };
    //!
    //! let edge = HttpsEdge { hostports: vec!["shop.example.com:443".into()], ..HttpsEdge::default() };
    //! assert!(edge.faults().is_empty());
    //! let key = Key::new(Kind::HttpsEdge, fresh_id(Kind::HttpsEdge));
    //! let create = Operation::Create { key: key.clone(), spec: Arc::new(edge), claim: None, token: None };
    //!
    //! let (snapshot, changed) = Snapshot::default().apply(&[create], now()).map_err(|refusal| format!("{refusal:?}"))?;
    //! assert!(changed.contains(&key));
    //! let entry = snapshot.get(&key).ok_or("the edge is missing")?;
    //! let edge = entry.spec_as::<HttpsEdge>().ok_or("not an edge")?;
    //! assert_eq!(edge.hostports, ["shop.example.com:443"]);
    //! # Ok::<(), Box<dyn std::error::Error>>(())
    //! ```

    // Identity.
    pub use crate::model::Kind;
    pub use crate::model::id::Id;
    pub use crate::model::key::Key;
    pub use crate::model::resource::endpoint_offers::{Offer, Offers};
    pub use crate::model::resource::kind_info::KindInfo;
    pub use crate::store::clock::now;
    pub use crate::store::ids::fresh_id;
    pub use crate::store::tokens::token as new_token;

    // Content.
    pub use crate::model::base_urls::{BaseUrls, Ref};
    pub use crate::model::key_scope::{KeyScope, WriteAction};
    pub use crate::model::kind::api_key::ApiKey;
    pub use crate::model::kind::certificate_authority::{CaPem, CertificateAuthority};
    pub use crate::model::kind::event_source::EventSource;
    pub use crate::model::kind::event_subscription::EventSubscription;
    pub use crate::model::kind::https_edge::{Delegation, HttpsEdge};
    pub use crate::model::kind::https_edge_route::{HttpsEdgeRoute, MatchType};
    pub use crate::model::kind::invariant::{Invariant, InvariantExemption, InvariantScope, UnprovenLevel};
    pub use crate::model::kind::ip_restriction::{IpRestriction, Traffic};
    pub use crate::model::kind::owner::{Owner, Role};
    pub use crate::model::kind::tls_certificate::{CertificatePem, TlsCertificate};
    pub use crate::model::kind::tls_edge::TlsEdge;
    pub use crate::model::module::admission::{AccessChange, Admittance};
    pub use crate::model::module::slot::Slot;
    pub use crate::model::module::traits::AnyModule;
    pub use crate::model::reference::Reference;
    pub use crate::model::resource::any_resource::{AccessList, AnyResource, ViewContext};
    pub use crate::model::route_test::{ExpectedHeaders, RouteTest, TestExpectation, TestedRequest};
    pub use crate::model::secrets::secret::{MASK, Secret};
    pub use crate::model::secrets::secret_spans::SecretSpans;
    pub use crate::model::secrets::serialization_mode::{Review, Secrets};
    pub use crate::model::secrets::text::{Reading, Text};
    pub use crate::model::traffic::{HeaderChange, RequestVerdict, Stage, Step, StepOutcome};

    // Rules.
    pub use crate::model::diagnostics::fault::{Check, Fault, FaultTarget, Faults, Path as FieldPath, Segment};

    // Change.
    pub use crate::model::author::{Author, RejectedManifests};
    pub use crate::model::claim::Claim;
    pub use crate::model::desired::Desired;
    pub use crate::model::operation::Operation;
    pub use crate::model::snapshot::Refusal;
    pub use crate::model::snapshot::entry::{Entry, Rendered, RenderedForms, Tombstone};

    pub mod modules {
        //! The traffic modules that edges and routes host.

        pub use crate::model::module::backend::Backend;
        pub use crate::model::module::circuit_breaker::CircuitBreaker;
        pub use crate::model::module::compression::Compression;
        pub use crate::model::module::headers::{RequestHeaders, ResponseHeaders};
        pub use crate::model::module::ip_restriction::EndpointIpRestriction;
        pub use crate::model::module::jwt_validation::{
            AllowList, AllowedValue, JwtValidation, KeySources, Keys, Signatures, Token, TokenMethod, TokenPlaces,
            TokenType,
        };
        pub use crate::model::module::mutual_tls::MutualTls;
        pub use crate::model::module::oauth::{GithubApp, Oauth, OauthApp, Provider};
        pub use crate::model::module::oidc::Oidc;
        pub use crate::model::module::policies::{EndpointAction, EndpointPolicy, Policies};
        pub use crate::model::module::saml::{IdpMetadata, NAMEID_FORMATS, Saml};
        pub use crate::model::module::tls_termination::{TerminateAt, TlsTermination, TlsVersion};
        pub use crate::model::module::user_agent_filter::UserAgentFilter;
        pub use crate::model::module::webhook_verification::{PROVIDERS as WEBHOOK_PROVIDERS, WebhookVerification};
        pub use crate::model::module::websocket_tcp_converter::WebsocketTcpConverter;
    }
}

pub mod report {
    //! Reports: diagnostics with their places and codes, the parts of plans and traces, and output formats.
    //!
    //! ```
    //! use edgewright::{
    //!     LintLevels, Sent, SentFile,
    //!     report::{CODES, Format, Name, render},
    //!     validate,
    //! };
    //!
    //! let text = "kind: HttpsEdge\n".to_owned();
    //! let tree = Sent::new(vec![SentFile::new("shop.yaml", text)], None);
    //! let report = validate(&tree, &LintLevels::default()).report("validate");
    //! assert!(report.has_errors());
    //! let registered = |name: Name| matches!(name, Name::Code(code) if CODES.iter().any(|info| info.code == code));
    //! assert!(report.diagnostics.iter().all(|it| registered(it.code)));
    //! assert!(render(Format::Github, &report)?.starts_with("::error file=shop.yaml,"));
    //! # Ok::<(), edgewright::report::JsonError>(())
    //! ```

    // Diagnostics.
    pub use crate::lint::{LINTS, Level, Lint};
    pub use crate::model::diagnostics::code::{CodeInfo, REGISTRY as CODES};
    pub use crate::model::diagnostics::diagnostic::{Cause, Name, Place, Severity, SourceFile};
    pub use crate::model::diagnostics::invariant_finding::InvariantFinding;
    pub use crate::model::drift::{Drift, DriftState, FieldDrift};

    // Plans.
    pub use crate::plan::proof_report::{InvariantProof, ProofReport, ProofRequest};
    pub use crate::plan::redacted_plan::{Call, RedactedChange, RedactedPlan};
    pub use crate::plan::{
        AccessWarning, BehaviourChange, BehaviourDiff, Change, Effect, KeptResource, PlanEffects, RequestPattern,
        Summary,
    };
    pub use crate::routing::invariant::ProofAnswer;
    pub use crate::tenancy::certificates::LostCertificate;

    // Traces.
    pub use crate::routing::{EdgeChoice, HostRank, Named, PipelineStep, RouteCandidate, RouteDecision, StepEffect};

    // Formats.
    pub use crate::model::json::JsonError;
    pub use crate::plan::format::{Format, render};
    pub use crate::plan::report::Report;
    pub use crate::plan::test_report::{
        CoveredItems, LiveComparison, TestCoverage, TestOutcome, TestReport, TestResult,
    };
}

pub mod storage {
    //! What a store does and keeps: commits, history, and the engine that makes them durable.
    //!
    //! [`Store::open`](crate::Store::open) uses a folder, memory or a database of PostgreSQL. For other storage, implement [`Engine`] and pass it to
    //! [`Store::with_engine`](crate::Store::with_engine).
    //!
    //! ```
    //! use edgewright::{
    //!     Store,
    //!     resources::Author,
    //!     storage::{Attempt, MEMORY, Outcome, Query},
    //! };
    //!
    //! let store = Store::open(MEMORY)?;
    //! store.note(Attempt::new(Author::Local), Outcome::Refused, "out of office".into())?;
    //! let records = store.history(&Query::All, u64::MAX, 10)?;
    //! assert_eq!((records.len(), records[0].outcome), (1, Outcome::Refused));
    //! assert_eq!(store.verify()?.records, 1);
    //! # Ok::<(), edgewright::storage::StoreError>(())
    //! ```

    // Commits.
    pub use crate::store::{Attempt, CommitError, Declined, MEMORY, Revision, RevisionError, StoreError};

    // Changes.
    pub use crate::store::revision::{ChangeEvent, ChangedResource};

    // History.
    pub use crate::store::commit::header::{
        CommitHeader, Outcome, Places, Record, ResourceChange, Retention, RevertedDrift, ScrubbedRecord, Verified,
    };

    // Engines.
    pub use crate::store::commit::batch::{Batch, Tip};
    pub use crate::store::commit::entries::{CommitEntries, CommitEntry, Hash};
    pub use crate::store::engine::{
        BatchEdit, BatchVisit, Engine, FollowedWriter, Forgotten, History, OnDisk, Outage, Query, ResourceHistoryQuery,
        ResourceHistoryVisit, SidecarFiles, State, StateRecords, Statistics,
    };
    pub use crate::store::memory::MemoryEngine;

    // Backups.
    pub use crate::store::maintenance::backup::Backup;

    // Secrets at rest.
    pub use crate::store::seal::{Keyring, MasterKeySource};
}
