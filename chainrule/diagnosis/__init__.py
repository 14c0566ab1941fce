"""Messages that read the tape. ``errors`` knows them by their names (see ``errors.LATER``)."""

# ruff: noqa: F403

from chainrule.diagnosis.anomalies import *
from chainrule.diagnosis.backward import *
