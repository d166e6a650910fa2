"""What is written is read back, bit for bit, through every format."""

from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Predictions, read, scan, scores, write
from howsure.formats import ReadOptions, suffixes

N, K = 40, 4
ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
PACKAGE = {**dict.fromkeys(ARROW, "pyarrow"), ".pt": "torch", ".pth": "torch"}
SUFFIXES = sorted(suffixes())


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sets() -> dict[str, Predictions]:
    rng = np.random.default_rng(7)
    z, y = rng.normal(size=(N, K)) * 3, rng.integers(0, K, N)
    beside = {
        "ids": [f"s{i:03}" for i in range(N)],
        "group": rng.integers(0, 5, N),
        "weight": rng.random(N),
        "class_names": ["cat", "dog", "grey owl", "élan"],
    }
    words = np.array([f'answer, "{i % 3}"\nof two lines' for i in range(N)])
    return {
        "logits64": Predictions.from_logits(z, y, **beside),
        "logits32": Predictions.from_logits(z.astype(np.float32), y, **beside),
        "probs64": Predictions.from_probs(softmax(z), y, **beside),
        "probs32": Predictions.from_probs(softmax(z).astype(np.float32), y),
        "probs16": Predictions.from_probs(softmax(z).astype(np.float16), y),
        "off16": Predictions.from_probs(np.full((N, 3), 0.3305, dtype=np.float16), y % 3),
        "binary": Predictions.from_probs(rng.random(N), y % 2),
        "no_labels": Predictions.from_logits(z),
        "samples": Predictions.from_samples(rng.normal(size=(3, N, K)), y, ids=np.arange(N)),
        "sample_probs": Predictions.from_samples(
            probs=softmax(rng.normal(size=(3, N, K))), labels=y
        ),
        "top": Predictions.from_confidence(
            rng.random(N), rng.integers(0, 2, N), ids=np.arange(N) * 3 - 5
        ),
        "top32": Predictions.from_confidence(
            rng.random(N).astype(np.float32), y == 0, prediction=y, labels=y * 0
        ),
        "answers": Predictions.from_confidence(
            rng.random(N), y == 0, prediction=words, labels=words[::-1]
        ),
    }


def same(a: Predictions, b: Predictions, *, names: bool = True) -> None:
    assert (a.kind, a.k, a.samples) == (b.kind, b.k, b.samples)
    assert np.array_equal(a.confidence, b.confidence)
    for column in ("known_labels", "known_correct", "known_prediction", "ids", "group", "weight"):
        x, y = getattr(a, column), getattr(b, column)
        assert (x is None) == (y is None), column
        assert x is None or np.array_equal(x, y), column
    if names:
        assert a.class_names == b.class_names


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", sets())
def test_round_trip(name: str, suffix: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGE.get(suffix, "numpy"))
    preds = sets()[name]
    path = tmp_path / f"a{suffix}"
    write(preds, path)
    back = read(path)
    same(preds, back)
    if preds.kind != "confidence":
        assert np.array_equal(np.asarray(preds.values, float), np.asarray(back.values, float))
        assert np.array_equal(scores.entropy(preds), scores.entropy(back))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["logits32", "samples", "answers"])
def test_parts_of_a_stream_are_the_whole(name: str, suffix: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGE.get(suffix, "numpy"))
    preds = sets()[name]
    write(preds, tmp_path / f"a{suffix}")
    parts = list(scan(tmp_path / f"a{suffix}", rows=7))
    assert [part.n for part in parts] == [7, 7, 7, 7, 7, 5]
    for start, part in zip(range(0, N, 7), parts, strict=True):
        same(preds[start : start + 7], part)


def test_a_compressed_archive_streams_too(tmp_path: Path) -> None:
    z = np.random.default_rng(0).normal(size=(20, 3))
    np.savez_compressed(tmp_path / "a.npz", logits=z, labels=np.zeros(20, dtype=np.uint8))
    parts = list(scan(tmp_path / "a.npz", rows=6))
    assert np.array_equal(np.concatenate([p.values for p in parts]), z)


