import contextlib
import json
import re
import shutil
import ssl
import subprocess
import threading

import msgpack
import numpy as np
import pytest
from policy_servers import CONFIG_PAGE, briefing, listening, openpi, page, serving, soon, vla_eval
from websockets.exceptions import ConnectionClosed
from websockets.utils import accept_key

from proctor.agents import handshake
from proctor.agents.handshake import Address, load_dialects, open_session
from proctor.core.errors import AgentFault

VLN = {"rgb": np.zeros((48, 64, 3), np.uint8)}
HELLO = {"type": "hello", "protocol": "proctor", "version": 1}


def never(_):
    raise AssertionError("was asked")


def forward(_):
    return {"actions": np.array([1.0], np.float32)}


def says(frame):
    """Return a handler that sends one frame and then only listens."""

    async def handle(websocket):
        await websocket.send(frame)
        async for _ in websocket:
            pass

    return handle


async def silent(websocket):
    async for _ in websocket:
        pass


def spec_agent(heard=None):
    """Return the handler of an agent that knows the specification only: JSON text, no first word."""

    async def handle(websocket):
        async for frame in websocket:
            if heard is not None:
                heard.append(frame)
            message = json.loads(frame) if isinstance(frame, str) else None  # dies of binary, as many would
            if message["type"] == "get_action":
                reply = {"type": "action", "session_id": message["session_id"], "action": 2}
                await websocket.send(json.dumps(reply))

    return handle


def asked(url, **options):
    """Meet who is there, ask for one action, and return (dialect's name, action)."""
    options = {"listen_s": 0.2, **options}
    connection, dialect, _ = open_session(Address(url=url), soon(), **options)
    try:
        dialect.begin(briefing(), soon())
        return dialect.name, dialect.ask(VLN, soon())
    finally:
        connection.close()


