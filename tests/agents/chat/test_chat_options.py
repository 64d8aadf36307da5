"""Options, templates, prices and keys of chat policies: what is wrong is said before a run begins."""

import json
from pathlib import Path

import pytest
from chat_episodes import info, view
from strict_servers import KEY, StrictChat, acts

from proctor.agents.chat.policy import ChatOptions, ChatPolicy
from proctor.agents.chat.prompt import NAMES, encode_picture, load_template
from proctor.agents.chat.task import ChatTask
from proctor.core.addresses import address_label, replicas, short_address
from proctor.core.errors import UserError
from proctor.core.registry import build, load
from proctor.exams.driving_chat import DrivingChat
from proctor.exams.pick_place.chat import PickPlaceChat
from proctor.exams.vln.chat import VlnChat

HERE = "chat+http://127.0.0.1:1/v1"
PAGE = Path(__file__).parents[3] / "docs" / "chat-models.md"


# Addresses


def test_addresses_of_chat_models():
    assert replicas("chat+http://a:1/v1/,chat+https://b/v1") == ["chat+http://a:1/v1", "chat+https://b/v1"]
    assert address_label("chat+http://127.0.0.1:8000/v1") == "127.0.0.1-8000-v1"
    assert short_address("chat+anthropic+https://api.anthropic.com/v1") == "api.anthropic.com/v1"
    assert load("policy", HERE) is ChatPolicy


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("chat+http://user:secret@host/v1", "must not hold a user, a password or a query"),
        ("chat+http://host/v1?key=secret", "PROCTOR_CHAT_KEY"),
        ("chat+ftp://host/v1", "expected an address such as"),
        ("chat+gemini+http://host/v1", "expected an address such as"),
        ("http://host/v1", "or of a chat model: chat"),
        ("chat+http://a/v1,ws://b", "addresses of one agent, found chat"),
        ("chat+http://a/v1,chat+responses+http://a/v1", "addresses of one agent"),
    ],
)
def test_bad_addresses(address, problem):
    with pytest.raises(UserError, match=problem) as caught:
        build("policy", address, {"model": "m"})
    assert "secret" not in str(caught.value)


def test_an_address_that_says_too_much():
    with pytest.raises(UserError, match="leave out /chat/completions"):
        ChatPolicy(f"{HERE}/chat/completions", model="m")


# Options


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "model: expected the model's name"),
        ({"model": 4}, "model: Expected `str`"),
        ({"model": "m", "pictures": -1}, "pictures: Expected `int` >= 0, found -1"),
        ({"model": "m", "picture_quality": 100}, "picture_quality: "),
        ({"model": "m", "temperature": "hot"}, "temperature: "),
        ({"model": "m", "detail": "very"}, "detail: "),
        ({"model": "m", "repairs": 9}, "repairs: "),
        ({"model": "m", "timeout_s": 0}, "timeout_s: "),
        ({"model": "m", "timeout_s": 500}, "a decision could take 1240 s; expected at most 840"),
        ({"model": "m", "timeout_s": 200, "retry_for_s": 200, "repairs": 2}, "a decision could take 1200 s"),
        ({"model": "m", "key_env": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE is not set"),
        ({"model": "m", "template": "/nowhere.md"}, "/nowhere.md: no such file"),
        ({"model": "m", "temprature": 1}, "did you mean 'temperature'"),
    ],
)
def test_bad_options(options, problem):
    with pytest.raises(UserError, match=problem):
        build("policy", HERE, options)