def test_fortran_order_and_other_byte_order(tmp_path: Path) -> None:
    z = np.arange(12.0).reshape(4, 3)
    np.savez(
        tmp_path / "a.npz",
        logits=np.asfortranarray(z).astype(">f4"),
        labels=np.zeros(4, dtype=">i2"),
    )
    assert np.array_equal(read(tmp_path / "a.npz").values, z)
    assert [p.n for p in scan(tmp_path / "a.npz", rows=3)] == [3, 1]


def test_several_files_are_one_set(tmp_path: Path) -> None:
    preds = sets()["logits64"]
    write(preds[:15], tmp_path / "a.npz")
    write(preds[15:], tmp_path / "b.csv")
    same(preds, read([tmp_path / "a.npz", tmp_path / "b.csv"]))
    assert sum(p.n for p in scan([tmp_path / "a.npz", tmp_path / "b.csv"])) == N


def test_files_that_do_not_fit_together(tmp_path: Path) -> None:
    all_sets = sets()
    for name in ("logits64", "probs64", "no_labels"):
        write(all_sets[name], tmp_path / f"{name}.npz")
    parts = ReadOptions(several="parts")
    with pytest.raises(InputError, match="differ in kind"):
        read([tmp_path / "logits64.npz", tmp_path / "probs64.npz"], options=parts)
    with pytest.raises(InputError, match="class names"):
        read([tmp_path / "logits64.npz", tmp_path / "no_labels.npz"], options=parts)
    with pytest.raises(InputError, match="at least one"):
        read([])


def test_either_half_or_the_beginning_of_a_pair(tmp_path: Path) -> None:
    z, y = np.eye(3), np.array([0, 1, 1])
    np.save(tmp_path / "run1_logits.npy", z)
    np.save(tmp_path / "run1_labels.npy", y)
    np.save(tmp_path / "run2_labels.npy", y)
    for name in ("run1_logits.npy", "run1_labels.npy", "run1", "run1.npy"):
        preds = read(tmp_path / name)
        assert np.array_equal(preds.values, z)
        assert preds.labels.tolist() == [0, 1, 1]


def test_a_pair_is_not_mixed_with_what_was_there(tmp_path: Path) -> None:
    preds = Predictions.from_logits(np.eye(2), [0, 1])
    np.save(tmp_path / "a_ids.npy", np.arange(2))
    with pytest.raises(InputError, match=r"a_ids\.npy is there"):
        write(preds, tmp_path / "a.npy")
    assert [p.name for p in tmp_path.iterdir()] == ["a_ids.npy"]


def test_text_of_python_objects_is_written_as_text(tmp_path: Path) -> None:
    ids = np.array(["a", "bb"], dtype=object)
    write(Predictions.from_logits(np.eye(2), [0, 1], ids=ids), tmp_path / "a.npz")
    assert read(tmp_path / "a.npz").ids.tolist() == ["a", "bb"]
    with pytest.raises(InputError, match="ids has dtype object"):
        write(
            Predictions.from_logits(np.eye(2), ids=np.array([None, {}], dtype=object)),
            tmp_path / "b.npz",
        )


def test_safetensors_agree_with_the_library(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    preds = sets()["logits32"]
    write(preds, tmp_path / "a.safetensors")
    theirs = library.load_file(tmp_path / "a.safetensors")
    assert np.array_equal(theirs["logits"], preds.values)
    library.save_file(
        {"test_logits": preds.values, "test_labels": preds.labels}, tmp_path / "b.safetensors"
    )
    assert np.array_equal(read(tmp_path / "b.safetensors").values, preds.values)


def test_bfloat16_and_one_tensor_named_by_its_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    z = torch.tensor([[1.5, -2.0], [0.25, 3.0]], dtype=torch.bfloat16)
    torch.save({"logits": z, "labels": torch.tensor([0, 1])}, tmp_path / "a.pt")
    torch.save(z, tmp_path / "val_logits.pt")
    assert read(tmp_path / "a.pt").values.tolist() == z.float().tolist()
    assert read(tmp_path / "val_logits.pt", split="val").values.tolist() == z.float().tolist()
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({"logits": z}, tmp_path / "a.safetensors")
    assert read(tmp_path / "a.safetensors").values.tolist() == z.float().tolist()
