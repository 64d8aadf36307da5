"""What holds for all tests."""

import signal

from hypothesis import settings

# A job in the background of a script ignores SIGINT, and so would all commands that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# On a busy machine anything takes long for once.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
