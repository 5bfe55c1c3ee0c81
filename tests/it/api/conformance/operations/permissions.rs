//! Who administers whom (D99): every role as the caller, and every role as the owner of a key.

use edgewright::resources::{Id, Role, new_token};
use serde_json::{Value, json};

use crate::support::manifests::edge_with;
use crate::support::server::Server;

const ROLES: [Role; 5] = [Role::Gateway, Role::Viewer, Role::Planner, Role::Editor, Role::Admin];

/// A server with a key of each role.
struct People {
    server: Server,
    gateway: String,
    planner: String,
}

impl People {
    fn new() -> Self {
        let server = Server::start();
        let gateway = server.key_of("usr_gateway", Role::Gateway);
        let planner = server.key_of("usr_planner", Role::Planner);
        Self { server, gateway, planner }
    }

    fn token(&self, role: Role) -> &str {
        match role {
            Role::Gateway => &self.gateway,
            Role::Viewer => &self.server.viewer,
            Role::Planner => &self.planner,
            Role::Editor => &self.server.editor,
            Role::Admin => &self.server.admin,
        }
    }

    /// A new key of an owner with a role, made by the admin.
    fn key_of(&self, role: Role) -> String {
        let owner = format!("usr_{}", role.as_str());
        let made = self.server.call("POST", "/api_keys", Some(json!({"owner_id": owner})));
        assert_eq!(made.status, 201, "{}", made.text);
        made.str("/id").to_owned()
    }
}

#[test]
fn nobody_changes_or_deletes_keys_of_a_role_above_their_own() {
    let people = People::new();
    let mut wrong = Vec::new();
    for caller in ROLES {
        for target in ROLES {
            let is_allowed = matches!(
                (caller, target),
                (Role::Admin, _) | (Role::Editor, Role::Editor | Role::Planner | Role::Viewer)
            );
            let path = format!("/api_keys/{}", people.key_of(target));
            let calls: [(&str, Option<Value>, u16); 2] =
                [("PATCH", Some(json!({"description": "mine"})), 200), ("DELETE", None, 204)];
            for (method, body, success) in calls {
                let answer = people.server.call_as(people.token(caller), method, &path, body);
                let expected = if is_allowed { success } else { 403 };
                let says = is_allowed || caller < Role::Editor || answer.text.contains("ask an admin");
                if answer.status != expected || !says {
                    wrong.push(format!("{caller:?} {method} a key of {target:?}: {} {}", answer.status, answer.text));
                }
            }
            let owner = format!("usr_{}", target.as_str());
            let body = Some(json!({"owner_id": owner}));
            let made = people.server.call_as(people.token(caller), "POST", "/api_keys", body);
            let may_create = caller == Role::Admin || (caller == Role::Editor && target == Role::Editor);
            if made.status != if may_create { 201 } else { 403 } {
                wrong.push(format!("{caller:?} creates a key for {target:?}: {} {}", made.status, made.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn manifests_give_no_permission_that_their_sender_does_not_have() {
    let people = People::new();
    let apply = |token: &str, description: &str| {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {{name: ci}}\n\
             spec: {{owner_id: usr_admin, token_file: ../ci.token, description: {description}}}\n"
        );
        let files = json!([{"name": "key.yaml", "text": text}]);
        let body = json!({"source": "people", "files": files, "dry_run": true});
        let planned = people.server.call("POST", "/reconciliations", Some(body));
        let id = planned.str("/plan/changes/0/id").to_owned();
        let (_, hash) = new_token(&Id::new(&id));
        let body = json!({"source": "people", "files": files, "token_hashes": {id.as_str(): hash.expose()}});
        people.server.call_as(token, "POST", "/reconciliations", Some(body))
    };
    let made = apply(&people.server.admin, "first");
    assert_eq!(made.status, 201, "{}", made.text);
    let refused = apply(&people.server.editor, "second");
    assert_eq!((refused.status, refused.str("/error_code")), (403, "ERR_EDGEWRIGHT_FORBIDDEN"), "{}", refused.text);
    let edge = edge_with("one", "{}");
    let files = json!([{"name": "edge.yaml", "text": edge}]);
    let pruned = json!({"source": "people", "files": files, "prune": true});
    let pruned = people.server.call_as(&people.server.editor, "POST", "/reconciliations", Some(pruned));
    assert_eq!((pruned.status, pruned.str("/error_code")), (403, "ERR_EDGEWRIGHT_FORBIDDEN"), "{}", pruned.text);
}
