"""Values that a schema cannot describe, and the ids of resources that exist, so that requests get past the first check."""

import itertools
import json
import os
import pathlib
import urllib.request

import schemathesis
from hypothesis import strategies as st
from schemathesis.core import NotSet
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.generation import GenerationMode

CERTIFICATES = pathlib.Path(__file__).parent.parent / "examples" / "storefront" / "certs"
SAML_METADATA = (
    '<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://idp.example.com"/>'
)
MANIFEST = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: example}\nspec: {description: An example}\n"


def call(method, path, body=None):
    """Calls the API that is tested, as its admin."""
    request = urllib.request.Request(
        os.environ["EDGEWRIGHT_URL"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["EDGEWRIGHT_TOKEN"],
            "Service-Version": "2",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def pem(name):
    return (CERTIFICATES / name).read_text()


# Without its own key, the tester would only see 401 from then on.
own_keys = [key["id"] for key in call("GET", "/api_keys")["keys"]]
authority = call("POST", "/certificate_authorities", {"ca_pem": pem("partner-devices.pem")})
edge = call("POST", "/edges/https", {"mutual_tls": {"certificate_authority_ids": [authority["id"]]}})
bare_edge = call("POST", "/edges/https", {})
route = call(
    "POST",
    f"/edges/https/{edge['id']}/routes",
    {"match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_1"}},
)
certificate = call(
    "POST",
    "/tls_certificates",
    {"certificate_pem": pem("wildcard.chain.pem"), "private_key_pem": pem("wildcard.key.pem")},
)
restriction = call("POST", "/ip_restrictions", {"type": "api"})
key = call("POST", "/api_keys", {})
invariant = call("POST", "/invariants", {"description": "It holds", "min_tls_version": "1.0"})
source = call("POST", "/event_subscriptions/esb_1/sources", {"type": "ip_policy_created.v0"})
call("PUT", "/edges/tls/edgtls_1/backend", {"backend_id": "bkd_1"})
EXISTING = {
    "/api_keys/{id}": {"id": key["id"]},
    "/ip_restrictions/{id}": {"id": restriction["id"]},
    "/invariants/{id}": {"id": invariant["id"]},
    "/certificate_authorities/{id}": {"id": authority["id"]},
    "/tls_certificates/{id}": {"id": certificate["id"]},
    "/edges/https/{edge_id}/routes": {"edge_id": edge["id"], "id": route["id"]},
    "/edges/https/{id}/tls_termination": {"id": bare_edge["id"]},
    "/edges/https/{id}": {"id": edge["id"]},
    "/edges/tls/{id}": {"id": "edgtls_1"},
    "/event_subscriptions/{id}": {"id": "esb_1"},
    "/event_subscriptions/{subscription_id}/sources": {"subscription_id": "esb_1", "type": source["type"]},
}

# The tester also takes ids from responses. Deleting one of these would spoil the requests that follow.
KEPT = own_keys + [id for ids in EXISTING.values() for id in ids.values()]

# What requests delete is made for them, below other parents, so that it exists and nothing else misses it.
emptied_edge = call("POST", "/edges/https", {})
emptied_route = call(
    "POST", f"/edges/https/{emptied_edge['id']}/routes", {"match_type": "path_prefix", "match": "/emptied"}
)
PARENTS = {
    "/edges/https/{edge_id}/routes": {"edge_id": emptied_edge["id"], "id": emptied_route["id"]},
    "/edges/https/{id}": {"id": emptied_edge["id"]},
    "/edges/tls/{id}": {"id": "edgtls_2"},
    "/event_subscriptions/{subscription_id}/sources": {"subscription_id": "esb_2"},
}
NEW = {
    "/ip_restrictions": {"type": "api"},
    "/invariants": {"description": "It holds", "min_tls_version": "1.0"},
    "/certificate_authorities": {"ca_pem": pem("partner-devices.pem")},
    "/tls_certificates": {
        "certificate_pem": pem("wildcard.chain.pem"),
        "private_key_pem": pem("wildcard.key.pem"),
    },
    "/edges/https/{edge_id}/routes": {"match_type": "path_prefix"},
}
numbers = itertools.count()


def ids_for(path, known):
    """The ids of the first group that the path belongs to."""
    return next((ids for start, ids in known.items() if path.startswith(start)), {})


def make(path):
    """Makes what a DELETE of this path deletes, and returns its path parameters."""
    ids = dict(ids_for(path, PARENTS))
    collection, last = path.rsplit("/", 1)
    if not last.startswith("{"):
        body = DOCUMENT["paths"][path]["put"]["requestBody"]["content"]["application/json"]["example"]
        if last == "mutual_tls":
            body = {"certificate_authority_ids": [authority["id"]]}
        if path.startswith("/edges/https/") and last != "tls_termination":
            # An earlier request may have made the edge pass TLS through, so that it can have no other module.
            call("PUT", f"/edges/https/{emptied_edge['id']}/tls_termination", {"terminate_at": "edge"})
        call("PUT", path.format(**ids), body)
        return ids
    body = dict(NEW.get(collection, {}))
    if "match_type" in body:
        body["match"] = f"/{next(numbers)}"
    if last == "{type}":
        body["type"] = f"deleted_{next(numbers)}.v0"
    made = call("POST", collection.format(**ids), body)
    return {**ids, last.strip("{}"): made[last.strip("{}")]}


schemathesis.openapi.format("ca-pem", st.just(pem("partner-devices.pem")))
schemathesis.openapi.format("certificate-pem", st.just(pem("wildcard.chain.pem")))
schemathesis.openapi.format("private-key-pem", st.just(pem("wildcard.key.pem")))
schemathesis.openapi.format("saml-metadata", st.just(SAML_METADATA))
schemathesis.openapi.format("webhook-provider", st.sampled_from(["github", "Stripe", "sns"]))
schemathesis.openapi.format("certificate-authority-id", st.just(authority["id"]))


# Limited in bytes, while schemas count characters.
OF_COMMIT = ("commit", "commit_author_name", "commit_author_email", "commit_message")

with urllib.request.urlopen(os.environ["EDGEWRIGHT_URL"] + "/openapi.json") as answer:
    DOCUMENT = json.load(answer)
FIELDS = {field for schema in DOCUMENT["components"]["schemas"].values() for field in schema.get("properties", {})}


def without_unknown_nulls(value):
    """The API ignores unknown fields that are null. With another value, the request is as invalid as it should be."""
    if isinstance(value, list):
        return [without_unknown_nulls(item) for item in value]
    if isinstance(value, dict):
        return {
            field: 0 if item is None and field not in FIELDS else without_unknown_nulls(item)
            for field, item in value.items()
        }
    return value


def within_64_bits(value):
    """The API refuses longer integers, also where the schema allows any value."""
    if isinstance(value, list):
        return [within_64_bits(item) for item in value]
    if isinstance(value, dict):
        return {field: within_64_bits(item) for field, item in value.items()}
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return 0
    return value


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Leaving out an optional body is valid, but the tester counts it as a wrong body."""
    # The tester also sends methods that the path does not have.
    operation = DOCUMENT["paths"][case.operation.path].get(case.method.lower(), {})
    optional = not operation.get("requestBody", {"required": True})["required"]
    left_out = optional and isinstance(case.body, NotSet)
    return not (left_out and isinstance(failure, AcceptedNegativeData))


@schemathesis.hook
def map_case(context, case):
    """Good requests are for something that exists, and those that delete are for something that is made for them."""
    meta, path = case.meta, case.operation.path
    if case.method.upper() == "DELETE" and path.endswith("}") and any(
        value in KEPT for value in (case.path_parameters or {}).values()
    ):
        case.path_parameters.update(make(path))
    if meta is None or meta.generation.mode != GenerationMode.POSITIVE:
        case.body = without_unknown_nulls(case.body)
        return case
    case.body = within_64_bits(case.body)
    # A schema cannot say which revisions exist.
    if case.path == "/rollbacks" and isinstance(case.body, dict):
        case.body = {"to": 1, "dry_run": True}
    # Nor which fields exclude each other, or which sources own something.
    if case.path == "/transfers" and isinstance(case.body, dict):
        case.body = {"from": "default", "to": "another", "all": True, "dry_run": True}
    if case.path == "/sources/{name}/destroy" and isinstance(case.body, dict):
        case.body = {"dry_run": True}
    # Nor which days there are, that blanks are no text, or that an invariant requires something and an exemption names requests.
    if case.path.startswith("/invariants") and isinstance(case.body, dict):
        case.body["min_tls_version"] = "1.0"
        if isinstance(case.body.get("description"), str):
            case.body["description"] = "It holds"
        if isinstance(case.body.get("scope"), dict) and "sources" in case.body["scope"]:
            case.body["scope"]["sources"] = ["docs"]
        for exemption in case.body.get("exemptions") or []:
            known = {"owner": "docs", "reason": "It moves", "expires": "2099-12-31", "hosts": ["docs.example.com"]}
            exemption.update(known)
    # Nor what a URL, a network, a host, the name of a source or a kind is.
    if case.path == "/trace" and isinstance(case.body, dict):
        case.body["url"] = "https://shop.example.com/cart"
    if isinstance(case.body, dict) and isinstance(case.body.get("scope"), dict):
        known = {
            "addresses": ["192.0.2.0/24"],
            "apply": ["docs"],
            "plan": ["docs-*"],
            "hosts": ["docs.example.com"],
            "kinds": ["TlsCertificate"],
            "expires_at": "",
            "role": "editor",
        }
        case.body["scope"].update({field: value for field, value in known.items() if field in case.body["scope"]})
    for made_up, where in (("before_id", case.query), ("at", case.query), ("If-Match", case.headers)):
        if where and made_up in where:
            del where[made_up]
    if case.query and "filter" in case.query:
        case.query["filter"] = "has(obj.uri)"
    if case.path == "/reconciliations" and isinstance(case.body, dict):
        # What a text must say is beyond a schema; hashes and digests belong to keys and plans that exist.
        case.body["files"] = [{"name": "example.yaml", "text": MANIFEST}]
        for made_up in ("expect", "lints", "max_deletes", "token_hashes", "source", *OF_COMMIT):
            case.body.pop(made_up, None)
        # A review changes nothing, and is one of the two.
        if isinstance(case.body.get("trace"), dict):
            case.body["trace"]["url"] = "https://shop.example.com/cart"
            case.body.update({"compare": False, "dry_run": True})
        elif case.body.get("compare") or case.body.get("assume_values"):
            case.body["dry_run"] = True
    if case.path == "/edges/https/{id}" and isinstance(case.body, dict):
        # The edge has client certificates and a route, which an edge that passes TLS through cannot have.
        case.body.pop("tls_termination", None)
    if case.path_parameters:
        ids = make(path) if case.method.upper() == "DELETE" else ids_for(path, EXISTING)
        case.path_parameters.update({k: v for k, v in ids.items() if k in case.path_parameters})
    return case
