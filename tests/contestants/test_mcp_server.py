"""The MCP server over HTTP, with the real client package in both eras of the protocol."""

import asyncio
import base64
import io
import json
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from anyio.to_thread import run_sync
from mcp_exams import (
    LEGACY,
    LONG_S,
    NEW,
    TOKEN,
    VERSIONS,
    GatedEnv,
    connected,
    exam,
    report_of,
    served,
    take_episodes,
)
from PIL import Image

from proctor.contestants import mcp_server
from proctor.contestants.mcp_server import HttpTransport
from proctor.core.errors import UserError

ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "authorization": f"Bearer {TOKEN}",
}


@pytest.mark.parametrize("mode", [LEGACY, NEW])
def test_a_client_takes_an_exam_by_pictures_and_text(tmp_path, mode):
    async def take(url):
        async with connected(url, mode) as client:
            assert client.protocol_version == VERSIONS[mode]
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            return tools, await take_episodes(client, ["FORWARD", "LEFT"], ["STOP"])

    with exam(tmp_path) as tools, served(tools) as url:
        listed, results = asyncio.run(take(url))
        tools.finish()
    assert list(listed) == ["begin_episode", "observe", "act", "stop"]
    properties = listed["act"].input_schema["properties"]
    assert properties["actions"]["items"]["enum"] == ["STOP", "FORWARD", "LEFT", "RIGHT"]
    assert listed["act"].input_schema["required"] == ["episode", "expect_step", "actions"]
    assert [[part.type for part in result.content] for result in results] == [
        *[["text", "image"], ["text", "image"], ["text"]] * 2,
        ["text"],
    ]
    picture = results[1].content[1]
    assert picture.mime_type == "image/jpeg"
    assert Image.open(io.BytesIO(base64.b64decode(picture.data))).format == "JPEG"
    assert all(result.structured_content is None for result in results)
    assert results[-1].content[0].text == "the exam is over: all 2 episodes are done"
    assert [e.actions for e in tools.report.results.episodes] == [[1, 2, 0]] * 2


def test_structured_content_stands_beside_the_text_where_it_is_asked_for(tmp_path):
    async def begin(url):
        async with connected(url) as client:
            return await client.call_tool("begin_episode", {})

    with exam(tmp_path) as tools, served(tools, is_structured=True) as url:
        result = asyncio.run(begin(url))
    assert result.structured_content == json.loads(result.content[0].text)


@pytest.mark.parametrize("mode", [LEGACY, NEW])
def test_two_clients_do_not_get_in_each_others_way(tmp_path, mode):
    async def both(url):
        async with connected(url, mode) as one, connected(url, mode) as other:
            handle = (await report_of(one, "begin_episode"))["episode"]
            await report_of(one, "act", episode=handle, actions=["FORWARD"], expect_step=0)
            begun = await other.call_tool("begin_episode", {})
            arguments = {"episode": "0" * 16, "actions": ["LEFT"], "expect_step": 1}
            acted = await other.call_tool("act", arguments)
            seen = await report_of(one, "observe", episode=handle)
            return begun, acted, seen["step"]

    with exam(tmp_path) as tools, served(tools) as url:
        begun, acted, step = asyncio.run(both(url))
    assert begun.is_error
    assert "an episode is under way, at step 1" in begun.content[0].text
    assert acted.is_error
    assert "not the handle" in acted.content[0].text
    assert step == 1


@pytest.mark.parametrize("mode", [LEGACY, NEW])
def test_a_call_is_done_to_its_end_although_the_client_gave_up(tmp_path, mode):
    """And sent again it is refused: nothing is done twice."""

    async def impatient(url):
        async with connected(url, mode) as client:
            handle = (await report_of(client, "begin_episode"))["episode"]
            arguments = {"episode": handle, "actions": ["FORWARD", "LEFT"], "expect_step": 0}
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "act", arguments)
                await run_sync(GatedEnv.is_asked.wait, LONG_S)
                group.cancel_scope.cancel()
            GatedEnv.gate.set()
            again = await client.call_tool("act", arguments)
            return again, await report_of(client, "observe", episode=handle)

    GatedEnv.gate.clear()
    GatedEnv.is_asked.clear()
    with exam(tmp_path, env="mcp_exams:GatedEnv") as tools, served(tools) as url:
        again, seen = asyncio.run(impatient(url))
    assert again.is_error
    assert "the episode is at step 2" in again.content[0].text
    assert seen["step"] == 2


def test_only_clients_with_the_token_and_a_known_host_are_served(tmp_path):
    cases = {
        "no token": ({"authorization": ""}, 401),
        "wrong token": ({"authorization": "Bearer guess"}, 401),
        "not a bearer": ({"authorization": TOKEN}, 401),
        "letters that are none": ({"authorization": b"Bearer \xff\xfe"}, 401),
        "evil host": ({"host": "evil.example:80"}, 421),
        "evil origin": ({"origin": "http://evil.example"}, 403),
        "local origin": ({"origin": "http://localhost:3000"}, 403),
        "allowed origin": ({"origin": "http://page.example"}, 200),
        "loopback by name": ({"host": "localhost:9"}, 200),
        "text": ({"content-type": "text/plain"}, 400),
    }
    with exam(tmp_path) as tools, served(tools, allow_origins=["http://page.example"]) as url:
        found = {
            name: httpx.post(url, json=ASK, headers={**HEADERS, **headers}).status_code
            for name, (headers, _) in cases.items()
        }
        big = httpx.post(url, content=b"x" * (mcp_server.MAX_BODY_BYTES + 1), headers=HEADERS)
        elsewhere = httpx.get(url.removesuffix("/mcp"), headers=HEADERS)
        challenge = httpx.post(url, json=ASK).headers["www-authenticate"]
    assert found == {name: status for name, (_, status) in cases.items()}
    assert (big.status_code, elsewhere.status_code, challenge) == (413, 404, "Bearer")


def test_hosts_are_checked_also_where_all_addresses_are_listened_at(tmp_path):
    with exam(tmp_path) as tools, served(tools, "0.0.0.0", allow_hosts=["exam.example"]) as url:
        statuses = [
            httpx.post(url, json=ASK, headers={**HEADERS, "host": host}).status_code
            for host in ("exam.example:8077", "exam.example", "127.0.0.1:1", "0.0.0.0:1", "evil.example:8077")
        ]
    assert statuses == [200, 200, 200, 421, 421]


def test_a_port_that_is_taken_is_told(tmp_path):
    with exam(tmp_path) as tools, served(tools) as url:
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(UserError, match=rf"cannot listen at 127.0.0.1:{port}: Address already in use"):
            HttpTransport(None, tools, token=TOKEN, address=("127.0.0.1", port))
        with pytest.raises(UserError, match=r"cannot listen at no\.such\.host\.invalid"):
            HttpTransport(None, tools, token=TOKEN, address=("no.such.host.invalid", port))


def test_connections_without_a_request_do_not_keep_the_agent_out(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_server, "REQUEST_TIMEOUT_S", 0.5)
    with exam(tmp_path) as tools, served(tools) as url, ExitStack() as stack:
        place = urlsplit(url)
        idle = [
            stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=LONG_S))
            for _ in range(mcp_server.MAX_CONNECTIONS + 6)
        ]
        idle[0].sendall(b"POST /mcp HTTP/1.1\r\nHost: ")  # a request without an end
        assert [each.recv(1) for each in idle] == [b""] * len(idle)
        assert httpx.post(url, json=ASK, headers=HEADERS, timeout=LONG_S).status_code == 200
