// Shows the OpenAPI document. Its texts become text nodes and never HTML; the Content-Security-Policy enforces it.
const byId = (id) => document.getElementById(id);
let api;

// Creates an element. Children that are strings become text.
function make(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}
const code = (text) => make("code", {}, String(text));
// With the keyboard, only what can have the focus scrolls.
const json = (value) => make("pre", { tabindex: "0" }, JSON.stringify(value, null, 2));
// A list of terms, or nothing if there are none.
const terms = (items) => (items.length ? [make("dl", {}, ...items)] : []);

// Descriptions have paragraphs, lists and `code`, and no other Markdown.
const inline = (text) => text.split("`").map((part, index) => (index % 2 ? code(part) : part));
function prose(text = "") {
    return text.split(/\n{2,}/).filter(Boolean).map((block) => {
        if (!block.startsWith("- ")) return make("p", {}, ...inline(block));
        return make("ul", {}, ...block.slice(2).split("\n- ").map((item) => make("li", {}, ...inline(item))));
    });
}

const isObject = (value) => value?.constructor === Object;
const resolved = (it) => (it.$ref ? it.$ref.slice(2).split("/").reduce((value, key) => value[key], api) : it);
const alternatives = (lists) => lists.flatMap((list, index) => (index ? [" or ", ...list] : list));

// The type of a value, with links to the schemas that it names.
function typeOf(schema) {
    const name = schema.$ref?.split("/").pop();
    if (name) return [make("a", { href: `#schema-${name}` }, name)];
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices) return alternatives(choices.map(typeOf));
    if (schema.enum) return alternatives(schema.enum.map((one) => [code(JSON.stringify(one))]));
    const { type = "any value", items, properties, additionalProperties: rest } = schema;
    const types = [type].flat().map((one) => {
        if (one === "array" && items) return ["array of ", ...typeOf(items)];
        return one === "object" && isObject(rest) && !properties ? ["map of ", ...typeOf(rest)] : [one];
    });
    // Every other number or text limits the value, such as `maxLength` or `pattern`.
    const limits = Object.entries(schema).filter(([key, it]) =>
        !["type", "description"].includes(key) && ["number", "string"].includes(typeof it));
    return [...alternatives(types), ...limits.flatMap(([key, it]) => [`, ${key} `, code(it)])];
}

// The fields of the objects in a schema that have no name of their own.
function fields(schema) {
    const { properties, required = [], items, additionalProperties, anyOf = [] } = schema;
    if (!properties) return [items, additionalProperties, ...anyOf].filter(isObject).flatMap(fields);
    return terms(Object.entries(properties).flatMap(([name, inner]) =>
        value({ ...inner, name, required: required.includes(name), schema: inner })));
}

// A parameter, header or field.
function value({ name, in: place, required, description, schema, examples = [], "x-extension": extension }) {
    const marks = [place, required && "required", extension && "extension"].filter(Boolean);
    const notes = marks.flatMap((mark) => [" ", make("small", {}, mark)]);
    const shown = examples.map((example) => make("p", {}, "For example ", code(JSON.stringify(example))));
    return [
        make("dt", {}, code(name), " ", make("span", {}, ...typeOf(schema)), ...notes),
        make("dd", {}, ...prose(description), ...shown, ...fields(schema)),
    ];
}

function content(contents = {}) {
    return Object.entries(contents).flatMap(([type, { schema = {}, example }]) => [
        make("p", {}, code(type), ": ", ...typeOf(schema)), ...fields(schema),
        ...(example === undefined ? [] : [make("p", {}, "Example:"), json(example)]),
    ]);
}

function response([status, reference]) {
    const { description, content: contents, headers = {} } = resolved(reference);
    const named = Object.entries(headers).flatMap(([name, header]) => value({ ...header, name, in: "header" }));
    return [make("dt", {}, code(status)), make("dd", {}, ...prose(description), ...content(contents), ...terms(named))];
}

// An entry is filled when it is opened first: all at once would be tens of thousands of elements.
const entries = [];
function entry(id, summary, words, fill) {
    const made = make("details", { id }, make("summary", {}, ...summary));
    made.addEventListener("toggle", () => made.append(make("div", {}, ...fill())), { once: true });
    entries.push({ made, text: words.join(" ").toLowerCase() });
    return made;
}

