// Runs the example estate through the generated TypeScript types: create, page, change, delete, and read errors.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, extname, join } from "node:path";

import createClient from "openapi-fetch";

import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

function setting(name: string): string {
    const value = process.env[name];
    assert(value, `${name} is not set`);
    return value;
}

const client = createClient<paths>({
    baseUrl: setting("EDGEWRIGHT_URL"),
    headers: { Authorization: `Bearer ${setting("EDGEWRIGHT_TOKEN")}`, "Service-Version": "2" },
});

/** Returns the body of a success. */
function ok<T>(result: { data?: T; error?: unknown }): T {
    assert(result.data !== undefined, `the call failed: ${JSON.stringify(result.error)}`);
    return result.data;
}

/** Returns the body of an error. */
function failed(result: { error?: Schemas["Error"]; response: Response }, status: number): Schemas["Error"] {
    assert(result.error, "the call succeeded");
    assert.equal(result.response.status, status, result.error.msg);
    assert.equal(result.error.status_code, status);
    assert.equal(result.error.details.operation_id, result.response.headers.get("Request-Id"));
    return result.error;
}

// Apply the manifests of the example, with the files that they name.
const example = setting("EXAMPLE");
const names = readdirSync(example, { recursive: true, encoding: "utf8" }).sort();
const files = names
    .filter((name) => [".yaml", ".json"].includes(extname(name)))
    .map((name): Schemas["SentFile"] => {
        const text = readFileSync(join(example, name), "utf8");
        const named = new Set(Array.from(text.matchAll(/from_file: *([^ ,}\n]+)/g), (found) => found[1] ?? ""));
        const value = (file: string) => readFileSync(join(example, dirname(name), file), "utf8");
        return { name, text, values: Array.from(named, (file) => ({ from_file: file, value: value(file) })) };
    });
const estate: Schemas["ReconciliationCreate"] = { files, source: "typescript" };
const run = ok(await client.POST("/reconciliations", { body: estate }));
assert.deepEqual(run.refusals, []);
assert(run.diagnostics.every((it) => it.severity === "warning"), JSON.stringify(run.diagnostics));
assert(run.reconciliation && run.summary.create > 20, JSON.stringify(run.summary));
const again = ok(await client.POST("/reconciliations", { body: estate }));
assert.deepEqual(again.plan?.changes, []);

// Create.
const ca_pem = readFileSync(join(example, "certs", "partner-devices.pem"), "utf8");
const authority = ok(await client.POST("/certificate_authorities", { body: { ca_pem } }));
const edge = ok(
    await client.POST("/edges/https", {
        body: {
            description: "Public shop",
            hostports: ["typescript.example.com:443"],
            mutual_tls: { certificate_authority_ids: [authority.id] },
        },
    }),
);
assert.equal(edge.mutual_tls?.certificate_authorities[0]?.id, authority.id);
const routes: Schemas["HttpsEdgeRoute"][] = [];
for (const match of ["/", "/cart", "/checkout"]) {
    const body: Schemas["HttpsEdgeRouteCreate"] = {
        match_type: "path_prefix",
        match,
        description: "Basket",
        backend: { backend_id: "bkd_shop" },
        compression: {},
        oauth: { provider: { github: { teams: ["example/platform"] } } },
    };
    const route = ok(
        await client.POST("/edges/https/{edge_id}/routes", { params: { path: { edge_id: edge.id } }, body }),
    );
    assert.equal(route.match_type, "path_prefix");
    assert.equal(route.saml, null);
    assert(route.oauth?.provider.github && route.oauth.provider.google === null);
    routes.push(route);
}

// Page.
const found: string[] = [];
let before_id: string | undefined;
for (let page = 1; ; page += 1) {
    const list = ok(
        await client.GET("/edges/https/{edge_id}/routes", {
            params: { path: { edge_id: edge.id }, query: { limit: 2, before_id } },
        }),
    );
    found.push(...list.routes.map((route) => route.id));
    before_id = list.routes.at(-1)?.id;
    if (list.next_page_uri === null) {
        assert.equal(page, 2);
        break;
    }
}
assert.deepEqual(found, routes.map((route) => route.id).reverse());
const edges = ok(await client.GET("/edges/https"));
assert(edges.https_edges.some((listed) => listed.id === edge.id));

// Change one field; the others stay.
const cart = routes[1];
assert(cart);
const path = { edge_id: edge.id, id: cart.id };
const changed = ok(
    await client.PATCH("/edges/https/{edge_id}/routes/{id}", { params: { path }, body: { match: "/basket" } }),
);
assert.deepEqual([changed.match, changed.description, changed.match_type], ["/basket", "Basket", "path_prefix"]);
assert.equal(changed.compression?.enabled, true);
const removed = await client.DELETE("/edges/https/{edge_id}/routes/{id}/compression", { params: { path } });
assert.equal(removed.response.status, 204);
const unset = ok(await client.GET("/edges/https/{edge_id}/routes/{id}", { params: { path } }));
assert(unset.compression === null && unset.oauth !== null);
const backend = ok(
    await client.PUT("/edges/https/{edge_id}/routes/{id}/backend", {
        params: { path },
        body: { backend_id: "bkd_new" },
    }),
);
assert.equal(backend.backend.id, "bkd_new");

// Read errors.
const invalid = failed(
    await client.POST("/edges/https", { body: { hostports: ["no-port", "shop.example.com:0"] } }),
    400,
);
assert.equal(invalid.details.field, "/hostports/0");
assert.equal(invalid.errors?.length, 2);
const missing = failed(
    await client.DELETE("/edges/https/{edge_id}/routes/{id}/saml", { params: { path } }),
    404,
);
assert.equal(missing.error_code, "ERR_EDGEWRIGHT_NOT_FOUND");
const used = failed(await client.DELETE("/certificate_authorities/{id}", { params: { path: { id: authority.id } } }), 409);
assert(used.msg.includes(authority.id), used.msg);
failed(
    await client.PATCH("/edges/https/{edge_id}/routes/{id}", {
        params: { path, header: { "If-Match": '"stale"' } },
        body: { match: "/" },
    }),
    412,
);

// Delete.
const deleted = await client.DELETE("/edges/https/{id}", { params: { path: { id: edge.id } } });
assert.equal(deleted.response.status, 204);
failed(await client.GET("/edges/https/{edge_id}/routes/{id}", { params: { path } }), 404);
const rest = await client.DELETE("/certificate_authorities/{id}", { params: { path: { id: authority.id } } });
assert.equal(rest.response.status, 204);
console.log("TypeScript client: ok");
