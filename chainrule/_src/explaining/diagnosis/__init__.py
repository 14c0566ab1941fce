"""Error messages that read the tape. ``errors`` looks them up here by name (see ``errors.LATER``)."""

# ruff: noqa: F403

from chainrule._src.explaining.diagnosis.anomalies import *
from chainrule._src.explaining.diagnosis.backward import *
