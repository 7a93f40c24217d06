"""Chromium, told what to do through a pipe: no driver beside it, no port, and nothing to install.

It speaks the protocol of its own developer tools: JSON messages, each ended by a zero byte. Only what the tests need
is here: pages, the mouse, files that are chosen, and what a page asked the network for.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
           "--disable-component-update", "--no-first-run", "--hide-scrollbars")  # fmt: skip
PIPES = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
         "os.execvp(sys.argv[3], sys.argv[3:])")  # fmt: skip
"""Chromium reads its third descriptor and writes its fourth."""
PATIENCE = 60.0
"""Seconds in which a page must do what is waited for; usually it takes far less."""
LOOK = 0.02
"""Seconds between two looks at a page."""


def executable() -> str:
    """The Chromium of the system; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"The browser tests need Chromium, but none of {', '.join(NAMES)} is installed.")
    return found


class Chromium:
    """A browser of its own for one test module."""

    def __init__(self, folder: Path):
        down, self._down = os.pipe()
        self._up, up = os.pipe()
        command = [sys.executable, "-c", PIPES, str(down), str(up), executable(), *OPTIONS,
                   f"--user-data-dir={folder}", "--remote-debugging-pipe"]  # fmt: skip
        self._process = subprocess.Popen(command, pass_fds=(down, up), stderr=subprocess.DEVNULL)
        os.close(down)
        os.close(up)
        self._rest, self._serial = b"", 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **given: Any) -> dict[str, Any]:
        """Tell the browser to do something, and return what it answers."""
        self._serial += 1
        words = {"id": self._serial, "method": method, "params": given} | ({"sessionId": session} if session else {})
        os.write(self._down, json.dumps(words).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            said = self._hear(until)
            if said.get("id") == self._serial:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']['message']}")
                return said["result"]
            self.events.append(said)

    def _hear(self, until: float) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._up], [], [], max(0.0, until - time.monotonic()))
            some = os.read(self._up, 2**20) if ready else b""
            if not some:
                raise TimeoutError("Chromium does not answer.")
            self._rest += some
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    @contextlib.contextmanager
    def page(self, address: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> Iterator[Page]:
        """A page in a window of its own, which shares nothing with others."""
        apart = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=apart)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        found = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "DOM"):
            found.call(f"{domain}.enable")
        found.resize(width, height)
        found.call("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])  # fmt: skip
        origin = address.split("#")[0].rstrip("/")
        self.call("Browser.grantPermissions", origin=origin, browserContextId=apart,
                  permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])  # fmt: skip
        found.open(address)
        yield found
        self.call("Target.disposeBrowserContext", browserContextId=apart)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            self.call("Browser.close")
        os.close(self._down)
        os.close(self._up)
        self._process.wait(timeout=30)


class Page:
    """One page."""

    def __init__(self, browser: Chromium, session: str):
        self.browser, self.session = browser, session

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Tell the page something."""
        return self.browser.call(method, self.session, **given)

    def open(self, address: str) -> None:
        """Go to an address; the same one is loaded again."""
        self.call("Page.navigate", url=address)
        if self("location.href") == address and self("performance.now()") > 1000:
            self.call("Page.reload")

    def resize(self, width: int, height: int) -> None:
        """The size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)  # fmt: skip

    def __call__(self, script: str) -> Any:
        """The value of some JavaScript, after its promises."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True,
                          userGesture=True)  # fmt: skip
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", script))
        return found["result"].get("value")

    def wait(self, script: str, within: float = PATIENCE) -> Any:
        """Wait until some JavaScript is true, and return its value."""
        until = time.monotonic() + within
        plain = f"const found = {script}; return found instanceof Node || found;"  # a node has no value of its own
        while not (found := self(f"(() => {{ try {{ {plain} }} catch {{ return null; }} }})()")):
            if time.monotonic() > until:
                seen = self("document.querySelector('main')?.innerText ?? ''")
                raise AssertionError(f"not within {within} s: {script}\nThe page shows:\n{seen[:3000]}")
            time.sleep(LOOK)
        return found

    def text(self, where: str) -> str:
        """The words in an element."""
        return self(f"document.querySelector({json.dumps(where)})?.innerText ?? ''")

    def place(self, where: str) -> tuple[float, float]:
        """The middle of an element, after scrolling to it."""
        box = self(f"(() => {{ const e = document.querySelector({json.dumps(where)}); e.scrollIntoView({{block: "
                   "'center'}); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; "
                   "})()")  # fmt: skip
        return box[0], box[1]

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Press, move or release the mouse."""
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left", buttons=1,
                  clickCount=0 if kind == "Moved" else 1, **more)  # fmt: skip

    def click(self, where: str) -> None:
        """Click on an element."""
        x, y = self.place(where)
        self.mouse("Pressed", x, y)
        self.mouse("Released", x, y)

    def drag(self, where: str, right: float, down: float, steps: int = 8) -> None:
        """Press on an element and move from there, without a release."""
        x, y = self.place(where)
        self.mouse("Pressed", x, y)
        for k in range(1, steps + 1):
            self.mouse("Moved", x + right * k / steps, y + down * k / steps)

    def release(self, where: str, right: float = 0.0, down: float = 0.0) -> None:
        """Release the mouse beside an element."""
        x, y = self.place(where)
        self.mouse("Released", x + right, y + down)

    def choose_file(self, where: str, path: Path) -> None:
        """Choose a file in a field for files."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=where)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press a key."""
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13}.get(key, 0)
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      modifiers=modifiers)  # fmt: skip

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """What is seen, as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def requests(self) -> list[str]:
        """Addresses that the page asked for so far."""
        self("1")
        return [one["params"]["request"]["url"] for one in self._events("Network.requestWillBeSent")]

    def faults(self) -> list[str]:
        """Errors of its scripts, and answers that are faults of the server."""
        self("1")
        thrown = [one["params"]["exceptionDetails"] for one in self._events("Runtime.exceptionThrown")]
        answers = [one["params"]["response"] for one in self._events("Network.responseReceived")]
        said = [one["params"] for one in self._events("Runtime.consoleAPICalled")]
        return [
            *(one.get("exception", {}).get("description", one["text"]) for one in thrown),
            *(f"{one['status']} {one['url']}" for one in answers if one["status"] >= 400),
            *(str(one["args"]) for one in said if one["type"] == "error"),
        ]

    def _events(self, method: str) -> list[dict[str, Any]]:
        return [one for one in self.browser.events if one.get("method") == method
                and one.get("sessionId") == self.session]  # fmt: skip
