"""Two small sample files of lm-evaluation-harness by a mock model: one of a task whose `acc` is a
share of probability, one of a task that also logs `acc_mutual_info`.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

QUESTIONS = 8
GRADED = """
task: graded
dataset_path: json
dataset_kwargs: {{data_files: "{data}"}}
test_split: train
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: 0
doc_to_choice: "{{{{choices}}}}"
process_results: !function task.grade
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
"""
MUTUAL = """
task: mutual
dataset_path: json
dataset_kwargs: {{data_files: "{data}"}}
test_split: train
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{gold}}}}"
doc_to_choice: "{{{{choices}}}}"
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_mutual_info, aggregation: mean, higher_is_better: true}}
"""
GRADE = '''
from math import exp


def grade(doc, results):
    """The probability of the true options, as truthfulqa_mc2 has it."""
    shares = [exp(value) for value, _ in results]
    return {"acc": sum(s for s, true in zip(shares, doc["true"]) if true) / sum(shares)}
'''


class Mock(LM):
    """Likelihoods that follow from the words alone."""

    def loglikelihood(self, requests: Sequence[Instance]) -> list[tuple[float, bool]]:
        """A number from -6 to -1 for each request."""
        made: list[tuple[float, bool]] = []
        for request in requests:
            digest = hashlib.sha256("|".join(request.args).encode()).digest()
            made.append((-1 - 5 * digest[0] / 255, False))
        return made

    def loglikelihood_rolling(self, requests: Sequence[Instance]) -> list[float]:
        """Nothing asks for it."""
        raise NotImplementedError

    def generate_until(self, requests: Sequence[Instance]) -> list[str]:
        """Nothing asks for it."""
        raise NotImplementedError


def main(target: Path) -> None:
    """Write both files to a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data.json"
        rows = [
            {
                "question": f"question {i}?",
                "choices": list("abcd"),
                "gold": i % 4,
                "true": [1, 0, i % 2, 0],
            }
            for i in range(QUESTIONS)
        ]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "task.py").write_text(GRADE)
        (folder / "graded.yaml").write_text(GRADED.format(data=data))
        (folder / "mutual.yaml").write_text(MUTUAL.format(data=data))
        tracker = EvaluationTracker(output_path=str(folder / "out"))
        found = simple_evaluate(
            model=Mock(),
            tasks=["graded", "mutual"],
            task_manager=TaskManager(include_path=name, include_defaults=False),
            evaluation_tracker=tracker,
            bootstrap_iters=0,
        )
        samples = found.pop("samples")
        tracker.save_results_aggregated(results=found, samples=samples)
        for task in ("graded", "mutual"):
            tracker.save_results_samples(task_name=task, samples=samples[task])
            (made,) = (folder / "out").rglob(f"samples_{task}_*.jsonl")
            shutil.copy(made, target / f"lm_eval_{task}.jsonl")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