def refused(url, deadline_s=5.0, **options):
    options = {"listen_s": 0.2, **options}
    if "dialect" in options:
        options["dialects"] = load_dialects(options.pop("dialect"))
    with pytest.raises(AgentFault) as caught:
        open_session(Address(url=url), soon(deadline_s), **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return caught.value


@pytest.mark.parametrize("metadata", [{}, {"reset_pose": np.zeros(3), "name": "pi0"}])
def test_openpi_is_known_by_its_metadata(metadata):
    with serving(openpi(forward, metadata)) as url:
        assert asked(url) == ("openpi", 1)


def test_vla_eval_is_known_by_its_config_page():
    with serving(vla_eval(forward), process_request=CONFIG_PAGE) as url:
        assert asked(url) == ("vla-eval", 1)
        assert asked(url, listen_s=0) == ("vla-eval", 1)


def test_an_agent_of_the_specification_gets_json_and_nothing_else():
    heard = []
    with serving(spec_agent(heard)) as url:
        assert asked(url) == ("proctor.v1.json", 2)
    assert [json.loads(frame)["type"] for frame in heard] == ["reset_episode", "get_action"]


def test_an_agent_whose_server_takes_the_first_subprotocol_offered_speaks_json():
    pages = []

    def note(_, request):
        pages.append(request.path)

    options = {"select_subprotocol": lambda _, offered: offered[0], "process_request": note}
    with serving(spec_agent(), **options) as url:
        assert asked(url) == ("proctor.v1.json", 2)
    assert pages == ["/"], "who chose a subprotocol needs no further test"


@pytest.mark.parametrize(
    "process",
    [
        page('{"status": "ok"}', "/health"),
        page('{"status": "ok"}'),
        page('{"config": {}}'),
        page("[1]"),
        page('{"applied": {}, "config": {}}', status=500),
        page("[" * 100_000),
        page("x" * 1_000_000),
    ],
)
def test_an_agent_with_pages_of_its_own_is_not_taken_for_vla_eval(process):
    with serving(spec_agent(), process_request=process) as url:
        assert asked(url) == ("proctor.v1.json", 2)


@pytest.mark.parametrize(("subprotocols", "pack"), [
    (None, json.dumps), (["proctor.v1.json"], json.dumps), (["proctor.v1.msgpack"], msgpack.packb),
])  # fmt: skip
def test_proctors_own_hello(subprotocols, pack):
    with serving(says(pack(HELLO)), subprotocols=subprotocols) as url:
        connection, dialect, _ = open_session(Address(url=url), soon())
        assert dialect.name == (subprotocols or ["proctor.v1.json"])[0]
        connection.close()


def test_an_agent_that_chose_msgpack_may_be_silent():
    async def handle(websocket):
        async for frame in websocket:
            if msgpack.unpackb(frame)["type"] == "get_action":
                await websocket.send(msgpack.packb({"type": "action", "action": 3}))

    with serving(handle, subprotocols=["proctor.v1.msgpack"]) as url:
        assert asked(url) == ("proctor.v1.msgpack", 3)


DEEP = b"\x81\xa1a" + b"\x91" * 100_000 + b"\xc0"


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (msgpack.packb({"type": "server_hello", "protocol_version": "2.0"}), "version 2.0.*Proctor 1.1"),
        (msgpack.packb({"type": "server_hello", "capabilities": [1]}), "the server's handshake: expected"),
        (msgpack.packb({"status": "loading", "message": "…"}), "Positronic"),
        (json.dumps({"status": "ready"}), "Positronic"),
        (msgpack.packb({"needs_session_id": 7, "action_space": "joint_position"}), "needs_session_id"),
        (json.dumps({"needs_session_id": True}), "the protocol of roboarena"),
        (msgpack.packb(HELLO), "binary.*subprotocol proctor.v1.msgpack"),
        (json.dumps({"type": "hello"}), "hello cannot be read.*protocol"),
        (json.dumps({**HELLO, "version": 9}), "version 9.*update Proctor here"),
        (json.dumps({"type": "action", "action": 1}), "did not say hello"),
        ("Traceback (most recent call last):\n  File x\nValueError: no GPU\n", "failed before.*: no GPU"),
        ("welcome\x1b[2J to\nmy server", r"the text 'welcome\\u001b\[2J to my server'"),
        ("", "the text ''"),
        ("[" * 100_000, "the text"),
        (b"", "0 bytes"),
        (b"\x00\xff\x00", r"3 bytes \(00 ff 00"),
        (msgpack.packb([1, 2]), "not a msgpack map"),
        (msgpack.packb({1: 2}), "not a msgpack map"),
        (DEEP, "not a msgpack map"),
        (b"\x81\xa1a\xdf\xff\xff\xff\xff", "not a msgpack map"),
        (msgpack.packb({"a": b"0" * 300_000}), "first frame of less than 262144 bytes, found 3000"),
        (b"0" * (5 << 20), "first frame is a frame of more than"),
    ],
)  # fmt: skip
def test_a_first_word_that_is_none_of_ours_is_diagnosed_in_one_line(frame, words):
    with serving(says(frame)) as url:
        fault = refused(url)
    assert fault.kind == "protocol_mismatch"
    assert re.search(words, str(fault)), str(fault)


def test_the_connection_to_whom_we_do_not_understand_is_cut():
    gone = threading.Event()

    async def handle(websocket):
        await websocket.send("welcome")
        try:
            await websocket.recv()
        except ConnectionClosed:
            gone.set()

    with serving(handle) as url:
        refused(url)
        assert gone.wait(5)


def test_a_first_word_that_has_begun_to_come_is_waited_for():
    """Metadata on a slow line is no silence."""
    release = threading.Event()

    def talk(line):
        key = line.recv(4096).decode().split("Sec-WebSocket-Key: ")[1].split("\r\n")[0]
        line.sendall(_handshake(key))
        threading.Timer(0.1, lambda: line.sendall(b"\x82")).start()  # the first byte of a binary frame
        threading.Timer(1.0, lambda: (line.sendall(b"\x01\x80"), release.set())).start()

    with listening(talk) as url:
        connection, dialect, _ = open_session(Address(url=url), soon(), listen_s=0.6)
        assert dialect.name == "openpi"
        assert release.wait(5)
        connection.drop()


def test_a_first_word_without_an_end_is_no_late_action():
    def talk(line):
        key = line.recv(4096).decode().split("Sec-WebSocket-Key: ")[1].split("\r\n")[0]
        line.sendall(_handshake(key))
        threading.Timer(0.05, lambda: line.sendall(b"\x82")).start()

    with listening(talk) as url:
        fault = refused(url, 0.5)
    assert fault.kind == "protocol_mismatch"
    assert "did not say in time what it speaks" in str(fault)


