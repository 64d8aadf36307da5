"""The MCP server of an exam, over stdio or streamable HTTP.

It runs in a thread of its own, while the run that waits for the agent's actions has the main thread. No state
is kept per connection: the newest protocol has no sessions, so the episode's handle is an argument.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import anyio
import msgspec
import uvicorn
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from proctor import __version__
from proctor.contestants.mcp_tools import ExamTools, Refused
from proctor.core.errors import UserError

MCP_PATH = "/mcp"
MAX_BODY_BYTES = 256 * 1024
MAX_CONNECTIONS = 64
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
REQUEST_TIMEOUT_S = 10.0
"""From a connection to its first whole request: idle connections must not keep the agent out."""
END_WAIT_S = 10.0
"""How long the HTTP server stays after the last episode for an agent that asks for another one."""
INSTRUCTIONS = """\
You take an exam for robots, episode by episode. Call begin_episode: it returns a handle, an instruction for
the robot and what the robot sees. Follow the instruction with act, and look at the pictures after each call;
pass the handle, and as expect_step the `step` of the last result. When you have done what the instruction
says, call stop. Then call begin_episode again, until it says that the exam is over.
Decide by yourself, from what these tools show you; do not look for files of the exam."""


def mcp_server(tools: ExamTools, *, is_structured: bool = False) -> Server[Any]:
    """Return the server of these tools.

    `is_structured` repeats the report as structured content. Some clients then drop the pictures.
    """

    async def list_tools(*_: object) -> ListToolsResult:
        looks = ("observe", "check_pictures")
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    description=description,
                    input_schema=schema,
                    annotations=ToolAnnotations(read_only_hint=name in looks, open_world_hint=False),
                )
                for name, (description, schema) in tools.schemas().items()
            ]
        )

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        try:
            # In a thread, to its end: a client that gives up does not leave a call half done.
            reply = await run_sync(tools.call, params.name, params.arguments or {})
        except Refused as refused:
            return CallToolResult(content=[TextContent(type="text", text=str(refused))], is_error=True)
        pictures = [
            ImageContent(type="image", data=base64.b64encode(picture).decode(), mime_type="image/jpeg")
            for picture in reply.pictures
        ]
        return CallToolResult(
            content=[TextContent(type="text", text=msgspec.json.encode(reply.report).decode()), *pictures],
            structured_content=reply.report if is_structured else None,
        )

    return Server(
        "proctor",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class StdioTransport:
    """Serves the client that has started this process, until that closes its end."""

    def __init__(self, server: Server[Any], on_close: Callable[[], None]) -> None:
        self._server, self._on_close = server, on_close
        # A daemon, as will be the thread that reads stdin and that nothing can interrupt.
        self._thread = threading.Thread(target=anyio.run, args=(self._serve,), name="mcp", daemon=True)

    async def _serve(self) -> None:
        try:
            async with stdio_server() as (reading, writing):
                await self._server.run(reading, writing, self._server.create_initialization_options())
        finally:
            self._on_close()

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def finish(self) -> None:
        """Wait for the client to close its end."""
        self._thread.join()

    def close(self) -> None:
        """Leave the rest to the end of the process."""


class HttpTransport:
    """Serves clients that send `Authorization: Bearer TOKEN`, at `url`; port 0 is any that is free.

    `allow_hosts` are names by which clients may call this machine, beside those of the loopback, and
    `allow_origins` web pages that may call it.
    """

    def __init__(
        self,
        server: Server[Any],
        tools: ExamTools,
        *,
        token: str,
        address: tuple[str, int],
        allow_hosts: Sequence[str] = (),
        allow_origins: Sequence[str] = (),
    ) -> None:
        self._tools, (host, port) = tools, address
        self._socket = _listen(host, port)
        names = dict.fromkeys([*LOOPBACK, f"[{host}]" if ":" in host else host, *allow_hosts])
        self.allowed_hosts = [name for name in names if name not in ("0.0.0.0", "[::]")]  # noqa: S104
        security = TransportSecuritySettings(
            allowed_hosts=[*self.allowed_hosts, *(f"{name}:*" for name in self.allowed_hosts)],
            allowed_origins=list(allow_origins),
        )
        app = server.streamable_http_app(
            streamable_http_path=MCP_PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=MAX_BODY_BYTES,
            transport_security=security,
        )
        config = uvicorn.Config(
            _TokenCheck(app, token),
            http=_ImpatientProtocol,
            log_config=None,
            access_log=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=round(END_WAIT_S),
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="mcp", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it is reached from this machine, or from others if it listens at one address alone."""
        host, port = self._socket.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP_PATH}"

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def finish(self) -> None:
        """Wait until the agent has been told of the end, if it still asks."""
        self._tools.end_told.wait(END_WAIT_S)

    def close(self) -> None:
        """End, after the answers that are under way."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(END_WAIT_S)
        self._socket.close()


Transport: TypeAlias = StdioTransport | HttpTransport
"""How the server is reached: `start` begins to serve, `finish` waits until the agent knows of the end."""


class _ImpatientProtocol(H11Protocol):
    """Ends connections on which no request comes; uvicorn waits for the first one for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(REQUEST_TIMEOUT_S, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if self.cycle is None:  # no request was read
            self.transport.close()


class _TokenCheck:
    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not secrets.compare_digest(given, self._expected):
                text = (
                    "the header `Authorization: Bearer TOKEN` is missing or wrong; `proctor mcp` knows it\n"
                )
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await PlainTextResponse(text, 401, headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:  # getaddrinfo would take it modulo 65536
        raise UserError(f"--port: expected a number from 0 to 65535, found {port}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}; "
            "try another --port, or 0 for any that is free"
        ) from None
