// Keeps an open page current: fetches it again after a change, and replaces the parts that differ. Without this file, pages
// are the same and do not change by themselves.
const own = document.querySelector("script[data-live]");
const state = document.getElementById("live-state");
const LIVE = "Live.";
const OLD = "Not connected. The page may be old.";
let fetching = false;
let again = false;
let retrying = 0;

// An XMLHttpRequest parses a document without running anything in it, and needs no policy of trusted types.
function fetchPage() {
    return new Promise((resolve, reject) => {
        const request = new XMLHttpRequest();
        request.open("GET", location.href);
        request.responseType = "document";
        request.setRequestHeader("x-dashboard-live", "1");
        request.onload = () => resolve(request);
        request.onerror = () => reject(new Error("no connection"));
        request.send();
    });
}

// Whoever writes into a field or has marked a text keeps it.
function isBusy(part) {
    const active = document.activeElement;
    const isWriting = part.contains(active) && active.matches("input, textarea, select");
    const selection = getSelection();
    return isWriting || (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
}

// What a reader has opened stays open, and the focus stays where it was.
function keepState(old, made) {
    const before = [...old.querySelectorAll("details")];
    [...made.querySelectorAll("details")].forEach((it, index) => (it.open = before[index]?.open ?? it.open));
    const href = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    return () => href && [...made.querySelectorAll("a[href]")].find((it) => it.getAttribute("href") === href)?.focus({ preventScroll: true });
}

function replace(id, from) {
    const [old, found] = [document.getElementById(id), from.getElementById(id)];
    if (!old || !found || old.isEqualNode(found)) return;
    const made = document.importNode(found, true);
    const restore = keepState(old, made);
    old.replaceWith(made);
    restore();
}

// A server that has no place for the page, or cannot answer, is asked again.
function tryLater(request) {
    again = true;
    state.textContent = OLD;
    const seconds = Number(request.getResponseHeader("retry-after")) || 5;
    clearTimeout(retrying);
    // Not all open pages at once.
    retrying = setTimeout(refresh, 1000 * (seconds + 2 * Math.random()));
}

async function refresh() {
    if (fetching || document.hidden) return void (again = true);
    fetching = true;
    again = false;
    try {
        const request = await fetchPage();
        // A session that has ended leads to another page.
        if (new URL(request.responseURL).pathname !== location.pathname) return location.reload();
        if (request.status !== 200) return tryLater(request);
        const part = document.getElementById("live");
        if (request.response && part && !isBusy(part)) {
            for (const id of ["live", "revision"]) replace(id, request.response);
        }
        if (events?.readyState === EventSource.OPEN) state.textContent = LIVE;
    } catch {
        // The stream connects again, and its first event fetches the page.
        again = true;
    } finally {
        fetching = false;
    }
}

// A server that has no place for a stream, or is away, is asked again after so many milliseconds.
const PAUSE = 30000;
let events = null;
let waiting = 0;

// Only a page that somebody can see has a stream: a browser has few connections to one server, and the server has few places.
function connect() {
    clearTimeout(waiting);
    if (events || document.hidden) return;
    events = new EventSource(own.dataset.live);
    events.onmessage = refresh;
    events.onopen = () => {
        state.textContent = LIVE;
        if (again) refresh();
    };
    events.onerror = () => {
        state.textContent = OLD;
        again = true;
        if (events.readyState !== EventSource.CLOSED) return;
        events = null;
        waiting = setTimeout(connect, PAUSE);
    };
    events.addEventListener("ended", () => {
        disconnect();
        location.reload();
    });
}

function disconnect() {
    clearTimeout(waiting);
    events?.close();
    events = null;
    again = true;
}

if (own) {
    connect();
    document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
    // A stream that is left open would keep its place until the server notices.
    addEventListener("pagehide", disconnect);
    addEventListener("pageshow", connect);
}
