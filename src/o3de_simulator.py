"""The O3DE simulator by the name that scripts beside the engine use."""

from vln_evaluator.o3de_simulator import *  # noqa: F403
from vln_evaluator.o3de_simulator import __all__ as __all__  # noqa: PLC0414
