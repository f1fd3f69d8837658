"""A headless Chromium for tests, spoken to over a pipe: no driver, no package.

Published: the Chrome DevTools Protocol; `--remote-debugging-pipe` reads commands from descriptor 3 and
writes answers to 4, each ended by a zero byte.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 90  # a first start on a busy machine


def find_browser() -> str | None:
    named = os.environ.get("COPPELIUS_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of one browser; what it asks of the network and what its console says are noted."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        command = f'exec "$0" "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                 "--disable-dev-shm-usage", f"--user-data-dir={profile}", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(
            ["bash", "-c", command, program, *flags], pass_fds=(ours[0], theirs[1]), stderr=subprocess.DEVNULL
        )
        os.close(ours[0])
        os.close(theirs[1])
        self.send_to, self.read_from = ours[1], theirs[0]
        self.waiting, self.number, self.session = b"", 0, None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self.waiting:
            assert select.select([self.read_from], [], [], deadline - time.monotonic())[0], "the browser is silent"
            part = os.read(self.read_from, 1 << 20)
            assert part, "the browser has ended"
            self.waiting += part
        text, _, self.waiting = self.waiting.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        self._note(found)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        method, told = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif (method == "Log.entryAdded" and told["entry"]["level"] == "error") or (
            method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning")
        ):
            self.complaints.append(str(told))

    def open(self, file: Path, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=file.as_uri())
        while self.run("document.readyState") != "complete" or not self.run("location.href").startswith("file:"):
            time.sleep(0.05)

    def run(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """A real click, in the middle of the element."""
        box = f"(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector({selector!r})"
        x, y = self.run(
            f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}}); {box}.getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type_into(self, selector: str, text: str) -> None:
        self.run(f"document.querySelector({selector!r}).value = ''; document.querySelector({selector!r}).focus()")
        self.call("Input.insertText", text=text)

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.send_to)
        os.close(self.read_from)