def test_a_page_that_drips_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(handshake, "PAGE_S", 0.3)
    stop = threading.Event()

    def drip(line):
        while not stop.wait(0.02):
            line.sendall(b"H")

    def talk(line):
        request = line.recv(4096).decode()
        if "Sec-WebSocket-Key: " in request:
            line.sendall(_handshake(request.split("Sec-WebSocket-Key: ")[1].split("\r\n")[0]))
        else:
            threading.Thread(target=lambda: _quiet(drip, line)).start()

    with listening(talk) as url:
        connection, dialect, _ = open_session(Address(url=url), soon(), listen_s=0.1)
        assert dialect.name == "proctor.v1.json"
        connection.drop()
        stop.set()


def _quiet(function, *arguments):
    with contextlib.suppress(OSError):
        function(*arguments)


def _handshake(key):
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    return f"{head}Sec-WebSocket-Accept: {accept_key(key)}\r\n\r\n".encode()


def test_no_websocket_server():
    with listening(lambda line: None) as url:  # as O3DE's agents, which wait for a frame of their own
        fault = refused(url, 0.3)
        assert fault.kind == "agent_unreachable"
        assert "O3DE" in str(fault)
    with serving(spec_agent(), process_request=lambda c, _: c.respond(404, "no\n")) as url:
        fault = refused(url)
        assert fault.kind == "protocol_mismatch"
        assert "HTTP server" in str(fault)


def test_a_dialect_that_is_named_is_not_tested_for():
    requests = []

    def note(_, request):
        requests.append((request.headers.get("Authorization"), request.headers.get("Sec-WebSocket-Protocol")))

    def token_of(handler, dialect):
        with serving(handler, process_request=note) as url:
            address = Address(url=url, token="secret")
            connection, found, _ = open_session(
                address, soon(), dialects=load_dialects(dialect), listen_s=0.2
            )
            connection.close()
        return found.name, requests.pop(), requests

    assert token_of(openpi(never), "openpi") == ("openpi", ("Api-Key secret", None), [])
    assert token_of(vla_eval(never), "vla-eval") == ("vla-eval", ("Bearer secret", None), [])
    both = "proctor.v1.json, proctor.v1.msgpack"
    assert token_of(spec_agent(), "proctor") == ("proctor.v1.json", ("Bearer secret", both), [])


@pytest.mark.parametrize(
    ("handler", "dialect", "words"),
    [
        (spec_agent(), "openpi", "servers of openpi speak first"),
        (says(json.dumps(HELLO)), "openpi", "does not speak openpi: .*text.*hello"),
        (openpi(never), "proctor", "is a msgpack map .*auto"),
        (openpi(never, {"a": 1}), "vla-eval", "not answer as a vla-eval server does"),
        (says(json.dumps(HELLO)), "vla-eval", "not answer as a vla-eval server does.*text"),
        (silent, "vla-eval", "did not say in time what it speaks: no reply"),
        (vla_eval(never, hello_type="error"), "vla-eval", "hello with hello, found 'error'"),
        (vla_eval(never, version=2), "vla-eval", "version 2 .*Proctor version 1"),
        (vla_eval(never, version="x" * 999), "vla-eval", "version xxx"),
        (vla_eval(never, version=[1]), "vla-eval", "version None"),
    ],
)
def test_a_dialect_that_is_named_wrongly(handler, dialect, words):
    with serving(handler) as url:
        fault = refused(url, 0.7, dialect=dialect)
    assert fault.kind == "protocol_mismatch"
    assert re.search(words, str(fault)), str(fault)


def test_tls_reaches_the_config_page_too(tmp_path):
    certificate = _certificate(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    with serving(vla_eval(forward), process_request=CONFIG_PAGE, ssl=server) as url:
        client = ssl.create_default_context(cafile=certificate)
        client.check_hostname = False
        address = Address(url=url.replace("ws:", "wss:"), tls=client)
        connection, dialect, _ = open_session(address, soon(), listen_s=0.2)
        assert dialect.name == "vla-eval"
        connection.close()
        assert "certificate" in str(refused(url.replace("ws:", "wss:")))


def _certificate(folder):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make a certificate")
    path = folder / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    path.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return path
