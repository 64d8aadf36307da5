"""The O3DE simulator by the name that scripts beside the engine use."""

from o3de_sim.proctors_python import require_proctors_python

require_proctors_python()

from vln_evaluator.o3de_simulator import *  # noqa: E402, F403
from vln_evaluator.o3de_simulator import __all__ as __all__  # noqa: E402, PLC0414
