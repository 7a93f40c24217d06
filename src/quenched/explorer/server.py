"""The server of the explorer: the standard library's, for this machine alone unless asked otherwise.

The page is a handful of files of our own; it loads nothing from anywhere. Questions are JSON, and so are answers. A
request is answered only if it names this server as its host and comes from this server's own page, so that no other
page in the same browser can ask.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.server
import importlib.resources
import ipaddress
import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import urllib.parse
import webbrowser
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from quenched.core.errors import InputError, reason
from quenched.explorer.kept import Kept
from quenched.explorer.places import Stale, listen, timed
from quenched.explorer.shelf import MOST_BYTES, Shelf

if TYPE_CHECKING:
    from quenched.explorer.desk import Desk

HERE = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine that only its own users can reach."""
PAGE = {
    "/": ("index.html", "text/html"), "/style.css": ("style.css", "text/css"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript")
       for name in ("main", "chart", "knobs", "map", "trial", "tables", "energy", "priors", "papers")},
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}  # fmt: skip
"""The files of the page, by address; there are no others."""
MOST_QUESTION = 256 * 1024
"""Bytes of a question."""
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")  # fmt: skip
"""What the page may load: only what comes from this server."""
PORTS = 20
"""Ports that are tried, one after the other, if none is asked for."""
FIRST_PORT = 8421
LOADING = {"done": 0, "of": 1, "now": "loading the sciences", "ready": []}
"""What is ready before anything is."""


class Refused(Exception):
    """A request that is not answered, with its status."""

    def __init__(self, status: HTTPStatus, sentence: str):
        super().__init__(sentence)
        self.status = status


