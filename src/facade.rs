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
    pub use crate::{
        model::{
            Kind,
            endpoint_offers::{Offer, Offers},
            id::Id,
            key::Key,
            kind_info::KindInfo,
        },
        store::{clock::now, ids::fresh_id, tokens::token as new_token},
    };

    // Content.
    pub use crate::model::{
        any_resource::{AccessList, AnyResource, ViewContext},
        base_urls::{BaseUrls, Ref},
        key_scope::{KeyScope, WriteAction},
        kind::{
            api_key::ApiKey,
            certificate_authority::{CaPem, CertificateAuthority},
            event_source::EventSource,
            event_subscription::EventSubscription,
            https_edge::{Delegation, HttpsEdge},
            https_edge_route::{HttpsEdgeRoute, MatchType},
            ip_restriction::{IpRestriction, Traffic},
            owner::{Owner, Role},
            tls_certificate::{CertificatePem, TlsCertificate},
            tls_edge::TlsEdge,
        },
        module::{slot::Slot, traits::AnyModule},
        reference::Reference,
        secrets::{
            secret::{MASK, Secret},
            secret_spans::SecretSpans,
            serialization_mode::{Review, Secrets},
            text::{Reading, Text},
        },
        traffic::{Stage, Step},
    };

    // Rules.
    pub use crate::model::diagnostics::fault::{Check, Fault, FaultTarget, Faults, Path as FieldPath, Segment};

    // Change.
    pub use crate::model::{
        author::{Author, RejectedManifests},
        claim::Claim,
        desired::Desired,
        operation::Operation,
        snapshot::{Entry, Refusal, Rendered, RenderedForms, Tombstone},
    };

    pub mod modules {
        //! The traffic modules that edges and routes host.

        pub use crate::model::module::{
            backend::Backend,
            circuit_breaker::CircuitBreaker,
            compression::Compression,
            headers::{RequestHeaders, ResponseHeaders},
            ip_restriction::EndpointIpRestriction,
            jwt_validation::{
                AllowList, AllowedValue, JwtValidation, KeySources, Keys, Signatures, Token, TokenMethod, TokenPlaces,
                TokenType,
            },
            mutual_tls::MutualTls,
            oauth::{GithubApp, Oauth, OauthApp, Provider},
            oidc::Oidc,
            policies::{EndpointAction, EndpointPolicy, Policies},
            saml::{IdpMetadata, NAMEID_FORMATS, Saml},
            tls_termination::{TerminateAt, TlsTermination, TlsVersion},
            user_agent_filter::UserAgentFilter,
            webhook_verification::{PROVIDERS as WEBHOOK_PROVIDERS, WebhookVerification},
            websocket_tcp_converter::WebsocketTcpConverter,
        };
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
    pub use crate::{
        lint::{LINTS, Level, Lint},
        model::{
            diagnostics::{
                code::{CodeInfo, REGISTRY as CODES},
                diagnostic::{Cause, Name, Place, Severity, SourceFile},
            },
            drift::{Drift, DriftState, FieldDrift},
        },
    };

    // Plans.
    pub use crate::{
        plan::{
            Change, Effect, Exposure, KeptResource, Summary,
            redacted_plan::{Call, RedactedChange, RedactedPlan},
        },
        tenancy::certificates::LostCertificate,
    };

    // Traces.
    pub use crate::routing::{EdgeChoice, HostRank, Named, PipelineStep, RouteCandidate, RouteDecision, StepEffect};

    // Formats.
    pub use crate::{
        model::json::JsonError,
        plan::{
            format::{Format, render},
            report::Report,
        },
    };
}

pub mod storage {
    //! What a store does and keeps: commits, history, and the engine that makes them durable.
    //!
    //! [`Store::open`](crate::Store::open) uses a folder or memory. For other storage, implement [`Engine`] and pass it to
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
    pub use crate::store::{
        Attempt, Commit, CommitError, Committed, Declined, MEMORY, Revision, RevisionError, StoreError,
    };

    // Changes.
    pub use crate::store::revision::{ChangeEvent, ChangedResource};

    // History.
    pub use crate::store::commit::header::{
        CommitHeader, Outcome, Places, Record, ResourceChange, Retention, RevertedDrift, ScrubbedRecord, Verified,
    };

    // Engines.
    pub use crate::store::{
        commit::{
            batch::{Batch, Tip},
            entries::{CommitEntries, CommitEntry, Hash},
        },
        engine::{
            BatchEdit, BatchVisit, Engine, OnDisk, Query, ResourceHistoryQuery, ResourceHistoryVisit, State, Statistics,
        },
        memory::MemoryEngine,
    };

    // Backups.
    pub use crate::store::maintenance::backup::Backup;

    // Secrets at rest.
    pub use crate::store::seal::{Keyring, MasterKeySource};
}
