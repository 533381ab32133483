# SPDX-License-Identifier: BSD-2-Clause
"""Chromium without a window, driven over chromedriver's WebDriver protocol (https://www.w3.org/TR/webdriver2/)."""
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import harness

START_SECONDS = 60
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver, 12.1: the web element identifier
KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Backspace": "\ue003", "ArrowUp": "\ue013", "ArrowDown": "\ue015",
        "ArrowLeft": "\ue012", "ArrowRight": "\ue014"}


class Browser:
    """One window. close() ends chromedriver and all that it has started."""

    def __init__(self, width=1400, height=1000):
        harness.need(shutil.which("chromium") or shutil.which("chromium-browser"), "chromium is missing; install the package chromium")
        harness.need_program("chromedriver", "chromium-driver")
        self.folder = tempfile.mkdtemp(prefix="vprof-browser-")
        self.log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        environment = os.environ | {"HOME": self.folder, "TMPDIR": self.folder}
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdin=subprocess.DEVNULL, stdout=self.log,
                                       stderr=subprocess.STDOUT, start_new_session=True, env=environment)
        try:
            self.url = f"http://127.0.0.1:{self.port()}"
            self.session = self.begin(width, height)
        except BaseException:
            self.close()
            raise

    def port(self):
        """chromedriver takes a free one and says which."""
        end = time.monotonic() + START_SECONDS * harness.SLOWNESS
        while time.monotonic() < end and self.driver.poll() is None:
            self.log.seek(0)
            text = self.log.read()
            if "started successfully on port " in text:
                return int(text.split("started successfully on port ")[1].split(".")[0])
            time.sleep(0.05)
        raise RuntimeError(f"chromedriver did not start: {text}")

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        # The proxies of the environment are not for this.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()[:2000]}") from None

    def begin(self, width, height):
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb",
                            f"--user-data-dir={self.folder}/profile", f"--window-size={width},{height}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        answer = self.request("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        return f"/session/{answer['sessionId']}"

    def close(self):
        try:
            if hasattr(self, "session"):
                self.request("DELETE", self.session)
        except (OSError, RuntimeError):
            pass
        if self.driver.poll() is None:
            self.driver.send_signal(signal.SIGTERM)
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.driver.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def cpu_seconds(self):
        """What the browser's processes have computed so far."""
        ticks = 0
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()  # from the third one on: state, ppid, pgrp, session
            except OSError:
                continue
            if int(fields[3]) == self.driver.pid:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def open(self, file):
        self.request("POST", f"{self.session}/url", {"url": f"file://{file}"})

    def run(self, script, *arguments):
        """What the body of a function returns in the page."""
        return self.request("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, seconds=30):
        end = time.monotonic() + seconds * harness.SLOWNESS
        while not (value := self.run(script)):
            if time.monotonic() > end:
                raise AssertionError(f"waited {seconds} s for {script}")
            time.sleep(0.02)
        return value

    def find(self, selector):
        return self.request("POST", f"{self.session}/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.request("POST", f"{self.session}/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        element = self.find(selector)
        self.request("POST", f"{self.session}/element/{element}/clear", {})
        self.request("POST", f"{self.session}/element/{element}/value", {"text": text})

    def press(self, *names):
        """Keys, for whatever has the focus."""
        keys = [KEYS.get(name, name) for name in names]
        actions = [action for key in keys for action in ({"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})]
        self.request("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def drag(self, selector, begin, end):
        """The pointer, pressed, between two points of an element: fractions of its width, in the middle of its height."""
        element = self.find(selector)
        width = self.run("return document.querySelector(arguments[0]).getBoundingClientRect().width", selector)
        move = lambda at: {"type": "pointerMove", "duration": 0, "origin": {ELEMENT: element}, "x": round((at - 0.5) * width), "y": 0}
        actions = [move(begin), {"type": "pointerDown", "button": 0}, move((begin + end) / 2), move(end), {"type": "pointerUp", "button": 0}]
        self.request("POST", f"{self.session}/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})

    def prefer(self, scheme):
        """What the user is said to prefer: light or dark."""
        self.request("POST", f"{self.session}/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]}})

    def screenshot(self):
        return base64.b64decode(self.request("GET", f"{self.session}/screenshot"))

    def console(self):
        """What the page, or a policy that it broke, has said since the last call."""
        return [entry["message"] for entry in self.request("POST", f"{self.session}/se/log", {"type": "browser"})]

    def requests(self):
        """The URLs that were asked for since the last call."""
        entries = self.request("POST", f"{self.session}/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