function operationEntry([path, method, { [method]: operation, parameters: shared = [] }]) {
    const { operationId: id, summary, description, tags, requestBody, responses, security } = operation;
    const parameters = [...shared, ...(operation.parameters ?? [])].map(resolved);
    const mark = operation["x-extension"] ? [" ", make("small", {}, "extension")] : [];
    const title = [make("b", { class: method }, method.toUpperCase()), " ", code(path), ` ${summary}`, ...mark];
    const part = (heading, children) => (children.length ? [make("h3", {}, heading), ...children] : []);
    const words = [id, method, path, summary, description, ...tags, ...parameters.map((it) => it.name)];
    return entry(id, title, words, () => [
        ...prose(description), ...(security?.length === 0 ? prose("Needs no API key.") : []),
        ...part("Parameters", terms(parameters.flatMap(value))), ...part("Request body", content(requestBody?.content)),
        ...part("Responses", terms(Object.entries(responses).flatMap(response))),
        make("p", {}, make("a", { href: `#${id}` }, `Link to ${id}`)),
    ]);
}

function schemaEntry([name, schema]) {
    const { description = "", properties = {} } = schema;
    return entry(`schema-${name}`, [code(name)], [name, description, ...Object.keys(properties)], () => [
        ...prose(description), make("p", {}, "Type: ", ...typeOf(schema)), ...fields(schema),
        make("h3", {}, "JSON Schema"), json(schema),
    ]);
}

function section(title, description, children) {
    const id = `section-${title.replaceAll(" ", "-")}`;
    const inside = [make("h2", { id }, title), ...prose(description), ...children];
    byId("sections").append(make("li", {}, make("a", { href: `#${id}` }, title)));
    byId("content").append(make("section", { "aria-labelledby": id }, ...inside));
}

function filter() {
    const words = byId("filter").value.toLowerCase().split(/\s+/);
    for (const { made, text } of entries) made.hidden = !words.every((word) => text.includes(word));
    for (const made of document.querySelectorAll("section")) made.hidden = !made.querySelector("details:not([hidden])");
    const shown = entries.filter(({ made }) => !made.hidden).length;
    byId("status").textContent = shown < entries.length ? `${shown} of ${entries.length} entries` : "";
}

// Opens what the address names, also if the filter hides it.
function openNamed() {
    const named = byId(location.hash.slice(1));
    if (!named || !byId("content").contains(named)) return;
    if (named.closest("[hidden]")) byId("filter").value = "";
    filter();
    if (named.matches("details")) named.open = true;
    named.querySelector("summary")?.focus({ preventScroll: true });
    named.scrollIntoView();
}

function show({ info, paths, tags, components: { schemas, securitySchemes } }) {
    document.title = byId("title").textContent = `${info.title}, version ${info.version}`;
    const headers = Object.values(securitySchemes).map(({ scheme, name = `Authorization: ${scheme}`, description }) =>
        make("li", {}, code(name), " – ", ...inline(description)));
    byId("about").append(...prose(info.summary), ...prose(info.description), make("ul", {}, ...headers));
    const operations = Object.entries(paths).flatMap(([path, item]) =>
        Object.keys(item).filter((key) => key !== "parameters").map((method) => [path, method, item]));
    for (const { name, description } of tags) {
        const tagged = operations.filter(([, method, item]) => item[method].tags.includes(name));
        section(name, description, tagged.map(operationEntry));
    }
    section("Schemas", "The forms of bodies, and of what is in them.", Object.entries(schemas).map(schemaEntry));
    byId("status").textContent = "";
    byId("search").hidden = false;
    byId("filter").addEventListener("input", filter);
    addEventListener("hashchange", openNamed);
    openNamed();
}

byId("status").textContent = "Loading…";
fetch("../openapi.json")
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`status ${answer.status}`))))
    .then((document) => show((api = document)))
    .catch((error) => (byId("status").textContent = `The OpenAPI document cannot be shown: ${error.message}`));
