"""Runs the example estate through the generated Python client: create, page, change, delete, and read errors."""

import os
import re
from pathlib import Path

from edgewright_client import AuthenticatedClient
from edgewright_client.api.certificate_authorities import create_certificate_authority, delete_certificate_authority
from edgewright_client.api.https_edge_routes import (
    create_https_edge_route,
    delete_https_edge_route_compression,
    delete_https_edge_route_saml,
    get_https_edge_route,
    list_https_edge_routes,
    replace_https_edge_route_backend,
    update_https_edge_route,
)
from edgewright_client.api.https_edges import create_https_edge, delete_https_edge, list_https_edges
from edgewright_client.api.reconciliations import create_reconciliation
from edgewright_client.models import (
    BackendModule,
    BackendModuleInput,
    CertificateAuthority,
    CertificateAuthorityCreate,
    CompressionModuleInput,
    Error,
    GithubAppInput,
    HttpsEdge,
    HttpsEdgeCreate,
    HttpsEdgeList,
    HttpsEdgeRoute,
    HttpsEdgeRouteCreate,
    HttpsEdgeRouteList,
    HttpsEdgeRouteUpdate,
    MatchType,
    MutualTlsModuleInput,
    OauthModuleInput,
    ProviderInput,
    ReconciliationCreate,
    ReconciliationRun,
    SentFile,
    SentValue,
    Severity,
)

client = AuthenticatedClient(
    base_url=os.environ["EDGEWRIGHT_URL"],
    token=os.environ["EDGEWRIGHT_TOKEN"],
    headers={"Service-Version": "2"},
    raise_on_unexpected_status=True,
)

# Apply the manifests of the example, with the files that they name.
example = Path(os.environ["EXAMPLE"])
files = []
for path in sorted(path for path in example.rglob("*") if path.suffix in (".yaml", ".json")):
    text = path.read_text()
    names = sorted(set(re.findall(r"from_file: *([^ ,}\n]+)", text)))
    values = [SentValue(from_file=name, value=(path.parent / name).read_text()) for name in names]
    files.append(SentFile(name=str(path.relative_to(example)), text=text, values=values))
estate = ReconciliationCreate(files=files, source="python")
run = create_reconciliation.sync(client=client, body=estate)
assert isinstance(run, ReconciliationRun), run
assert run.refusals == [] and all(it.severity == Severity.WARNING for it in run.diagnostics), run.diagnostics
assert run.reconciliation and run.summary.create > 20, run
again = create_reconciliation.sync(client=client, body=estate)
assert isinstance(again, ReconciliationRun) and again.plan and again.plan.changes == [], again

# Create.
pem = (example / "certs" / "partner-devices.pem").read_text()
authority = create_certificate_authority.sync(client=client, body=CertificateAuthorityCreate(ca_pem=pem))
assert isinstance(authority, CertificateAuthority), authority
edge = create_https_edge.sync(
    client=client,
    body=HttpsEdgeCreate(
        description="Public shop",
        hostports=["python.example.com:443"],
        mutual_tls=MutualTlsModuleInput(certificate_authority_ids=[authority.id]),
    ),
)
assert isinstance(edge, HttpsEdge), edge
assert edge.mutual_tls and edge.mutual_tls.certificate_authorities[0].id == authority.id, edge
routes: list[HttpsEdgeRoute] = []
for prefix in ("/", "/cart", "/checkout"):
    route = create_https_edge_route.sync(
        edge_id=edge.id,
        client=client,
        body=HttpsEdgeRouteCreate(
            match_type=MatchType.PATH_PREFIX,
            match=prefix,
            description="Basket",
            backend=BackendModuleInput(backend_id="bkd_shop"),
            compression=CompressionModuleInput(),
            oauth=OauthModuleInput(provider=ProviderInput(github=GithubAppInput(teams=["example/platform"]))),
        ),
    )
    assert isinstance(route, HttpsEdgeRoute), route
    assert route.match_type == MatchType.PATH_PREFIX and route.saml is None, route
    assert route.oauth and route.oauth.provider.github and route.oauth.provider.google is None, route
    routes.append(route)

# Page.
first = list_https_edge_routes.sync(edge_id=edge.id, client=client, limit=2)
assert isinstance(first, HttpsEdgeRouteList) and first.next_page_uri, first
rest = list_https_edge_routes.sync(edge_id=edge.id, client=client, limit=2, before_id=first.routes[-1].id)
assert isinstance(rest, HttpsEdgeRouteList) and rest.next_page_uri is None, rest
assert [route.id for route in first.routes + rest.routes] == [route.id for route in reversed(routes)]
edges = list_https_edges.sync(client=client)
assert isinstance(edges, HttpsEdgeList) and edge.id in [listed.id for listed in edges.https_edges], edges

# Change one field; the others stay.
cart = routes[1]
changed = update_https_edge_route.sync(
    edge_id=edge.id, id=cart.id, client=client, body=HttpsEdgeRouteUpdate(match="/basket")
)
assert isinstance(changed, HttpsEdgeRoute), changed
assert (changed.match, changed.description, changed.match_type) == ("/basket", "Basket", MatchType.PATH_PREFIX)
assert changed.compression and changed.compression.enabled, changed
removed = delete_https_edge_route_compression.sync_detailed(edge_id=edge.id, id=cart.id, client=client)
assert removed.status_code == 204, removed
unset = get_https_edge_route.sync(edge_id=edge.id, id=cart.id, client=client)
assert isinstance(unset, HttpsEdgeRoute) and unset.compression is None and unset.oauth, unset
module = replace_https_edge_route_backend.sync(
    edge_id=edge.id, id=cart.id, client=client, body=BackendModuleInput(backend_id="bkd_new")
)
assert isinstance(module, BackendModule) and module.backend.id == "bkd_new", module

# Read errors.
invalid = create_https_edge.sync(client=client, body=HttpsEdgeCreate(hostports=["no-port", "shop.example.com:0"]))
assert isinstance(invalid, Error) and invalid.status_code == 400 and invalid.details.field == "/hostports/0", invalid
assert invalid.errors and len(invalid.errors) == 2, invalid
missing = delete_https_edge_route_saml.sync(edge_id=edge.id, id=cart.id, client=client)
assert isinstance(missing, Error) and missing.error_code == "ERR_EDGEWRIGHT_NOT_FOUND", missing
used = delete_certificate_authority.sync(id=authority.id, client=client)
assert isinstance(used, Error) and used.status_code == 409 and authority.id in used.msg, used
stale = update_https_edge_route.sync_detailed(
    edge_id=edge.id, id=cart.id, client=client, body=HttpsEdgeRouteUpdate(match="/"), if_match='"stale"'
)
assert stale.status_code == 412 and isinstance(stale.parsed, Error), stale
assert stale.parsed.details.operation_id == stale.headers["Request-Id"], stale

# Delete.
assert delete_https_edge.sync_detailed(id=edge.id, client=client).status_code == 204
gone = get_https_edge_route.sync(edge_id=edge.id, id=cart.id, client=client)
assert isinstance(gone, Error) and gone.status_code == 404, gone
assert delete_certificate_authority.sync_detailed(id=authority.id, client=client).status_code == 204
print("Python client: ok")
