"""Messages that read the tape. ``errors`` knows them by their names (see ``errors.LATER``)."""

# ruff: noqa: F403

from chainrule._src.explaining.diagnosis.anomalies import *
from chainrule._src.explaining.diagnosis.backward import *
