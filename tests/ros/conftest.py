"""What holds for all tests over ROS 2: they stay on this machine, and each has a domain of its own."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

DOMAINS = range(1, 102)
"""Those whose ports lie below the range that the system hands out."""

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"


@pytest.fixture(scope="module", autouse=True)
def ros_domain():
    """A domain that no other test on this machine uses now, in ROS_DOMAIN_ID."""
    folder = Path(tempfile.gettempdir()) / "proctor-ros-domains"
    folder.mkdir(exist_ok=True)
    start = os.getpid() % len(DOMAINS)
    for domain in [*DOMAINS[start:], *DOMAINS[:start]]:
        with (folder / str(domain)).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            before = os.environ.get("ROS_DOMAIN_ID")
            os.environ["ROS_DOMAIN_ID"] = str(domain)
            yield domain
            if before is None:
                del os.environ["ROS_DOMAIN_ID"]
            else:
                os.environ["ROS_DOMAIN_ID"] = before
            return
    raise RuntimeError("all ROS domains are taken")
