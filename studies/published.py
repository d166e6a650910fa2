"""What four published ResNets say of the test images of CIFAR-10: their logits, the variance over
passes with dropout, the distance to the decision boundary. The weights are not ours to give away;
what is computed from them is kept in `kept/`.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from .data import Dataset
from .data.cifar_png import cifar10_png
from .networks.published_resnet import PublishedResNet, load_published, normalise
from .predictions import write
from .progress import say
from .provided import weights_folder

DEPTHS = (20, 32, 44, 56)
DROPOUT_DEPTH, DISTANCE_DEPTH = 20, 44
RATES = (0.002, 0.01, 0.05)
PASSES = 30
BATCH = 100
LEARNT = 10_000  # training images
CHUNK = 250  # images whose passes are finished before the next; a killed process goes on from there
LOGIT_MASK = 0xFFF8  # eight binary digits of float16: a relative error below 1/500


def load_network(depth: int) -> PublishedResNet:
    with np.load(weights_folder() / f"resnet{depth}_cifar10.npz") as found:
        return load_published(depth, dict(found))


def ask_published(data: Path, kept: Path, parts: int | None = None) -> str:
    """Compute what is missing of the four files; returns where they are.

    Dropout takes hours: `parts` ends after so many more parts, and the file then holds the images
    that are finished. Parts stay in `unfinished` until all are there.
    """
    torch.set_num_threads(1)
    dataset = cifar10_png(data)
    images, labels = dataset.test_x, dataset.test_y
    jobs: dict[str, Callable[[], dict[str, np.ndarray]]] = {
        "published_logits.npz": lambda: {"labels": labels, **compute_logits(images)},
        "published_distance.npz": lambda: compute_distances(images),
        "published_train.npz": lambda: compute_learnt(dataset),
    }
    for name, compute in jobs.items():
        if not (kept / name).exists():
            write(compute(), kept / name)
            say(f"{name} is finished")
    compute_dropout(images, kept / "unfinished", parts)
    write(collect_dropout(kept / "unfinished"), kept / "published_dropout.npz")
    return str(kept)


def compute_logits(images: np.ndarray) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for depth in DEPTHS:
        network = load_network(depth)
        with torch.inference_mode():
            parts = [network(x) for x in split_batches(images)]
        bits = torch.cat(parts).numpy().astype(np.float16).view(np.uint16)
        found[f"resnet{depth}_logits"] = ((bits + 4) & LOGIT_MASK).view(np.float16)
    return found


def compute_learnt(dataset: Dataset) -> dict[str, np.ndarray]:
    """Of images that the networks were trained on, without augmentation."""
    labels = dataset.train_y[:LEARNT]
    return {"labels": labels, **compute_logits(dataset.train_x[:LEARNT])}


def split_batches(images: np.ndarray) -> list[Tensor]:
    return list(normalise(images).split(BATCH))


def compute_dropout(images: np.ndarray, unfinished: Path, parts: int | None = None) -> None:
    """Two variances for each rate and image: the Frobenius norm of the covariance of the passes'
    probabilities, which is the authors', and the sum over classes."""
    network = load_network(DROPOUT_DEPTH).to(memory_format=torch.channels_last)
    # Several processes may work on one folder: each takes the chunks in an order of its own.
    order = np.random.default_rng(os.getpid()).permutation(np.arange(0, len(images), CHUNK))
    done = 0
    for start in order:
        path = unfinished / f"dropout_{start}.npz"
        if done == parts or path.exists():
            continue
        chunk = images[start : start + CHUNK]
        write(spread_of_passes(network, chunk, seed=int(start)), path)
        done += 1
        say(f"dropout: {len(list(unfinished.glob('dropout_*.npz')))} of {len(order)} parts")


def collect_dropout(unfinished: Path) -> dict[str, np.ndarray]:
    """All parts that are there, in the order of the images; `rows` says which these are."""
    paths = {int(path.stem.split("_")[1]): path for path in unfinished.glob("dropout_*.npz")}
    parts = [dict(np.load(paths[start])) for start in sorted(paths)]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rows = [np.arange(start, start + CHUNK, dtype=np.uint16) for start in sorted(paths)]
    return {"rows": np.concatenate(rows), **found}


def spread_of_passes(
    network: PublishedResNet, images: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for rate in RATES:
        network.dropout.rate = rate
        network.dropout.generator.manual_seed(seed)
        with torch.inference_mode():
            passes = [
                torch.stack([network(x).double().softmax(1) for _ in range(PASSES)])
                for x in split_batches(images)
            ]
        probs = torch.cat(passes, dim=1)
        from_mean = probs - probs.mean(0)
        covariance = torch.einsum("pnj,pnk->njk", from_mean, from_mean) / PASSES
        found[f"frobenius_{rate}"] = covariance.flatten(1).norm(dim=1).numpy().astype(np.float32)
        found[f"sum_{rate}"] = covariance.diagonal(dim1=1, dim2=2).sum(1).numpy().astype(np.float32)
    network.dropout.rate = 0.0
    return found


def compute_distances(images: np.ndarray) -> dict[str, np.ndarray]:
    """On the logits, and on the softmax in double precision: the slope of a sure answer is lost in
    single."""
    from howsure.torch import boundary_distance  # asking for logits alone needs no howsure

    network = load_network(DISTANCE_DEPTH)
    parts = split_batches(images)
    found = {"logits": boundary_distance(network, with_labels(parts), progress=False)}
    doubled = nn.Sequential(network, nn.Softmax(1)).double()
    batches = with_labels([part.double() for part in parts])
    found["softmax"] = boundary_distance(doubled, batches, progress=False, outputs="probs")
    return {name: values.astype(np.float32) for name, values in found.items()}


def with_labels(parts: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """The distance does not depend on labels; the loader must have some."""
    return [(part, torch.zeros(len(part), dtype=torch.long)) for part in parts]
