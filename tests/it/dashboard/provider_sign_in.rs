//! Signing in through a provider of OpenID Connect: roles by claims, people in the history, and what is refused.

use serde_json::{Value, json};

use crate::support::http::{HttpAnswer, http};
use crate::support::identity_provider::{CLIENT_SECRET, IdentityProvider, SigningKeyPair, USER_CODE};
use crate::support::manifests::edge;
use crate::support::program::{CONFIG, Folder, Serve, finish, has, until};
use crate::support::users::{CONTEXTS, run_with_token};

const START: &str = "/ui/login/oidc";
const CALLBACK: &str = "/ui/login/oidc/callback";

/// A server whose people sign in through a provider.
pub(super) fn serving(provider: &IdentityProvider) -> (Folder, Serve) {
    let folder = Folder::new();
    folder.write("client.secret", &format!("{CLIENT_SECRET}\n"));
    folder.write(CONFIG, &provider.section());
    let serve = folder.serve("");
    (folder, serve)
}

fn get(serve: &Serve, path: &str, cookie: &str) -> HttpAnswer {
    http(&serve.address, "GET", path, &[("Cookie", cookie), ("Accept", "text/html")], "")
}

/// The cookies that an answer sets, without their attributes. Those that it removes are left out.
fn cookies(answer: &HttpAnswer) -> Vec<String> {
    let set = answer.header("set-cookie").into_iter().filter(|cookie| !cookie.contains("Max-Age=0"));
    set.map(|cookie| cookie.split(';').next().unwrap().to_owned()).collect()
}