class Server(http.server.ThreadingHTTPServer):
    """The explorer at one address."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, papers: Path, *, warm: bool = True):
        self.shelf = Shelf()  # first: a server that gets no address closes itself
        self.kept = Kept(cache() / "explorer.json")
        self._desk: concurrent.futures.Future[Desk] = concurrent.futures.Future()
        super().__init__((host, port), Handler)
        self.names = {*HERE, host, socket.gethostname().lower()}
        threading.Thread(target=self._load, args=(papers, warm), daemon=True, name="desk").start()

    def _load(self, papers: Path, warm: bool) -> None:
        """Import what answers questions, while the page is already served."""
        try:
            from quenched.explorer.desk import Desk

            self._desk.set_result(Desk(self.shelf, papers, self.kept, warm=warm))
        except BaseException as error:  # told to whoever asks
            self._desk.set_exception(error)

    @property
    def desk(self) -> Desk:
        """What answers questions; waits until it is there."""
        return self._desk.result()

    @property
    def is_loaded(self) -> bool:
        """Whether questions can be answered."""
        return self._desk.done()

    def is_called(self, host: str) -> bool:
        """Whether a request was meant for this server: other names may be made to lead here by whoever owns them."""
        name, _, port = host.rpartition(":")
        if port != str(self.server_address[1]):
            return False
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(name.strip("[]"))
            return not is_here(str(self.server_address[0])) or is_here(name)
        return name.lower() in self.names

    def server_close(self) -> None:
        """Close, and remove what was dropped."""
        super().server_close()
        self.shelf.close()
        if self.is_loaded and self._desk.exception() is None:
            self.desk.warm_up.stop()

    @property
    def address(self) -> str:
        """The address of the page."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes a connection is no error."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "quenched", ""
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is for what matters."""

    def do_GET(self) -> None:
        """The files of the page, what it has to know, and answers to be saved."""
        self._handle(self._get)

    def do_POST(self) -> None:
        """Questions."""
        self._handle(self._post)

    def _handle(self, work: Any) -> None:
        try:
            self._check_origin()
            work()
        except Refused as error:
            self.close_connection = True  # its body may be unread, and must not be taken for another request
            self._send_json({"refused": str(error)}, error.status)
        except InputError as error:
            self._send_json({"refused": " ".join(str(error).split())})
        except Stale:
            self._send_json({"stale": True})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # a fault of ours: the page shows it and goes on
            print(f"quenched: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            self._send_json({"fault": f"{type(error).__name__}: {error}"}, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _check_origin(self) -> None:
        """Check that a request was meant for this server and comes from its own page."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if "Transfer-Encoding" in self.headers or (self.command == "GET" and "Content-Length" in self.headers):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "A request must have a body of a known length, or none.")
        if not self.server.is_called(host):
            raise Refused(HTTPStatus.FORBIDDEN, f"The host must be {self.server.address}, but {host!r} was asked for.")
        if origin is not None and origin != f"http://{host}":
            raise Refused(HTTPStatus.FORBIDDEN, f"A question must come from this page, but it comes from {origin!r}.")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise Refused(HTTPStatus.FORBIDDEN, "A question must come from this page, but it comes from another one.")

    def _get(self) -> None:
        where = urllib.parse.urlsplit(self.path)
        if where.path in PAGE:
            name, kind = PAGE[where.path]
            body = importlib.resources.files("quenched.explorer").joinpath("page", name).read_bytes()
            return self._send(body, f"{kind}; charset=utf-8")
        if where.path == "/about":
            known = None if self.server.is_loaded else self.server.kept.about
            return self._send_json(known or self.server.desk.about)
        if where.path == "/ready":
            ready = self.server.desk.warm_up.state() if self.server.is_loaded else LOADING
            return self._send_json(ready)
        if where.path == "/save":
            return self._save(dict(urllib.parse.parse_qsl(where.query)))
        raise Refused(HTTPStatus.NOT_FOUND, "There is nothing at this address.")

    def _post(self) -> None:
        where = urllib.parse.urlsplit(self.path)
        if where.path == "/table":
            name = dict(urllib.parse.parse_qsl(where.query)).get("name", "")
            if self.headers.get_content_type() != "text/csv":
                raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A table must be sent as text/csv, but it is not.")
            self._send_json({"table": self.server.shelf.add(name, self._read(MOST_BYTES, "A table"))})
            return
        if where.path != "/ask":
            raise Refused(HTTPStatus.NOT_FOUND, "There is nothing at this address.")
        if self.headers.get_content_type() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A question must be JSON, but it is not.")
        asked = self._read_json(self._read(MOST_QUESTION, "A question"))
        if (kept := self._kept(asked)) is not None:
            self._send_json(kept)
            return
        view, state = self._question(asked)
        serial = asked.get("serial", 0)
        who = {name: str(asked.get(name, ""))[:64] for name in ("client", "slot")}
        answer, seconds, spent = timed(lambda: self.server.desk.places.answer(
            view, state, **who, serial=serial if isinstance(serial, int) else 0, patient=asked.get("patient") is True,
        ))  # fmt: skip
        spent = {"seconds": round(seconds, 4), "processor": round(spent, 4)}
        self._send_json(answer.told | {"spent": spent})

    def _kept(self, asked: Any) -> dict[str, Any] | None:
        """The answer of an earlier start, while there is no other."""
        if self.server.is_loaded or not isinstance(asked, dict) or not isinstance(asked.get("state"), dict):
            return None
        found = self.server.kept.find(str(asked.get("view")), asked["state"])
        return None if found is None else found | {"spent": {"seconds": 0.0, "processor": 0.0}}

    def _question(self, asked: Any) -> tuple[str, dict[str, Any]]:
        """The view and the state of a question."""
        known = self.server.desk.views
        if not isinstance(asked, dict) or asked.get("view") not in known:
            raise Refused(HTTPStatus.BAD_REQUEST, f"A question must be for one of {', '.join(known)}, but it is not.")
        state = asked.get("state", {})
        if not isinstance(state, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "A question must have a state, but it has none.")
        return asked["view"], state

    def _read(self, most: int, what: str) -> bytes:
        """The body of a request."""
        text = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,20}", text):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, f"{what} must say its length, but it does not.")
        if int(text) > most:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                          f"{what} must have at most {most:,} bytes, but it has {int(text):,}.")  # fmt: skip
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            raise Refused(HTTPStatus.BAD_REQUEST,
                          f"{what} must have the {int(text):,} bytes that it says, but it "
                          f"ends after {len(body):,}.")  # fmt: skip
        return body

    @staticmethod
    def _read_json(body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise Refused(HTTPStatus.BAD_REQUEST, "A question must be JSON, but it is not.") from None

    def _save(self, asked: dict[str, str]) -> None:
        """The dataset of an answer, as a netCDF file."""
        from quenched.core.results import save

        view, state = self._question(
            {"view": asked.get("view"), "state": self._read_json(asked.get("state", "").encode())}
        )
        places = self.server.desk.places
        answer = None if view in places.growing else places.answer(view, state)  # an address begins no work that lasts
        if answer is None or answer.result is None:
            raise InputError(f"The answer of {view} must be a dataset to be saved, but it is none.")
        with tempfile.TemporaryDirectory() as folder:
            body = save(answer.result, Path(folder) / f"{view}.nc").read_bytes()
        name = f'attachment; filename="quenched-{view}.nc"'
        self._send(body, "application/x-netcdf", {"Content-Disposition": name})

    def _send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(value, allow_nan=False).encode(), "application/json", status=status)

    def _send(
        self, body: bytes, kind: str, more: dict[str, str] | None = None, status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store",
            "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin", **(more or {}),
        }  # fmt: skip
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def start(host: str = "127.0.0.1", port: int | None = None, *, papers: Path | None = None, warm: bool = True) -> Server:
    """Start a server in a thread of its own.

    Args:
        host: the address of a network interface; by default only this machine can ask.
        port: by default the first one that is free from 8421 on; 0 for any.
        papers: the folder of a reproduction, by default one beside the compiled programs.
        warm: whether to compute first answers before they are asked for.

    Raises:
        InputError: if the address cannot be had.
    """
    papers = cache() / "papers" if papers is None else papers
    ports, failed = range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else [port], ""
    for one in ports:
        try:
            server = Server(host, one, papers, warm=warm)
        except (OSError, OverflowError) as error:
            failed = reason(error)
            continue
        threading.Thread(target=server.serve_forever, daemon=True, name="explorer").start()
        return server
    asked = f"{host}:{port}" if port is not None else f"{host}, ports {ports[0]} to {ports[-1]},"
    raise InputError(f"The explorer must have a free address, but {asked} cannot be had ({failed}).")


def cache() -> Path:
    """Where is kept what may be computed again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quenched"


def is_here(host: str) -> bool:
    """Whether only this machine can reach an address."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return host.lower() in HERE


def browse(address: str) -> bool:
    """Open a page in the browser, unless there is only one that would take over the terminal."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return False
    return type(found) is not webbrowser.GenericBrowser and found.open(address)


def wait(server: Server) -> NoReturn:
    """Wait until an interrupt, or until the process is asked to end; then close the server and end the process.

    Threads that compile cannot be told to stop, and an interpreter that ends in the usual way would abort in them.
    """
    with contextlib.suppress(KeyboardInterrupt):
        listen()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        while True:
            threading.Event().wait(3600.0)  # a wait without an end would not hear an interrupt on every system
    server.server_close()
    sys.stdout.flush()
    os._exit(0)
