"""Error messages that read the tape. ``messages/diagnosis.py`` imports this package at the first call of one of them."""

# ruff: noqa: F403

from chainrule._src.explaining.diagnosis.anomalies import *
from chainrule._src.explaining.diagnosis.backward import *
