"""What columns and arrays are called by convention, in files and in frames."""

from __future__ import annotations

ALIASES = {
    "logits": ("logits",),
    "probs": ("probs", "probabilities", "y_prob", "y_proba", "proba"),
    "logprobs": ("logprobs", "option_logprobs"),
    "confidence": ("confidence", "conf", "scores", "score"),
    "logprob": ("logprob",),
    "samples": ("samples",),
    "labels": (
        "labels",
        "label",
        "y",
        "targets",
        "target",
        "y_true",
        "true_label",
        "ground_truth",
        "gold",
    ),
    "correct": ("correct", "is_correct"),
    "prediction": (
        "prediction",
        "predictions",
        "pred",
        "preds",
        "y_pred",
        "predicted",
        "predicted_label",
        "answer",
    ),
    "grade": ("grade",),
    "loss": ("loss",),
    "no_answer": ("no_answer",),
    "ids": ("ids", "id", "idx"),
    "weight": ("weight", "weights", "sample_weight"),
    "group": ("group", "groups"),
    "images": ("image_ids",),
    "class_names": ("class_names", "classes", "label_names"),
    "split": ("split",),
}
# how the columns of the classes begin in a table; of several beginnings the first counts
NUMBERED = {
    "logit_": "logits",
    "logits_": "logits",
    "prob_": "probs",
    "probs_": "probs",
    "proba_": "probs",
    "probability_": "probs",
}
MANY_LABELS = "label_"  # columns of a table with many labels per case
