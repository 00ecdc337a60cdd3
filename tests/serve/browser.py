"""Chromium, driven by chromedriver in the words of W3C WebDriver: what the tests of the page need of it, no more."""
import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"]
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "End": "\ue010", "Home": "\ue011", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014",
        "Down": "\ue015", "Shift": "\ue008"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One window. js() runs a function body in the page; until() repeats one until it is true."""

    def __init__(self, folder):
        missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
        assert not missing, f"not installed: {missing}; tools/setup ci"
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:
            if port := re.search(r"started successfully on port (\d+)", line):
                break
        self.base = f"http://127.0.0.1:{port[1]}/session"
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={folder}"]}
        session = self.ask("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += "/" + session["sessionId"]

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from error

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(30)
            self.driver.stdout.close()

    def go(self, url):
        self.ask("POST", "/url", {"url": "about:blank"})
        self.ask("POST", "/url", {"url": url})

    def js(self, body, *arguments):
        return self.ask("POST", "/execute/sync", {"script": body, "args": list(arguments)})

    def until(self, body, *arguments, seconds=30):
        """What the function body returns, once that is true."""
        end = time.monotonic() + seconds
        while not (told := self.js(body, *arguments)):
            assert time.monotonic() < end, f"{body}\n{self.js('return document.body.innerText')[:3000]}\n{self.said()}"
            time.sleep(0.03)
        return told

    def click(self, selector):
        for _ in range(20):  # what is drawn anew between the two is another element
            element = self.ask("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
            try:
                return self.ask("POST", f"/element/{element}/click", {})
            except AssertionError as error:
                told = error
                if "stale element" not in str(error):
                    raise
        raise told

    def press(self, *keys):
        """Keys to what has the focus, by their names in KEYS, else as they are."""
        actions = []
        for key in keys:
            held, _, last = key.rpartition("+")
            names = [KEYS.get(name, name) for name in ([held, last] if held else [last])]
            actions += [{"type": "keyDown", "value": name} for name in names] + [{"type": "keyUp", "value": name} for name in names[::-1]]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def cdp(self, method, **params):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": method, "params": params})

    def look(self, width=1280, height=800, scheme="light"):
        """The size of the window and what its user prefers."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def said(self):
        """What the console said since it was last asked."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]
