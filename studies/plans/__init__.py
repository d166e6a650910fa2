"""The run list of each study, at three scales."""

from .catalogue import STUDIES, Study, runs_of

__all__ = ["STUDIES", "Study", "runs_of"]
