//! The reference points of the command line: what any program must do that reads the files, and what a program does that
//! only parses them into types.

use std::{
    collections::BTreeMap,
    fmt, fs,
    hint::black_box,
    path::PathBuf,
    time::{Duration, Instant},
};

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde::{
    Deserialize,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};

/// The threads that read and hash: more gain nothing on files in the page cache.
const READERS: usize = 2;

/// Reads and hashes all files, and returns the time.
pub(crate) fn read_and_hash(files: &[PathBuf]) -> Duration {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(READERS).build().unwrap();
    let began = Instant::now();
    let hashes: Vec<blake3::Hash> =
        pool.install(|| files.par_iter().map(|file| blake3::hash(&fs::read(file).unwrap())).collect());
    let time = began.elapsed();
    assert_eq!(black_box(hashes).len(), files.len());
    time
}

/// Parses all files with serde_yaml on all threads, and returns the time and the number of routes.
pub(crate) fn parse(files: &[PathBuf]) -> (Duration, usize) {
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let began = Instant::now();
    let documents: Vec<Vec<Document>> = texts.par_iter().map(|text| documents(text)).collect();
    let time = began.elapsed();
    let routes = documents.iter().flatten().map(Document::routes).sum();
    black_box(documents);
    (time, routes)
}

fn documents(text: &str) -> Vec<Document> {
    let parsed =
        serde_yaml::Deserializer::from_str(text).map(|document| Option::<Document>::deserialize(document).unwrap());
    parsed.flatten().collect()
}

/// A manifest. Its fields are parsed in one pass, because `kind` is before `spec`.
struct Document {
    metadata: Metadata,
    spec: Spec,
}

impl Document {
    fn routes(&self) -> usize {
        assert!(!self.metadata.name.is_empty());
        match &self.spec {
            Spec::Edge(edge) => edge.routes.len(),
            Spec::Route(route) => usize::from(!route.edge.is_empty()),
            Spec::Other => 0,
        }
    }
}

enum Spec {
    Edge(Box<Edge>),
    Route(Box<OwnRoute>),
    Other,
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Envelope;
        impl<'de> Visitor<'de> for Envelope {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a manifest")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let (mut kind, mut metadata, mut spec) = (String::new(), Metadata::default(), Spec::Other);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "apiVersion" => drop(map.next_value::<String>()?),
                        "kind" => kind = map.next_value()?,
                        "metadata" => metadata = map.next_value()?,
                        "spec" => {
                            spec = match kind.as_str() {
                                "HttpsEdge" => Spec::Edge(map.next_value()?),
                                "HttpsEdgeRoute" => Spec::Route(map.next_value()?),
                                "" => return Err(A::Error::custom("`spec` is before `kind`")),
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                    Spec::Other
                                }
                            };
                        }
                        other => return Err(A::Error::custom(format!("unknown field {other}"))),
                    }
                }
                Ok(Document { metadata, spec })
            }
        }
        deserializer.deserialize_map(Envelope)
    }
}

/// Declares types whose fields are read by nothing but the parser.
macro_rules! parsed {
    ($($name:ident { $($field:ident: $type:ty,)* })*) => {$(
        #[derive(Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[allow(dead_code)]
        struct $name { $($field: $type,)* }
    )*};
}

parsed! {
    Metadata {
        name: String,
        labels: BTreeMap<String, String>,
    }
    Edge {
        description: String,
        hostports: Vec<String>,
        mutual_tls: Option<MutualTls>,
        tls_termination: Option<TlsTermination>,
        routes: Vec<Route>,
    }
    MutualTls {
        certificate_authority_ids: Vec<String>,
    }
    TlsTermination {
        min_version: String,
    }
    Route {
        name: String,
        description: String,
        match_type: MatchType,
        r#match: String,
        backend: Backend,
        modules_from: Vec<String>,
        compression: Option<Enabled>,
        request_headers: Option<Headers>,
        user_agent_filter: Option<Agents>,
        websocket_tcp_converter: Option<Enabled>,
    }
    OwnRoute {
        edge: String,
        description: String,
        match_type: MatchType,
        r#match: String,
        backend: Backend,
        modules_from: Vec<String>,
        compression: Option<Enabled>,
        request_headers: Option<Headers>,
        user_agent_filter: Option<Agents>,
        websocket_tcp_converter: Option<Enabled>,
    }
    Backend {
        backend_id: String,
    }
    Enabled {
        enabled: bool,
    }
    Headers {
        add: BTreeMap<String, String>,
        remove: Vec<String>,
    }
    Agents {
        allow: Vec<String>,
        deny: Vec<String>,
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MatchType {
    #[default]
    ExactPath,
    PathPrefix,
}
