"""Conformance kits: try out whether an env, a policy or an exam keeps its contract.

The commands are `proctor check-env`, `check-policy` and `check-exam`.
"""

from proctor.runs.conformance.checks import Check
from proctor.runs.conformance.env import check_env
from proctor.runs.conformance.exam import check_exam
from proctor.runs.conformance.policy import check_policy

__all__ = ["Check", "check_env", "check_exam", "check_policy"]
