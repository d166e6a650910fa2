"""What columns and arrays are called by convention, in files and in frames."""

from __future__ import annotations

ALIASES = {
    "logits": ("logits",),
    "probs": ("probs",),
    "logprobs": ("logprobs", "option_logprobs"),
    "confidence": ("confidence", "conf", "scores", "score"),
    "logprob": ("logprob",),
    "samples": ("samples",),
    "labels": ("labels", "label", "y", "targets", "target"),
    "correct": ("correct",),
    "prediction": ("prediction", "predictions", "pred", "preds", "answer"),
    "grade": ("grade",),
    "loss": ("loss",),
    "no_answer": ("no_answer",),
    "ids": ("ids", "id", "idx"),
    "weight": ("weight", "weights"),
    "group": ("group", "groups"),
    "images": ("image_ids",),
    "class_names": ("class_names", "classes", "label_names"),
    "split": ("split",),
}
NUMBERED = {"logit_": "logits", "prob_": "probs"}
MANY_LABELS = "label_"  # columns of a table with many labels per case
