//! Chromium without a window, where it is installed. It is driven as its own tools do: messages in JSON over a pipe, each
//! with a zero byte at its end.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::program::within;

/// The names that distributions give to it.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// It reads messages from descriptor 3, and writes its own to 4.
const SCRIPT: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;
/// A container has neither the rights for its sandbox nor much shared memory.
const OPTIONS: [&str; 12] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-proxy-server",
];
/// How long it may take for something, on a machine that does other work.
const LONGEST: Duration = Duration::from_secs(60);

/// A browser with one page. It ends when it is dropped.
pub(crate) struct Chromium {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    events: Vec<Value>,
    last_id: u64,
    /// The session of the page; empty until there is one.
    session: String,
    profile: TempDir,
}

impl Chromium {
    /// Starts the browser, or says that it skips.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("skipped: Chromium is not installed");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).arg(program).args(OPTIONS).arg("about:blank");
        command.arg(format!("--user-data-dir={}", profile.path().display())).env("HOME", profile.path());
        let log = fs::File::create(profile.path().join("log")).unwrap();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let (events, session) = (Vec::new(), String::new());
        let mut browser = Self { child, input, messages, events, last_id: 0, session, profile };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let page = json!({"targetId": page["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", page)["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of its tools, and returns the result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut message = self.receive(method);
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn receive(&mut self, wanted: &str) -> Value {
        self.messages.recv_timeout(LONGEST).unwrap_or_else(|error| {
            let log = fs::read_to_string(self.profile.path().join("log")).unwrap_or_default();
            panic!("{wanted}: {error}\n{log}")
        })
    }

    /// The value of an expression in the page; that of a promise, once it has one.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression:.200}: {answer}");
        answer["result"]["value"].take()
    }

    /// Does something that leads to another page, and waits until that is loaded.
    fn load(&mut self, lead: impl FnOnce(&mut Self)) {
        const LOADED: &str = "Page.loadEventFired";
        self.events.retain(|event| event["method"] != LOADED);
        lead(self);
        while !self.events.iter().any(|event| event["method"] == LOADED) {
            let event = self.receive(LOADED);
            self.events.push(event);
        }
    }

    /// Opens an address.
    pub(crate) fn open(&mut self, url: &str) {
        self.load(|page| drop(page.call("Page.navigate", json!({"url": url}))));
    }

    /// Clicks on what leads to another page: the first element of a selector.
    pub(crate) fn follow(&mut self, selector: &str) {
        self.load(|page| drop(page.evaluate(&format!("document.querySelector({}).click()", json!(selector)))));
    }

    /// Replaces what is in a field, and presses Enter, which sends its form.
    pub(crate) fn enter(&mut self, field: &str, text: &str) {
        self.evaluate(&format!("(it => {{ it.focus(); it.select(); }})(document.querySelector({}))", json!(field)));
        self.call("Input.insertText", json!({"text": text}));
        self.load(|page| page.press("Enter"));
    }

    /// Presses Tab or Enter.
    pub(crate) fn press(&mut self, key: &str) {
        let mut event = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": 9});
        if key == "Enter" {
            event["windowsVirtualKeyCode"] = json!(13);
            event["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", event);
    }

    /// The text of the first element of a selector, as somebody reads it; empty without one.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.evaluate(&format!("document.querySelector({})?.innerText ?? ''", json!(selector)));
        found.as_str().unwrap().to_owned()
    }

    /// Waits until an element has a text, and returns all that it has.
    pub(crate) fn until_text(&mut self, selector: &str, part: &str) -> String {
        within(LONGEST, part, || Some(self.text(selector)).filter(|text| text.contains(part)))
    }

    /// Where it is.
    pub(crate) fn address(&mut self) -> String {
        self.evaluate("location.href").as_str().unwrap().to_owned()
    }

    /// Shows pages in a window of this size and in a scheme of colours, to somebody who wants no motion.
    pub(crate) fn show_in(&mut self, width: u32, height: u32, scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        let motion = json!({"name": "prefers-reduced-motion", "value": "reduce"});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme, motion]}));
    }

    /// What it has complained of since the last call, and its requests to others than this origin.
    pub(crate) fn complaints(&mut self, origin: &str) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        events.iter().filter_map(|event| complaint(event, origin)).collect()
    }

    /// A picture of the window in PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"}));
        STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It has processes of its own, which write to its folder until they end.
        let _ = self.input.write_all(b"{\"id\": 0, \"method\": \"Browser.close\"}\0");
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an event complains of.
fn complaint(event: &Value, origin: &str) -> Option<String> {
    let parameters = &event["params"];
    let is_bad = |level: &Value| level == "error" || level == "warning";
    let complains = match event["method"].as_str()? {
        "Log.entryAdded" => is_bad(&parameters["entry"]["level"]),
        "Runtime.consoleAPICalled" => is_bad(&parameters["type"]),
        "Runtime.exceptionThrown" => true,
        "Network.requestWillBeSent" => {
            let url = parameters["request"]["url"].as_str()?;
            !url.strip_prefix(origin).is_some_and(|path| path.starts_with('/'))
        }
        _ => false,
    };
    complains.then(|| parameters.to_string())
}

fn program() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let mut paths = PROGRAMS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    paths.find(|path| path.is_file())
}
