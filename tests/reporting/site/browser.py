"""A headless Chromium, driven over the pipe of its DevTools protocol: no driver and no package is
needed.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE_SECONDS = 120  # other tests may keep all cores busy


class Page:
    """One tab. Errors of scripts and failed requests are in `faults`, requests in `requested`."""

    def __init__(self, send: int, receive: int):
        self.send, self.receive, self.number, self.session = send, receive, 0, None
        self.rest, self.faults, self.requested = b"", [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.send, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.number:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def read(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            self.rest += os.read(self.receive, 1 << 16)
        text, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(text)
        kind, params = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown" or (
            kind == "Log.entryAdded" and params["entry"]["level"] == "error"
        ):
            self.faults.append(params)
        if kind == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])
        return message

    def open(self, url: str, width: int = 1280, dark: bool = False) -> None:
        """Open a page at a width, and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Page.navigate", url=url)
        end = time.monotonic() + PATIENCE_SECONDS
        while (
            self.evaluate("document.readyState + location.href.startsWith('about:')")
            != "completefalse"
        ):
            assert time.monotonic() < end, url
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; of a promise, what it resolves to."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")


@contextmanager
def opened(profile: Path) -> Iterator[Page]:
    """Start Chromium with an empty profile, and end it."""
    (commands, send), (receive, answers) = os.pipe(), os.pipe()

    def connect() -> None:  # Chromium reads from descriptor 3 and writes to 4
        first, second = os.dup(commands), os.dup(answers)
        os.dup2(first, 3), os.dup2(second, 4)

    command = [
        CHROMIUM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-pipe",
    ]
    command += [
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
    ]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={profile}"],
        preexec_fn=connect,
        close_fds=False,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands), os.close(answers)
    try:
        yield Page(send, receive)
    finally:
        process.kill()
        process.wait()
        os.close(send), os.close(receive)
