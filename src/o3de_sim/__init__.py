"""Building and controlling worlds in the Open 3D Engine, from inside its Editor or from another process.

Only the standard library, and Python 3.10: the Editor brings a Python of its own.
"""
