"""The fixtures of runtimes.py, for every test here."""
from runtimes import box, boxes, program, shared  # noqa: F401
