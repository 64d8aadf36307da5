"""Which options are secret, and that their values are shown nowhere."""

import json

import pytest

from proctor.core.options import hide_secret_words, hide_secrets, secret_options

SECRET = "sk-12345"


@pytest.mark.parametrize("name", ["hf_token", "api_key", "OPENAI_API_KEY", "openai-key", "auth", "map_key"])
def test_secret_names_have_a_checksum_for_a_value_at_any_depth(name):
    for options in ({name: SECRET}, {"auth": {name: SECRET}}, {"servers": [{name: SECRET}]}):
        assert secret_options(options) == list(options)
        hidden = hide_secrets(options)
        assert SECRET not in str(hidden)
        other = json.loads(json.dumps(options).replace(SECRET, "sk-other"))
        assert hidden != hide_secrets(other)


@pytest.mark.parametrize("name", ["max_tokens", "key_env", "monkey", "tokenizer", "keyboard"])
def test_names_that_only_look_like_those_of_secrets_stay(name):
    options = {name: SECRET, "pair": (1, 2)}
    assert secret_options(options) == []
    assert hide_secrets(options) == options
    assert hide_secret_words([f"{name}={SECRET}"]) == [f"{name}={SECRET}"]


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (f"hf_token={SECRET}", "hf_token=..."),
        (f"--policy-option=api_key={SECRET}", "--policy-option=api_key=..."),
        (f"token=\n{SECRET}", "token=\n..."),
        (f'login={{"token": "{SECRET}"}}', 'login={"token": "...'),
        (f'headers={{"Authorization": "Bearer {SECRET}"}}', 'headers={"Authorization": "...'),
        (f'setup=["export OPENAI_API_KEY={SECRET}"]', 'setup=["export OPENAI_API_KEY=...'),
        (f"ws://host:8080/?token={SECRET}", "ws://host:8080/?token=..."),
        ("--workers", "--workers"),
    ],
)
def test_a_command_that_is_shown_is_cut_off_before_a_secret(word, shown):
    assert hide_secret_words([word]) == [shown]
