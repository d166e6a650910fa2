"""The papers' claims as verdicts: agrees, does not agree, cannot be decided here; all computed."""

from .catalogue import CLAIMS
from .claim import Claim, Evidence

__all__ = ["CLAIMS", "Claim", "Evidence"]
