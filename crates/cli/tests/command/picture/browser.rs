//! A headless Chromium, driven over ChromeDriver's protocol (W3C WebDriver).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// One page in a browser with a profile of its own. Both end with it.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// `None`, put on record, where there is no Chromium.
    pub(crate) fn start() -> Option<Browser> {
        let (chromium, driver) = marquetry_testing::chromium()?;
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("ChromeDriver starts");
        let mut said = BufReader::new(driver.stdout.take().expect("its output"));
        let port = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).expect("a line") > 0, "ChromeDriver ended");
            if let Some(port) =
                line.trim_end().strip_suffix('.').and_then(|line| line.rsplit_once("on port "))
            {
                break port.1.parse().expect("a port");
            }
        };
        let mut browser = Browser { driver, port, session: String::new(), _profile: profile };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,1400",
            &folder,
        ];
        let wanted = json!({
            "browserName": "chrome",
            "goog:chromeOptions": { "binary": chromium, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let session =
            browser.request("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = session["sessionId"].as_str().expect("a session").to_string();
        Some(browser)
    }

    pub(crate) fn open(&self, page: &Path) {
        self.post("url", &json!({ "url": format!("file://{}", page.display()) }));
    }

    /// What a script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Points at a place in an element, given as shares of its width and height from its middle; with a click if so.
    pub(crate) fn point(&self, selector: &str, (x, y): (f64, f64), clicks: bool) {
        let place = self.run(&format!(
            "const one = document.querySelector('{selector}'); one.scrollIntoView({{ block: 'center' }});\
             const box = one.getBoundingClientRect();\
             return [Math.round(box.left + box.width * {x}), Math.round(box.top + box.height * {y})]"
        ));
        let mut actions = vec![json!({ "type": "pointerMove", "duration": 0, "x": place[0], "y": place[1] })];
        if clicks {
            actions.push(json!({ "type": "pointerDown", "button": 0 }));
            actions.push(json!({ "type": "pointerUp", "button": 0 }));
        }
        self.post(
            "actions",
            &json!({ "actions": [{ "type": "pointer", "id": "mouse", "actions": actions }] }),
        );
        self.frame();
    }

    /// Presses a key on an element.
    pub(crate) fn press(&self, selector: &str, key: &str) {
        self.run(&format!("document.querySelector('{selector}').focus()"));
        let actions = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
        self.frame();
    }

    /// As seen in the dark, or not.
    pub(crate) fn scheme(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let command = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": features } });
        self.post("goog/cdp/execute", &command);
        self.frame();
    }

    /// As seen through a window of a width.
    pub(crate) fn width(&self, width: u32) {
        let params = json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        let command = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": params });
        self.post("goog/cdp/execute", &command);
        self.frame();
    }

    /// What the page and the browser put on its console.
    pub(crate) fn console(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "browser" }));
        log.as_array().expect("a log").iter().map(Value::to_string).collect()
    }

    /// Waits until what was asked for is drawn.
    fn frame(&self) {
        let script =
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))";
        self.post("execute/async", &json!({ "script": script, "args": [] }));
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        self.request("POST", &format!("/session/{}/{what}", self.session), body)
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let (code, answer) = self.exchange(method, path, body).expect("ChromeDriver answers");
        assert_eq!(code, 200, "{path}: {answer}");
        answer["value"].clone()
    }

    /// One request on a connection of its own.
    fn exchange(&self, method: &str, path: &str, body: &Value) -> std::io::Result<(u16, Value)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let body = body.to_string();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut answer = BufReader::new(stream);
        let (mut line, mut code, mut length) = (String::new(), 0, 0);
        while answer.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
            if line.starts_with("HTTP/") {
                code = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
            }
            if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = bytes.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut bytes = vec![0; length];
        answer.read_exact(&mut bytes)?;
        Ok((code, serde_json::from_slice(&bytes)?))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser first; nothing can be done about one that is gone.
        let _ = self.exchange("DELETE", &format!("/session/{}", self.session), &json!({}));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