/// Begins to sign in, and returns the cookie of the browser and the path with which the provider sends it back.
fn at_provider(serve: &Serve, provider: &IdentityProvider, next: &str) -> (String, String) {
    let begun = get(serve, &format!("{START}?next={next}"), "");
    assert_eq!(begun.status, 303, "{}", begun.body);
    let cookie = begun.header("set-cookie")[0];
    assert!(
        cookie.starts_with("edgewright-login=") && cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    let cookie = cookies(&begun).remove(0);
    let address = begun.header("location")[0];
    let path = address.strip_prefix(&provider.issuer()).unwrap();
    assert!(path.starts_with("/authorize?response_type=code&client_id=edge&"), "{path}");
    let answer = http(&provider.address.to_string(), "GET", path, &[], "");
    assert_eq!(answer.status, 303, "{}", answer.body);
    let back = answer.header("location")[0];
    let path = back.strip_prefix(&format!("http://{}", serve.address)).unwrap();
    assert!(path.starts_with(&format!("{CALLBACK}?code=code-")), "{path}");
    (cookie, path.to_owned())
}

/// Signs in, and returns the last answer.
fn sign_in(serve: &Serve, provider: &IdentityProvider, next: &str) -> HttpAnswer {
    let (cookie, path) = at_provider(serve, provider, next);
    get(serve, &path, &cookie)
}

fn assert_refused(answer: &HttpAnswer, status: u16, reason: &str) {
    assert_eq!(answer.status, status, "{reason}: {}", answer.body);
    assert!(answer.body.contains(reason) && answer.body.starts_with("<!DOCTYPE html>"), "{reason}: {}", answer.body);
    assert!(cookies(answer).is_empty(), "{reason}: {:?}", answer.headers);
}

#[test]
fn a_person_signs_in_and_has_the_role_of_their_groups() {
    let provider = IdentityProvider::start();
    let (_folder, serve) = serving(&provider);
    let form = get(&serve, "/ui/sign-in?next=edges", "").body;
    assert!(form.contains("./login/oidc?next=edges") && form.contains("Sign in with 127.0.0.1"), "{form}");
    let answer = sign_in(&serve, &provider, "edges%3Fsearch%3Dshop");
    assert_eq!((answer.status, answer.header("location")), (303, vec!["../../edges?search=shop"]), "{}", answer.body);
    let cookie = cookies(&answer).remove(0);
    assert!(!cookie.contains("ada"), "{cookie}");
    let page = get(&serve, "/ui/", &cookie);
    assert!(page.status == 200 && page.body.contains("<span>ada@example.com</span>"), "{}", page.body);
    // A key that takes the place of another, under its name, is read when a signature is wrong.
    provider.script().key = SigningKeyPair::elliptic();
    assert_eq!(sign_in(&serve, &provider, "").status, 303);
    assert_eq!(sign_in(&serve, &provider, "").status, 303);
    assert_eq!(provider.script().keys_read, 2);
    // The session is no API token.
    let token = cookie.split_once('=').unwrap().1;
    assert_eq!(serve.call_as(token, "GET", "/edges/https", "").status, 401);
    provider.script().claims = json!({"groups": ["strangers"]});
    assert_refused(&sign_in(&serve, &provider, ""), 403, "ada@example.com has no role on this server");
}

#[test]
fn a_token_that_is_not_of_this_sign_in_is_refused() {
    let provider = IdentityProvider::start();
    let (_folder, serve) = serving(&provider);
    for (claims, reason) in [
        (json!({"nonce": "other"}), "wrong nonce"),
        (json!({"nonce": null}), "wrong nonce"),
        (json!({"iss": "https://other.example.com"}), "another issuer"),
        (json!({"aud": "other"}), "another client"),
        (json!({"aud": ["edge", "other"], "azp": "other"}), "another client"),
        (json!({"exp": 1_700_000_000}), "expired"),
        (json!({"iat": 4_000_000_000_i64, "exp": 4_000_000_300_i64}), "from the future"),
        (json!({"sub": null}), "no subject"),
    ] {
        provider.script().claims = claims;
        assert_refused(&sign_in(&serve, &provider, ""), 401, reason);
    }
    provider.script().claims = json!({});
    for algorithm in ["none", "HS256"] {
        provider.script().algorithm = Some(algorithm);
        assert_refused(&sign_in(&serve, &provider, ""), 401, "neither RS256 nor ES256");
    }
    provider.script().algorithm = None;
    provider.script().signer = Some(SigningKeyPair::elliptic());
    assert_refused(&sign_in(&serve, &provider, ""), 401, "signature of the ID token is wrong");
    provider.script().signer = None;
    assert_eq!(sign_in(&serve, &provider, "").status, 303);
}

#[test]
fn only_the_browser_that_has_begun_comes_back_and_only_once() {
    let provider = IdentityProvider::start();
    let (_folder, serve) = serving(&provider);
    let (cookie, path) = at_provider(&serve, &provider, "");
    let (other_cookie, _) = at_provider(&serve, &provider, "");
    assert_refused(&get(&serve, &path, ""), 401, "has not begun to sign in");
    assert_refused(&get(&serve, &path, "edgewright-login=forged"), 401, "has not begun to sign in");
    // What is for TLS counts under no other name.
    assert_refused(&get(&serve, &path, &format!("__Host-{cookie}")), 401, "has not begun to sign in");
    assert_refused(&get(&serve, &path, &other_cookie), 401, "wrong state");
    let (code, state) = path.split_once("&state=").unwrap();
    assert_refused(&get(&serve, &format!("{code}&state={state}x"), &cookie), 401, "wrong state");
    let (start, _) = path.split_once('?').unwrap();
    for (query, status, reason) in [
        ("", 401, "no code"),
        ("code=&", 401, "no code"),
        ("code=made-up&", 401, "does not accept the code"),
        ("error=access_denied&", 401, "access was denied"),
        ("error=%3Cscript%3E&", 401, "the provider has refused the sign-in"),
        ("code=a&iss=https%3A%2F%2Fother.example.com&", 401, "another issuer"),
    ] {
        let answer = get(&serve, &format!("{start}?{query}state={state}"), &cookie);
        assert_refused(&answer, status, reason);
        assert!(!answer.body.contains("<script>"), "{}", answer.body);
    }
    let answer = get(&serve, &path, &cookie);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let removed = answer.header("set-cookie").into_iter().filter(|cookie| cookie.contains("-login=; Max-Age=0"));
    assert_eq!(removed.count(), 2);
    assert_refused(&get(&serve, &path, &cookie), 401, "does not accept the code");
}

#[test]
fn nobody_is_sent_elsewhere() {
    let provider = IdentityProvider::start();
    let (_folder, serve) = serving(&provider);
    for next in
        ["%2F%2Fevil.example", "https%3A%2F%2Fevil.example", "..%2F..%2Fevil", "%252e%252E%2Fevil", "a%5Cb", "a%0D%0Ab"]
    {
        let answer = sign_in(&serve, &provider, next);
        let location = answer.header("location")[0].to_owned();
        assert!(answer.status == 303 && (location == "../../" || location.starts_with("../../https")), "{location}");
    }
    // A cookie of any length would be dropped.
    let answer = sign_in(&serve, &provider, &"a".repeat(1001));
    assert_eq!(answer.header("location"), ["../../"]);
    let (cookie, path) = at_provider(&serve, &provider, "");
    let answer = get(&serve, &format!("{path}&next=https%3A%2F%2Fevil.example"), &cookie);
    assert_eq!(answer.header("location"), ["../../"]);
}

#[test]
fn a_provider_that_is_away_keeps_nobody_with_a_token_out() {
    let provider = IdentityProvider::start();
    let (address, section) = (provider.address.to_string(), provider.section());
    drop(provider);
    let folder = Folder::new();
    folder.write("client.secret", CLIENT_SECRET);
    folder.write(CONFIG, &section);
    let serve = folder.serve("");
    let away = get(&serve, START, "");
    assert_refused(&away, 503, "sign in with an API token, or try again later");
    // The log has the reason, and not for each of those who try.
    for _ in 0..30 {
        assert_eq!(get(&serve, START, "").status, 503);
        assert_eq!(http(&serve.address, "POST", "/login/device", &[], "{}").status, 503);
    }
    serve.wait_for("the OpenID Connect provider is not usable");
    let lines = serve.said().matches("the OpenID Connect provider is not usable").count();
    assert!(lines < 5, "{}", serve.said());
    assert_eq!(serve.get("/edges/https").status, 200);
    let origin = format!("http://{}", serve.address);
    let form = format!("token={}", serve.token);
    let headers = [("Origin", origin.as_str()), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(http(&serve.address, "POST", "/ui/sign-in", &headers, &form).status, 303);
    let provider = IdentityProvider::start_at(&address);
    until("the provider", || (get(&serve, START, "").status == 303).then_some(()));
    assert_eq!(sign_in(&serve, &provider, "").status, 303);
}

#[test]
fn a_session_has_the_rights_of_the_configuration_of_today() {
    let provider = IdentityProvider::start();
    let (folder, serve) = serving(&provider);
    let cookie = cookies(&sign_in(&serve, &provider, "")).remove(0);
    assert_eq!(get(&serve, "/ui/", &cookie).status, 200);
    drop(serve);
    folder.edit(CONFIG, "value: staff", "value: others");
    let serve = until("the next server", || folder.try_serve("", &[]).ok());
    let answer = get(&serve, "/ui/", &cookie);
    assert_eq!((answer.status, answer.header("location")), (303, vec!["./sign-in?next="]), "{}", answer.body);
}

#[test]
fn a_person_is_refused_while_the_server_runs_and_a_rekey_signs_everybody_out() {
    let provider = IdentityProvider::start();
    let (folder, serve) = serving(&provider);
    let cookie = cookies(&sign_in(&serve, &provider, "")).remove(0);
    let is_open = |cookie: &str| get(&serve, "/ui/", cookie).status == 200;
    assert!(is_open(&cookie));
    folder.write(CONFIG, &format!("{}  refused: [ada@example.com]\n", provider.section()));
    until("the refusal", || (!is_open(&cookie)).then_some(()));
    assert_refused(&sign_in(&serve, &provider, ""), 403, "ada@example.com has no role on this server");
    // An address that is not verified is no way in, and refuses as well as any other name.
    for claims in [json!({"email_verified": false}), json!({"email_verified": false, "preferred_username": "ada"})] {
        provider.script().claims = claims;
        assert_refused(&sign_in(&serve, &provider, ""), 403, "has no role on this server");
    }
    provider.script().claims = json!({});
    folder.write(CONFIG, &provider.section());
    until("the end of the refusal", || is_open(&cookie).then_some(()));
    assert!(!serve.said().contains("after a restart"), "{}", serve.said());
    let rekeyed = serve.call("POST", "/store/rekey", r#"{"forget_secrets":true}"#);
    assert_eq!(rekeyed.status, 200, "{}", rekeyed.body);
    assert!(!is_open(&cookie));
    assert!(is_open(&cookies(&sign_in(&serve, &provider, "")).remove(0)));
}

/// Asks what has become of a device code.
fn asked(serve: &Serve, code: &str) -> HttpAnswer {
    let question = json!({"device_code": code}).to_string();
    http(&serve.address, "POST", "/login/device/token", &[], &question)
}

#[test]
fn a_command_line_gets_a_token_once_somebody_has_signed_in() {
    let provider = IdentityProvider::start();
    let folder = Folder::new();
    folder.write("client.secret", CLIENT_SECRET);
    folder.write(CONFIG, &provider.section());
    let serve = folder.serve("--security-log security.log");
    // As a page of another site would send it.
    assert_eq!(http(&serve.address, "POST", "/login/device", &[], "").status, 415);
    let begun = http(&serve.address, "POST", "/login/device", &[], "{}");
    assert_eq!(begun.status, 200, "{}", begun.body);
    let begins = |line: &str| line.contains("device_sign_in_begun") && line.contains("127.0.0.1");
    until("the line", || folder.read("security.log").lines().any(begins).then_some(()));
    let device = begun.json();
    assert_eq!((&device["user_code"], &device["interval"]), (&json!(USER_CODE), &json!(1)));
    let code = device["device_code"].as_str().unwrap();
    let pending = asked(&serve, code).json();
    assert_eq!(pending, json!({"token": "", "expires_at": "", "interval": 1}));
    for other in ["", "device", &format!("{code}A")] {
        let answer = asked(&serve, other);
        assert_eq!((answer.status, answer.code()), (401, "ERR_EDGEWRIGHT_UNAUTHENTICATED".to_owned()), "{other}");
    }
    provider.script().has_entered = true;
    // Whoever asks too early is not told.
    let settled = || {
        until("the interval", || Some(asked(&serve, code)).filter(|it| it.status != 200 || it.json()["token"] != ""))
    };
    let signed_in = settled().json();
    let token = signed_in["token"].as_str().unwrap();
    let whoami = serve.call_as(token, "GET", "/whoami", "").json();
    assert_eq!((&whoami["key_id"], &whoami["role"]), (&json!("person:ada@example.com"), &json!("viewer")));
    let create = r#"{"hostports":["a.example.com:443"]}"#;
    assert_eq!(serve.call_as(token, "POST", "/edges/https", create).status, 403);
    assert_eq!(serve.call_as(&format!("{token}00"), "GET", "/whoami", "").status, 401);
    provider.script().claims = json!({"groups": ["strangers"]});
    assert_eq!(settled().status, 403);
}

#[test]
fn nobody_signs_in_on_a_command_line_unless_the_configuration_says_so() {
    let provider = IdentityProvider::start();
    let folder = Folder::new();
    folder.write("client.secret", CLIENT_SECRET);
    folder.write(CONFIG, &provider.section().replace("  device: true\n", ""));
    let serve = folder.serve("");
    let begun = http(&serve.address, "POST", "/login/device", &[], "{}");
    assert!(begun.status == 404 && begun.contains("signing in from the command line is disabled"), "{}", begun.body);
    assert_eq!(asked(&serve, "AAAA").status, 404);
    assert_eq!(get(&serve, START, "").status, 303);
}

#[test]
fn the_history_has_the_person() {
    let provider = IdentityProvider::start();
    provider.script().has_entered = true;
    provider.script().claims = json!({"groups": ["staff", "platform"]});
    let (folder, serve) = serving(&provider);
    let user = |line: &str| {
        let mut command = folder.command(line);
        command.env("XDG_CONFIG_HOME", folder.path("config")).env_remove("EDGEWRIGHT_STORE");
        finish(command, "")
    };
    let run = user(&format!("login here --server http://{} --sso", serve.address));
    assert_eq!(run.code, 0, "{}", run.all());
    has(&run, &[&format!("{}/enter", provider.issuer()), USER_CODE, "as ada@example.com (admin)."]);
    let contexts = folder.read(CONTEXTS);
    let token = contexts.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap();
    let edge = serve.call_as(token, "POST", "/edges/https", r#"{"hostports":["a.example.com:443"]}"#);
    assert_eq!(edge.status, 201, "{}", edge.body);
    let history = serve.get("/history?limit=1").json();
    let newest = history.as_object().unwrap().values().find_map(Value::as_array).unwrap()[0].clone();
    assert_eq!((&newest["by"], &newest["key_id"]), (&json!("api"), &json!("person:ada@example.com")), "{newest}");
    let owner = newest["owner_id"].as_str().unwrap();
    assert!(owner.starts_with("usr_"), "{owner}");
    // The commands and the dashboard name the person.
    has(&user("history --context here"), &[&format!("ada@example.com ({owner})")]);
    let cookie = cookies(&sign_in(&serve, &provider, "")).remove(0);
    let page = get(&serve, "/ui/revisions", &cookie).body;
    assert!(page.contains(&format!("<b title=\"{owner}\">ada@example.com</b>")), "{page}");
    // An admin who is a person creates keys like any other.
    let key = serve.call_as(token, "POST", "/api_keys", "{}");
    assert_eq!((key.status, &key.json()["owner_id"]), (201, &json!(owner)), "{}", key.body);
}

/// Signs in on a command line, and returns the token.
fn token_of(serve: &Serve) -> String {
    let device = http(&serve.address, "POST", "/login/device", &[], "{}").json();
    let code = device["device_code"].as_str().unwrap();
    // Whoever asks twice within an interval waits.
    let signed_in = || Some(asked(serve, code)).filter(|it| it.status == 200 && it.json()["token"] != "");
    until("the token", signed_in).json()["token"].as_str().unwrap().to_owned()
}

#[test]
fn an_editor_whose_owner_was_an_admin_creates_no_key() {
    let provider = IdentityProvider::start();
    provider.script().has_entered = true;
    let folder = Folder::new();
    folder.write("client.secret", CLIENT_SECRET);
    folder.write(CONFIG, &provider.section().replace("role: editor, sources: [shop]", "role: editor"));
    let key = "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {name: mine}\nspec: {token_file: ../mine.token}\n";
    folder.write("m/key.yaml", key);
    let serve = folder.serve("");
    let create = |token: &str, query: &str| serve.call_as(token, "POST", &format!("/api_keys{query}"), "{}");
    provider.script().claims = json!({"groups": ["platform"]});
    let key = create(&token_of(&serve), "?owner_role=admin");
    assert_eq!(key.status, 201, "{}", key.body);
    let owner = key.json()["owner_id"].as_str().unwrap().to_owned();
    provider.script().claims = json!({"groups": ["shop"]});
    let editor = token_of(&serve);
    assert_eq!(serve.call_as(&editor, "GET", "/whoami", "").json()["role"], json!("editor"));
    for role in ["admin", "gateway"] {
        let set = serve.call("PATCH", &format!("/owners/{owner}"), &json!({"role": role}).to_string());
        assert_eq!(set.status, 200, "{}", set.body);
        let refused = create(&editor, "");
        assert_eq!((refused.status, refused.code()), (403, "ERR_EDGEWRIGHT_FORBIDDEN".to_owned()), "{}", refused.body);
        let reason =
            format!("the role `editor` cannot create, change or delete API keys of owners with the role `{role}`");
        assert!(refused.body.contains(&reason), "{}", refused.body);
    }
    let declared = run_with_token(&folder, &serve, &editor, "reconcile m --source mine");
    has(&declared, &["the role `editor` cannot create, change or delete API keys of owners with the role `gateway`"]);
    for role in ["viewer", "editor"] {
        serve.call("PATCH", &format!("/owners/{owner}"), &json!({"role": role}).to_string());
        assert_eq!(create(&editor, "").status, 201, "{role}");
    }
}

#[test]
fn editors_apply_the_sources_of_their_groups_only() {
    let provider = IdentityProvider::start();
    provider.script().has_entered = true;
    provider.script().claims = json!({"groups": ["staff", "shop"]});
    let (_folder, serve) = serving(&provider);
    let device = http(&serve.address, "POST", "/login/device", &[], "{}").json();
    let signed_in = asked(&serve, device["device_code"].as_str().unwrap()).json();
    let token = signed_in["token"].as_str().unwrap();
    let whoami = serve.call_as(token, "GET", "/whoami", "").json();
    assert_eq!((&whoami["role"], &whoami["scope"]["apply"]), (&json!("editor"), &json!(["shop"])), "{whoami}");
    for (source, status) in [("shop", 404), ("docs", 403)] {
        let answer = serve.call_as(token, "POST", &format!("/sources/{source}/sync"), "");
        assert_eq!(answer.status, status, "{source}: {}", answer.body);
    }
    let answer = serve.call_as(token, "POST", "/sources/docs/sync", "");
    assert!(answer.body.contains("the scope of ada@example.com does not allow"), "{}", answer.body);
    // What a key of theirs without a scope has sent is not found by its digest.
    let body = json!({"owner_id": whoami["owner_id"]}).to_string();
    let key = serve.call("POST", "/api_keys", &body).json();
    let text = edge("docs", "Of another source");
    let dry_run = |token: &str, source: &str, file: Value| {
        let body = json!({"dry_run": true, "source": source, "files": [file]});
        serve.call_as(token, "POST", "/reconciliations", &body.to_string())
    };
    let sent = json!({"name": "a.yaml", "text": text});
    let named = json!({"name": "a.yaml", "digest": blake3::hash(text.as_bytes()).to_string()});
    let (key, missing) = (key["token"].as_str().unwrap(), "ERR_EDGEWRIGHT_MISSING_FILES");
    assert_eq!(dry_run(key, "docs", sent.clone()).status, 200);
    assert_eq!(dry_run(key, "docs", named.clone()).status, 200);
    assert_eq!(dry_run(token, "shop", named.clone()).code(), missing);
    assert_eq!(dry_run(token, "shop", sent).status, 200);
    assert_eq!(dry_run(token, "shop", named).status, 200);
}

#[test]
fn editors_take_the_hosts_of_their_groups_only() {
    let provider = IdentityProvider::start();
    provider.script().has_entered = true;
    provider.script().claims = json!({"groups": ["shop"]});
    let folder = Folder::new();
    folder.write("client.secret", CLIENT_SECRET);
    let limited = "sources: [shop], hosts: [shop.example.com, '*.shop.example.com']";
    folder.write(CONFIG, &provider.section().replace("sources: [shop]", limited));
    let serve = folder.serve("");
    let token = token_of(&serve);
    let whoami = serve.call_as(&token, "GET", "/whoami", "").json();
    assert_eq!(whoami["scope"]["hosts"], json!(["*.shop.example.com", "shop.example.com"]), "{whoami}");
    let apply = |hostport: &str| {
        let start = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: own}\n";
        let text = format!("{start}spec: {{hostports: ['{hostport}']}}\n");
        let body = json!({"source": "shop", "files": [{"name": "own.yaml", "text": text}]});
        serve.call_as(&token, "POST", "/reconciliations", &body.to_string())
    };
    let is_refused = |answer: &HttpAnswer| {
        assert_eq!((answer.status, answer.code()), (403, "ERR_EDGEWRIGHT_FORBIDDEN".to_owned()), "{}", answer.body);
        let reason = "the scope of ada@example.com does not allow it to serve `billing.example.com`";
        assert!(answer.body.contains(reason) && answer.body.contains("`hosts`"), "{}", answer.body);
    };
    is_refused(&apply("billing.example.com:443"));
    for own in ["shop.example.com:443", "eu.shop.example.com:443"] {
        let answer = apply(own);
        assert!(matches!(answer.status, 200 | 201), "{own}: {}", answer.body);
    }
    let edge = serve.get("/edges/https").json()["https_edges"][0]["id"].as_str().unwrap().to_owned();
    let billing = r#"{"hostports":["billing.example.com:443"]}"#;
    is_refused(&serve.call_as(&token, "PATCH", &format!("/edges/https/{edge}"), billing));
    // They create no key, which could have other hosts.
    for key in ["{}", r#"{"scope":{"apply":["shop"],"hosts":["shop.example.com"]}}"#] {
        let answer = serve.call_as(&token, "POST", "/api_keys", key);
        assert!(answer.status == 403 && answer.body.contains("create keys"), "{}", answer.body);
    }
}

#[test]
fn a_mistake_in_the_section_is_an_error_at_its_line() {
    let provider = IdentityProvider::start();
    let folder = Folder::new();
    folder.write("client.secret", CLIENT_SECRET);
    for (from, to, place) in [
        ("role: viewer", "role: gateway", "/openid_connect/roles/2/role (line 9)"),
        ("role: viewer", "role: reader", "/openid_connect/roles/2/role (line 9)"),
        ("client_id: edge", "client_id: ''", "/openid_connect/client_id (line 3)"),
        ("issuer: http://127.0.0.1", "issuer: http://id.example.com", "/openid_connect/issuer (line 2)"),
        ("client_secret_file", "client_secrets_file", "/openid_connect/client_secrets_file (line 4)"),
        ("sources: [shop]", "hosts: [shop.example.com]", "/openid_connect/roles/1/hosts (line 8)"),
        ("device: true", "refused: [usr_shortened]", "/openid_connect/refused/0 (line 10)"),
        ("client.secret", "missing.secret", "missing.secret"),
    ] {
        let section = provider.section();
        assert!(section.contains(from), "{from}");
        folder.write(CONFIG, &section.replace(from, to));
        let Err(run) = folder.try_serve("", &[]) else { panic!("{to} is served") };
        has(&run, &[place]);
    }
    // Others serve without people who sign in.
    folder.write(CONFIG, "{}\n");
    let serve = folder.serve("");
    assert_refused(&get(&serve, START, ""), 404, "no OpenID Connect provider");
    let begun = http(&serve.address, "POST", "/login/device", &[], "{}");
    assert!(begun.status == 404 && begun.contains("no OpenID Connect provider"), "{}", begun.body);
    assert!(!get(&serve, "/ui/sign-in", "").body.contains("login/oidc"));
}
