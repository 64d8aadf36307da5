"""The server of `proctor play`: one page, and a WebSocket for its pictures and keys.

The page is one document without further files. Requests must name this machine (a web page elsewhere could
have its own name resolve to us), come from the page itself, and bring the token if there is one.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection

from proctor.agents.admission import Admission
from proctor.agents.server import host_of_url, listen
from proctor.contestants.play_session import PlaySession
from proctor.core.addresses import checked_token
from proctor.core.errors import UserError
from proctor.report.html import embedded_json
from proctor.runs.plan import RunPlan
from proctor.runs.run import RunReport
from proctor.runs.run import run as do_run

TOKEN_VARIABLE = "PROCTOR_PLAY_TOKEN"  # noqa: S105  (the name of a variable)
MAX_MESSAGE_BYTES = 4096
MAX_BROWSERS = 16
SEND_TIMEOUT_S, PING_TIMEOUT_S = 60.0, 20.0
VIEW_INTERVAL_S = 30.0
Text = Annotated[str, msgspec.Meta(max_length=200)]
log = logging.getLogger("proctor.play")


class EnterName(msgspec.Struct, tag="name", frozen=True):
    """A person has entered a name."""

    name: Text


class Press(msgspec.Struct, tag="press", frozen=True):
    """A button was pressed, or a slider moved."""

    turn: int
    name: Text
    value: float | None = None


class GiveUp(msgspec.Struct, tag="give_up", frozen=True):
    """The person wants the episode to end."""

    turn: int


class LeaveScore(msgspec.Struct, tag="next", frozen=True):
    """The person has seen a score."""

    number: int


class LeaveSummary(msgspec.Struct, tag="new_player", frozen=True):
    """The next person may begin."""


class TakeOver(msgspec.Struct, tag="take_over", frozen=True):
    """This browser wants the session."""


Message = EnterName | Press | GiveUp | LeaveScore | LeaveSummary | TakeOver
"""What the page sends, as JSON with a `type`."""


def play(
    session: PlaySession,
    plan_of: Callable[[str], RunPlan],
    on_report: Callable[[RunReport, RunPlan], None],
    name: str = "",
) -> None:
    """Let one person after the other take the exam, until interrupted. Runs are done in this thread.

    `plan_of` returns the run of a person by name, or raises UserError; `on_report` is called after each run.
    `name` is the first person, if known; a UserError about it is raised.
    """
    is_given = bool(name)
    while True:
        player = name if is_given else session.wait_for_name()
        try:
            plan = plan_of(player)
            report = do_run(plan, session.on_progress, policy=session.begin(player, plan))
        except UserError as error:
            if is_given:
                raise
            session.refuse_name(str(error))
            continue
        session.finish(report)
        on_report(report, plan)
        is_given = False


class PlayServer:
    """Serves the page of a session beside you; port 0 is any that is free.

    The page's address must hold the token. If others than this machine can reach it, one is drawn by default.
    """

    def __init__(
        self, session: PlaySession, *, title: str, host: str = "127.0.0.1", port: int = 8765, token: str = ""
    ) -> None:
        if not 0 <= port <= 65535:
            raise UserError(f"--port: expected a number from 0 to 65535, found {port}")
        self._is_local = is_loopback(host)
        self._token = checked_token(TOKEN_VARIABLE, token) if token else ""
        if not self._token and not self._is_local:
            self._token = secrets.token_urlsafe(18)
        self._session, self._host, self._port = session, host, port
        self._page = page_of(session, title)
        self._decoder = msgspec.json.Decoder(Message)
        self._actions: dict[type[Message], Callable[..., None]] = {
            EnterName: session.enter_name,
            Press: session.press,
            GiveUp: session.give_up,
            LeaveScore: session.leave_score,
            LeaveSummary: session.leave_summary,
            TakeOver: session.take_over,
        }
        self._connections = Admission(name="play", token=None, max_sessions=MAX_BROWSERS)
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        query = f"?{urlencode({'token': self._token})}" if self._token else ""
        return f"http://{host_of_url(self._host)}:{self._port}/{query}"

    def __enter__(self) -> Self:
        self._server = listen(
            self._handle,
            (self._host, self._port),
            self._connections.connect,
            process_request=self._answer,
            ping_timeout=PING_TIMEOUT_S,
            max_size=MAX_MESSAGE_BYTES,
            max_queue=4,
        )
        self._port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()

    # Plain HTTP, and who may open a WebSocket

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return an HTTP answer, or None to open the WebSocket."""
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_our_name(hosts[0]):
            return connection.respond(
                HTTPStatus.FORBIDDEN,
                "This is not a name of this machine. Open the address that `proctor play` printed.\n",
            )
        if any(origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}") for origin in origins):
            return connection.respond(HTTPStatus.FORBIDDEN, "Only the page itself may connect.\n")
        address = urlsplit(request.path)
        if address.path not in ("/", "/ws"):
            return connection.respond(HTTPStatus.NOT_FOUND, "There is nothing here but the page at /.\n")
        if self._token and not _is_token(parse_qs(address.query).get("token", []), self._token):
            problem = (
                "The address lacks the right token. Open the whole address that `proctor play` printed.\n"
            )
            return connection.respond(HTTPStatus.UNAUTHORIZED, problem)
        if address.path == "/ws":
            return None
        return self._page_answer(hosts[0])

    def _is_our_name(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # brackets that do not match
            return False
        if name == "localhost" or is_loopback(name):
            return True
        own = socket.gethostname().lower()
        return not self._is_local and (_is_ip(name) or name in (own, f"{own}.local", self._host.lower()))

    def _page_answer(self, host: str) -> Response:
        html, hashes = self._page
        rules = {
            "default-src": "'none'",
            "script-src": f"'sha256-{hashes[0]}'",
            "style-src": f"'sha256-{hashes[1]}'",
            "img-src": "blob: data:",
            "connect-src": f"'self' ws://{host} wss://{host}",
            **dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'"),
        }
        headers = Headers(
            {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Length": str(len(html)),
                "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in rules.items()),
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
                "Connection": "close",
            }
        )
        return Response(HTTPStatus.OK.value, HTTPStatus.OK.phrase, headers, html)

    # One browser

    def _handle(self, connection: ServerConnection) -> None:
        """Serve one browser, in its own thread: read what it sends, while another thread sends views."""
        request = connection.request
        query = parse_qs(urlsplit(request.path).query) if request is not None else {}
        client = query.get("client", [""])[0][:64] or secrets.token_hex(8)
        is_gone = threading.Event()
        self._session.enter(client)
        sender = threading.Thread(target=self._send_views, args=(connection, client, is_gone), daemon=True)
        try:
            connection.socket.settimeout(SEND_TIMEOUT_S)
            sender.start()
            for text in connection:
                message = self._decoder.decode(text)
                self._actions[type(message)](client, *msgspec.structs.astuple(message))
        except (msgspec.DecodeError, ValueError) as error:  # a ValidationError is a DecodeError
            log.warning("closed a connection: %s", error)
            connection.close(1008, str(error)[:100])
        except (ConnectionClosed, OSError):
            pass
        finally:
            is_gone.set()
            self._session.leave(client)

    def _send_views(self, connection: ServerConnection, client: str, is_gone: threading.Event) -> None:
        """Send the view whenever it has changed. A slow browser misses some, and gets the last one."""
        version = 0
        try:
            while not is_gone.is_set():
                found = self._session.wait(client, version, VIEW_INTERVAL_S)
                if found is not None and not is_gone.is_set():
                    version, view, pictures = found
                    connection.send(view.pack(pictures))
        except (ConnectionClosed, OSError):
            return


def page_of(session: PlaySession, title: str) -> tuple[bytes, tuple[str, str]]:
    """Return the page, and the hashes of its script and its style."""
    report, own = files("proctor.report") / "viewer", files("proctor.contestants") / "page"
    texts = {
        "script": '"use strict";\n'
        + "\n".join(
            file.read_text("utf-8") for file in (report / "dom.js", own / "words.js", own / "play.js")
        ),
        "style": "\n".join(file.read_text("utf-8") for file in (report / "style.css", own / "play.css")),
    }
    controls = session.controls
    setup = {
        "title": title,
        "exam": session.exam.title or session.exam.name,
        "buttons": controls.buttons,
        "sliders": controls.sliders,
        "howTo": controls.how_to,
    }
    html = (own / "index.html").read_text("utf-8")
    for name, part in {**texts, "data": embedded_json(setup)}.items():
        html = html.replace(f"<!--{name.upper()}-->", part, 1)
    script, style = (
        base64.b64encode(hashlib.sha256(texts[name].encode()).digest()).decode()
        for name in ("script", "style")
    )
    return html.encode(), (script, style)


def is_loopback(host: str) -> bool:
    """Tell whether an address reaches no other machine."""
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_token(found: list[str], token: str) -> bool:
    return len(found) == 1 and secrets.compare_digest(found[0].encode(), token.encode())
