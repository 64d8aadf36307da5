"""What holds for all tests."""

import signal

# A job in the background of a script ignores SIGINT, and so would all commands that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
