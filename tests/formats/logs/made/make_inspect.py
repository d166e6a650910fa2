"""A small Inspect log with token log-probabilities and two epochs, made by a mock model."""

import math
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import match

QUESTIONS, EPOCHS = 5, 2
RANDOM = random.Random(0)


def answer(text: str, probability: float) -> ModelOutput:
    """An answer of one token."""
    token = Logprob(token=text, logprob=math.log(probability), bytes=None, top_logprobs=None)
    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(content=text), logprobs=Logprobs(content=[token])
    )
    # Without its usage Inspect counts tokens, with a table that it would have to download.
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return ModelOutput(model="mock", choices=[choice], usage=usage)


def main(target: Path) -> None:
    """Write the log to a folder."""
    answers = [
        answer(RANDOM.choice("ab"), RANDOM.uniform(0.5, 1)) for _ in range(QUESTIONS * EPOCHS)
    ]
    samples = [Sample(input=f"question {i}", target="a", id=i) for i in range(QUESTIONS)]
    task = Task(dataset=samples, scorer=match(), name="letters")
    model = get_model("mockllm/model", custom_outputs=answers)
    with tempfile.TemporaryDirectory() as folder:
        eval(task, model=model, epochs=EPOCHS, log_dir=folder, max_connections=1, max_samples=1)
        (made,) = Path(folder).glob("*.eval")
        shutil.copy(made, target / "inspect.eval")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
