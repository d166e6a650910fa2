"""Everything that decides what a training run computes, and the name that follows from it."""

import hashlib
import json
from dataclasses import MISSING, dataclass, fields


@dataclass(frozen=True)
class Settings:
    """One training run. Only what changes the weights belongs here, because the name is a hash of
    it.
    """

    data: str
    network: str
    train_size: int
    epochs: int
    val_size: int = 5_000
    batch: int = 128
    optimiser: str = "sgd"
    lr: float = 0.1
    schedule: str = "steps"
    weight_decay: float = 5e-4
    dropout: float = 0.0
    label_smoothing: float = 0.0
    confidence_penalty: float = 0.0
    augment: bool = True
    seed: int = 0
    loss: str = "cross_entropy"
    block_dropout: float = 0.0
    precision: str = "float32"

    def changed(self) -> dict[str, object]:
        """The settings that differ from the defaults, so that a new field does not rename old runs."""
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if getattr(self, f.name) != f.default
        }

    def to_json(self) -> str:
        return json.dumps(self.changed(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        return cls(**json.loads(text))

    @property
    def name(self) -> str:
        """Readable start, then eight digits of the hash: equal settings share one trained network."""
        digest = hashlib.sha256(self.to_json().encode()).hexdigest()
        return f"{self.network}_{self.data}_{digest[:8]}"


REQUIRED = tuple(f.name for f in fields(Settings) if f.default is MISSING)