# Keys


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("chat+https://api.openai.com/v1", "openai"),
        ("chat+responses+https://api.openai.com/v1", "openai"),
        ("chat+anthropic+https://api.anthropic.com/v1", "anthropic"),
        ("chat+https://api.openai.com.evil.example/v1", None),
        ("chat+https://openrouter.ai/api/v1", None),
        ("chat+anthropic+http://127.0.0.1:8000/v1", None),
        ("chat+https://api.anthropic.com/v1", None),  # not the vendor of this wire
    ],
)
def test_a_vendors_key_goes_to_the_vendor_alone(address, sent, monkeypatch):
    monkeypatch.delenv("PROCTOR_CHAT_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "anthropic")
    policy = ChatPolicy(address, model="m")
    assert policy._api._endpoints[0].key == sent
    policy.close()


def test_a_key_that_is_named(monkeypatch):
    monkeypatch.setenv("PROCTOR_CHAT_KEY", "general")
    monkeypatch.setenv("ROUTER_KEY", f" {KEY}\n")
    with StrictChat(acts("LEFT")) as server:
        policy = ChatPolicy(server.address, model="gpt-x", key_env="ROUTER_KEY")
        policy.reset(info())
        assert policy.act(view()) == 2
        policy.close()


def test_a_key_that_cannot_be_in_a_header(monkeypatch):
    monkeypatch.setenv("PROCTOR_CHAT_KEY", "ключ")
    with pytest.raises(UserError, match="PROCTOR_CHAT_KEY: expected letters") as caught:
        ChatPolicy(HERE, model="m")
    assert "ключ" not in str(caught.value)


# Templates


@pytest.mark.parametrize("task", [ChatTask, DrivingChat, VlnChat, PickPlaceChat])
def test_templates_of_exams(task):
    template = load_template(task.template)
    assert template.shows_pictures
    assert template.system
    told = "\n".join(template.user)
    assert all(f"{{{name}}}" in told for name in ("instruction", "history", "step", "state", "details"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a part '## user'.*found none; known names: instruction"),
        ("## system\nHello\n", "expected a part '## user'"),
        ("## user\n\n", "expected a part '## user'"),
        ("Hello\n## user\nx", "line 1: expected '## system' or '## user'"),
        (
            "## user\nGo.\n{instrction}",
            "line 3: unknown name '{instrction}'; did you mean 'instruction'.*known names",
        ),
        ("## user\n{}", "line 2: no name between the braces.*known names"),
        ('## user\n{"a": 1}', "line 2: unknown name .*double it"),
        ("## user\na { b", "line 2: a single '{'"),
        ("## user\n{instruction.__class__}", "line 2: unknown name"),
        ("## user\nLook: {pictures}", "line 2: expected {pictures} on a line of its own"),
        ("## system\n{pictures}\n## user\nx", "line 2: expected {pictures} on a line of its own"),
        ("## user\nx\n## user\ny", "line 3: the part 'user' stands twice"),
        ("## assistant\nx", "line 1: the part 'assistant' is not system or user"),
        ("## user\nGo.", "has no line {pictures}, so the model would see nothing"),
        ("## user\n" + "x" * 200_000, "at most 100000 characters"),
    ],
)
def test_bad_templates_are_named_with_their_line(text, problem, tmp_path):
    file = tmp_path / "mine.md"
    file.write_text(text)
    with pytest.raises(UserError, match=problem.replace("{", r"\{").replace("}", r"\}")) as caught:
        ChatPolicy(HERE, model="m", template=str(file))
    assert str(file) in str(caught.value)


def test_a_template_of_ones_own(tmp_path, monkeypatch):
    file = tmp_path / "mine.md"
    file.write_text('## user\nDo: {instruction}\n{details}\n\nJSON {{"a": 1}}\n{pictures}\nGo on.\n')
    monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)
    with StrictChat(acts("LEFT")) as server:
        policy = ChatPolicy(server.address, model="gpt-x", template=str(file))
        policy.reset(info())
        policy.act(view())
        policy.close()
        (message,) = server.seen[0]["messages"]
    texts = [part.get("text") for part in message["content"]]
    assert texts == ['Do: Go to the sofa.\n\nJSON {"a": 1}\nWhat you see now:', None, "Go on."]


def test_braces_in_what_is_told_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)
    with StrictChat(acts("LEFT", note="I see {instruction}")) as server:
        policy = ChatPolicy(server.address, model="gpt-x")
        policy.reset(info(instruction="Go to {history}."))
        policy.act(view())
        policy.close()
        assert "Instruction: Go to {history}." in json.dumps(server.seen[0])


def test_the_docs_name_all_placeholders_and_options():
    page = PAGE.read_text()
    assert [name for name in NAMES if f"`{{{name}}}`" not in page] == []
    assert [name for name in ChatOptions.__struct_fields__ if f"`{name}`" not in page] == []


# Pictures


def test_pictures_are_made_smaller_and_never_larger():
    pixels = view()["rgb"]
    same, small = encode_picture(pixels, 640, 85), encode_picture(pixels, 32, 85)
    assert size_of(same) == (64, 48)
    assert size_of(small) == (32, 24)
    assert encode_picture(pixels, 640, 85) == same
    assert len(encode_picture(pixels, 640, 30).base64) < len(same.base64)


def size_of(picture):
    import base64  # noqa: PLC0415
    import io  # noqa: PLC0415

    from PIL import Image  # noqa: PLC0415

    return Image.open(io.BytesIO(base64.b64decode(picture.base64))).size


# Prices


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{"gpt-x": {"input": 1, "output": 2}}',
            "no price for the model 'gpt-y'; did you mean 'gpt-x'.*models in it: gpt-x",
        ),
        ("{}", "no price for the model 'gpt-y'; models in it: none"),
        ('{"gpt-y": {"input": 1}}', "output"),
        ('{"gpt-y": {"input": -1, "output": 2}}', "input"),
        ('{"gpt-y": {"input": 1, "output": 2, "ouput": 3}}', "unknown key 'ouput'"),
        ('{"gpt-y": {"input": NaN, "output": 2}}', "line|NaN|finite"),
        ("[]", "expected"),
        ("nonsense", "JSON|line"),
    ],
)
def test_bad_prices(text, problem, tmp_path):
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(UserError, match=problem) as caught:
        ChatPolicy(HERE, model="gpt-y", prices=str(file))
    assert str(file) in str(caught.value)
