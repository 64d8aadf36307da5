"""The strict servers are right: the real client packages get along with them, bad requests do not pass."""

import anthropic
import openai
import pytest
from strict_servers import KEY, PROFILES, Said, StrictChat, StrictMessages, StrictResponses, acts

TOOL = {"type": "object", "properties": {"actions": {"type": "array", "items": {"type": "string"}}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "act", "description": "d", "parameters": TOOL}}]


def see(text="What now?", url=None):
    parts = [{"type": "text", "text": text}]
    if url:
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": "user", "content": parts}


@pytest.mark.parametrize("profile", PROFILES)
def test_openai_reads_chat_completions(profile):
    with StrictChat(acts("FORWARD"), Said("ok"), profile=profile) as server:
        client = openai.OpenAI(base_url=server.base, api_key=KEY, max_retries=0)
        first = client.chat.completions.create(
            model=server.model, messages=[see()], tools=CHAT_TOOLS, max_tokens=9
        )
        assert first.choices[0].message.tool_calls[0].function.name == "act"
        assert (
            client.chat.completions.create(model="gpt-x", messages=[see()]).choices[0].message.content == "ok"
        )
        assert [model.id for model in client.models.list()] == ["gpt-x"]
        client.close()


@pytest.mark.parametrize(
    "bad",
    [
        {"messages": [{"role": "user", "content": [{"type": "imag"}]}]},
        {"messages": [{"role": "users", "content": "x"}]},
        {"messages": [see(url="data:image/jpeg;base64,AAAA")]},
        {"messages": [see()], "tools": [{"type": "function"}]},
        {"messages": [see()], "tools": []},
        {"messages": [see()], "tool_choice": "required"},
        {"messages": [see()], "extra_body": {"top_k": 5}},
        {"messages": [see()], "model": "gone"},
    ],
    ids=str,
)
def test_bad_requests_do_not_pass(bad):
    with StrictChat(Said("ok")) as server:
        client = openai.OpenAI(base_url=server.base, api_key=KEY, max_retries=0)
        with pytest.raises((openai.BadRequestError, openai.NotFoundError)):
            client.chat.completions.create(**{"model": server.model, **bad})
        client.close()
        assert not server.seen


def test_wrong_keys_do_not_pass():
    with StrictChat(Said("ok"), profile="vllm") as server, StrictMessages(Said("ok")) as other:
        client = openai.OpenAI(base_url=server.base, api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model=server.model, messages=[see()])
        client.close()
        client = anthropic.Anthropic(base_url=other.base.removesuffix("/v1"), api_key="wrong", max_retries=0)
        with pytest.raises(anthropic.AuthenticationError):
            client.messages.create(model="gpt-x", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        client.close()


def test_openai_reads_responses():
    with StrictResponses(acts("LEFT"), Said(refusal="no")) as server:
        client = openai.OpenAI(base_url=server.base, api_key=KEY, max_retries=0)
        tools = [{"type": "function", "name": "act", "parameters": TOOL, "strict": False}]
        given = {"model": server.model, "input": [{"role": "user", "content": "x"}], "store": False}
        call = client.responses.create(**given, tools=tools).output[-1]
        assert (call.type, call.name) == ("function_call", "act")
        assert client.responses.create(**given).output[-1].content[0].refusal == "no"
        with pytest.raises(openai.BadRequestError):
            client.responses.create(**given, tools=[{"type": "function", "function": {"name": "act"}}])
        client.close()


def test_anthropic_reads_messages():
    with StrictMessages(acts("LEFT"), Said("hello")) as server:
        client = anthropic.Anthropic(base_url=server.base.removesuffix("/v1"), api_key=KEY, max_retries=0)
        tools = [{"name": "act", "input_schema": TOOL}]
        given = {"model": server.model, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        assert client.messages.create(**given, tools=tools).content[-1].input["actions"] == ["LEFT"]
        assert client.messages.create(**given).content[0].text == "hello"
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**given, extra_body={"temperature": 0})
        client.close()
