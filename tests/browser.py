"""Chromium without a window, by its own protocol (DevTools): pages are as wide as a test asks.

Windows of Debian's `chromium` are at least 500 pixels wide, those of its `chromium-headless-shell` are not.
"""

import json
import shutil
import socket
import subprocess
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no network
    "--remote-debugging-pipe",
)
HEIGHT = 900
# A script's expression: the size of a page's smallest text, in pixels.
SMALLEST = """Math.min(...[...document.querySelectorAll("body *")]
  .filter((one) => [...one.childNodes].some((part) => part.nodeType === 3 && part.data.trim()))
  .map((one) => parseFloat(getComputedStyle(one).fontSize)))"""


def found() -> list[str | None]:
    """The programs that are there, the fastest first; None if there is none."""
    return [*filter(shutil.which, NAMES)] or [None]


class Page(HTMLParser):
    """A page as the browser left it.

    Attributes:
        result: the answer of a test's script, as text.
        console: messages: the page's own, and of what failed.
        elements: (tag, attributes), in order.
    """

    def __init__(self, html: str, result: str, console: list[str]) -> None:
        super().__init__()
        self.html, self.result, self.console, self.elements = html, result, console, []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


class Browser:
    """A process of the program at `program`, with its profile in `folder`. The messages, JSON, end in a zero byte each."""

    def __init__(self, program: str, folder: Path) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(120)
        read_3_write_4 = f'exec "$@" 3<&{theirs.fileno()} 4>&{theirs.fileno()}'
        self.process = subprocess.Popen(
            ["bash", "-c", read_3_write_4, "-", program, *FLAGS, f"--user-data-dir={folder}"],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self.unread, self.calls, self.events = b"", 0, []

    def close(self) -> None:
        with suppress(AssertionError, OSError):  # it may end before it answers
            self.call("Browser.close")
        self.process.wait()

    def open(self, path: Path, script: str, *, width: int, scripts: bool, part: str) -> Page:
        """Open a page and run a script in it once it is there: the body of a function, which may return a promise."""
        context = self.call("Target.createBrowserContext")
        target = self.call("Target.createTarget", url="about:blank", **context)
        session = self.call("Target.attachToTarget", **target, flatten=True)["sessionId"]

        def call(method, **words):
            return self.call(method, session, **words)

        self.events.clear()
        for domain in ("Page", "Runtime", "Log"):
            call(f"{domain}.enable")
        call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=HEIGHT,
            deviceScaleFactor=1,
            mobile=False,
        )
        call("Emulation.setFocusEmulationEnabled", enabled=True)
        call("Emulation.setScriptExecutionDisabled", value=not scripts)
        call("Page.navigate", url=path.as_uri() + part)
        self.wait_for("Page.loadEventFired")
        question = f"(async () => String(await (() => {{ {script} }})()))()"
        output = call("Runtime.evaluate", expression=question, awaitPromise=True)
        assert "exceptionDetails" not in output, output["exceptionDetails"]
        html = call("Runtime.evaluate", expression="document.documentElement.outerHTML")
        console = [text for event in self.events if (text := message(event))]
        self.call("Target.disposeBrowserContext", **context)
        return Page(html["result"]["value"], output["result"]["value"], console)

    def call(self, method: str, session: str | None = None, **words) -> dict:
        """The browser's answer to a command; events that come before it are kept."""
        self.calls += 1
        command = {"id": self.calls, "method": method, "params": words}
        command |= {"sessionId": session} if session else {}
        self.socket.sendall(json.dumps(command).encode() + b"\0")
        while (answer := self._next()).get("id") != self.calls:
            self.events.append(answer)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def wait_for(self, name: str) -> None:
        while all(event.get("method") != name for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict:
        """The next message."""
        while b"\0" not in self.unread:
            read = self.socket.recv(1 << 20)
            assert read, "the browser has ended"
            self.unread += read
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)


def message(event: dict) -> str:
    """The text that an event adds to the console; empty if it adds none."""
    found = event.get("params", {})
    match event.get("method"):
        case "Runtime.consoleAPICalled":
            return " ".join(str(one.get("value", one.get("description"))) for one in found["args"])
        case "Runtime.exceptionThrown":
            thrown = found["exceptionDetails"]
            return thrown.get("exception", {}).get("description", thrown["text"])
        case "Log.entryAdded":
            return found["entry"]["text"]
    return ""
