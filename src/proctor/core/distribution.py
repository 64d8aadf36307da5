"""The name under which pip knows Proctor. On PyPI, `proctor` is another project."""

DISTRIBUTION = "proctor-eval"
UPDATE_COMMAND = f"pip install -U {DISTRIBUTION}"


def install_command(extra: str) -> str:
    """Return the command that installs Proctor with one of its extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
