//! `cors-credentials`: CORS headers that browsers reject together.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "cors-credentials",
    default: Level::Warn,
    summary: "`response_headers` allow credentials from every origin.",
    why: "Browsers reject a response with credentials if `Access-Control-Allow-Origin` is `*` (Fetch standard, CORS \
          check), so scripts on other sites cannot read it.",
    cure: "Set `Access-Control-Allow-Origin` to one origin, such as `https://shop.example.com`, or remove \
           `Access-Control-Allow-Credentials`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, headers) in view.route_modules(|route| route.response_headers.as_deref()) {
        let find = |wanted: &str, value: &str| {
            let mut added = headers.add.iter();
            added.find(|(name, it)| name.eq_ignore_ascii_case(wanted) && it.trim() == value).map(|(name, _)| name)
        };
        let origin = find("Access-Control-Allow-Origin", "*");
        let credentials = find("Access-Control-Allow-Credentials", "true");
        if let (Some(origin), Some(credentials)) = (origin, credentials) {
            let list = Path::from(["response_headers", "add"]);
            let message = "browsers reject the origin `*` for responses with credentials";
            let finding = findings.report(key, list.join(origin.as_str()), message);
            finding.relate(key, list.join(credentials.as_str()), "allows credentials");
        }
    }
}
