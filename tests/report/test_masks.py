"""Masks with the image as the unit: loss, limits, promises, files and streams, the page, bad input."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks import masks_stream

import howsure as hs
from howsure.policies import Policy
from howsure.report import samples

Run = Callable[..., str]


def scans(n: int = 40, k: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Squares of 8 × 8 pixels with a bright block, seen through noise that differs from image to
    image.
    """
    rng = np.random.default_rng(seed)
    labels = np.zeros((n, 8, 8), dtype=np.int64)
    labels[:, 2:6, 2:6] = rng.integers(1, k, (n, 1, 1)) if k > 2 else 1
    signal = 4 * (labels[:, None] == np.arange(k)[None, :, None, None])
    noise = rng.uniform(0.3, 4, (n, 1, 1, 1)) * rng.standard_normal((n, k, 8, 8))
    return {
        "logits": signal + noise,
        "labels": labels,
        "image_ids": np.array([f"scan{i:03d}" for i in range(n)]),
    }


def written(path: Path, **columns: np.ndarray) -> Path:
    np.savez(path, **columns)
    return path


def by_hand(data: dict[str, np.ndarray], classes: tuple[int, ...] = (1,)) -> np.ndarray:
    said = data["logits"].argmax(axis=1)
    losses = []
    for p, t in zip(said, data["labels"], strict=True):
        dice = []
        for c in classes:
            size = (p == c).sum() + (t == c).sum()
            dice.append(2 * ((p == c) & (t == c)).sum() / size if size else 1.0)
        losses.append(1 - np.mean(dice))
    return np.array(losses)


@pytest.mark.parametrize("k", [2, 3])
def test_the_loss_is_one_minus_dice_of_each_image(tmp_path: Path, k: int) -> None:
    data = scans(k=k)
    preds = hs.read(written(tmp_path / "a.npz", **data))
    found = hs.images_of(preds)
    assert found.loss == pytest.approx(by_hand(data, tuple(range(1, k))))
    assert hs.dice_loss(preds) == pytest.approx(found.loss.mean())
    assert hs.image_aurc(preds) == hs.aurc(hs.image_tally(preds))
    assert hs.image_tally(preds).n == 40


def test_images_and_pixels_are_told_apart(tmp_path: Path) -> None:
    preds = hs.read(written(tmp_path / "a.npz", **scans()))
    pixels = hs.dice_tally(preds.confidence, preds.prediction, preds.labels)
    assert pixels.n == 40 * 64
    assert hs.aurc(pixels) != pytest.approx(hs.image_aurc(preds))


def test_empty_masks() -> None:
    p = np.array([[0.9, 0.1]] * 4 + [[0.2, 0.8]] * 2)
    preds = hs.Predictions.from_probs(p, [0, 0, 0, 1, 0, 0], group=["a", "a", "b", "b", "c", "c"])
    assert hs.images_of(preds).loss.tolist() == [
        0.0,
        1.0,
        1.0,
    ]  # both empty, nothing found, nothing there


def test_other_scores_of_images(tmp_path: Path) -> None:
    preds = hs.read(written(tmp_path / "a.npz", **scans()))
    given = np.arange(40.0)
    assert hs.image_tally(preds, given).score[0] == 39
    assert set(hs.images_of(preds).scores) == {"mean_confidence", "mean_certainty", "sure_pixels"}
    with pytest.raises(hs.InputError, match="the images has 40"):
        hs.image_tally(preds, [1.0])


def test_the_report_has_images_with_limits_over_images(tmp_path: Path) -> None:
    preds = hs.read(written(tmp_path / "a.npz", **scans()))
    report = hs.evaluate(preds, loss="dice", images=np.zeros((40, 8, 8)))
    entry = report.data["metrics"]["image_aurc"]
    assert (entry["low"], entry["high"]) == pytest.approx(hs.interval(hs.image_aurc, preds))
    found = report.data["images"]
    dice = [row["dice"] for row in found["rows"]]
    assert dice == sorted(dice)
    assert sum("overlay" in row for row in found["rows"]) == 12
    page = report.to_html()
    assert len(page) < 300_000
    assert page.count('alt="Masks of image') == 12
    for form in (report.to_text(), report.to_markdown()):
        assert "The worst images" in form
    with pytest.raises(hs.InputError, match="39 pictures for 40 images"):
        hs.evaluate(preds, loss="dice", images=np.zeros((39, 8, 8)))


def test_streamed_and_loaded_images_agree(tmp_path: Path) -> None:
    files = [
        written(tmp_path / "a.npz", **scans(20)),
        written(
            tmp_path / "b.npz",
            **{**scans(15, seed=1), "image_ids": np.array([f"other{i}" for i in range(15)])},
        ),
    ]
    loaded = hs.evaluate(hs.read(files), loss="dice")
    for _ in range(2):
        streamed = hs.evaluate_files(files, loss="dice", resume=tmp_path / "kept")
        assert streamed.data["images"] == loaded.data["images"]
        for name in ("dice_loss", "image_aurc"):
            assert streamed.data["metrics"][name] == pytest.approx(loaded.data["metrics"][name])
    assert streamed.data["streamed"]["resumed"] == 2


def test_a_promise_on_images_from_the_command_line(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path / "a.npz", **scans(400))
    text = run("threshold", path, "--loss", "dice", "--risk", "0.2", "-o", tmp_path / "p.json")
    assert "Accept images whose mean_confidence is at least" in " ".join(text.split())
    assert "400 samples" in text
    policy, images = hs.load(tmp_path / "p.json"), hs.images_of(hs.read(path))
    accepted = policy.decide(images.predictions()).accept
    assert images.loss[accepted].mean() < 0.2
    assert 0.2 < accepted.mean() < 1
    assert "Images" not in run(
        "evaluate", path, "--quiet", "--loss", "dice", "--html", tmp_path / "r.html"
    )
    assert "Per-image results" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d | {"labels": d["labels"][:, :7]}, "one value per pixel"),
        (
            lambda d: {name: a[:1] for name, a in d.items()},
            "there is 1 image; at least 2 are needed",
        ),
    ],
)
def test_bad_masks_are_one_sentence(
    tmp_path: Path, run: Run, change: Callable[..., dict], said: str
) -> None:
    path = written(tmp_path / "a.npz", **change(scans(6)))
    assert said in run("evaluate", path, "--loss", "dice", ok=2)


def test_rows_without_images_are_refused() -> None:
    preds = hs.Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    with pytest.raises(hs.InputError, match="an image is a group of pixels"):
        hs.evaluate(preds, loss="dice")
    with pytest.raises(hs.InputError, match="top-5, dice, dice-pixels"):
        hs.evaluate(preds, loss="iou")


def test_limits_of_few_images_are_marked(tmp_path: Path) -> None:
    report = hs.evaluate(hs.read(written(tmp_path / "a.npz", **scans(6))), loss="dice")
    said = "only 6 samples, so these limits are unsafe"
    for name in ("dice_loss", "image_aurc"):
        assert report.data["metrics"][name]["note"] == said
    found = report.data["images"]
    assert {s["aurc"]["note"] for s in found["scores"]} == {said}
    assert found["classes"][0]["dice"]["note"] == said
    assert "Only 6 samples, so these limits are unsafe." in " ".join(report.to_text().split())
    enough = hs.evaluate(hs.read(written(tmp_path / "b.npz", **scans(12))), loss="dice")
    assert "note" not in enough.data["metrics"]["image_aurc"]


def test_limits_of_the_area_over_images_hold() -> None:
    rng = np.random.default_rng(0)
    share = rng.random(20_000)
    loss = np.where(
        rng.random(20_000) < 0.1, rng.random(20_000), rng.beta(1, 12, 20_000)
    )  # some images are lost
    truth, hits = hs.aurc(hs.tally(share, loss=loss)), []
    for _ in range(300):
        rows = rng.integers(0, 20_000, 60)
        low, high = hs.interval(hs.aurc, hs.Outcomes(share[rows], loss=loss[rows]))
        hits.append(low <= truth <= high)
    assert np.mean(hits) >= 0.93


def test_a_column_orders_images(tmp_path: Path, run: Run) -> None:
    data = scans(60)
    good = 1 - by_hand(data, (1,))  # as if somebody knew
    path = written(tmp_path / "a.npz", **data, quality=good)
    preds = hs.read(path, attributes=["quality"])
    found = hs.images_of(preds, score="quality")
    assert next(iter(found.scores)) == "quality"
    assert found.scores["quality"].tolist() == good.tolist()
    loaded = hs.evaluate(preds, loss="dice", image_score="quality")
    best = hs.aurc(hs.tally(good, loss=found.loss))
    assert loaded["image_aurc"] == pytest.approx(best)
    assert loaded.data["images"]["scores"][0]["aurc"]["value"] == pytest.approx(best)
    streamed = hs.evaluate_files(
        [path], loss="dice", image_score="quality", resume=tmp_path / "kept"
    )
    assert streamed.data["images"] == loaded.data["images"]
    run("evaluate", path, "--loss", "dice", "--image-score", "quality", "--json")
    assert "quality from" in run(
        "evaluate", path, "--loss", "dice", "--image-score", "quality", "--full"
    )
    run(
        "threshold",
        path,
        "--loss",
        "dice",
        "--image-score",
        "quality",
        "--coverage",
        "0.5",
        "-o",
        tmp_path / "p.json",
    )
    policy = hs.load(tmp_path / "p.json")
    assert policy.decide(found.predictions()).coverage == pytest.approx(0.5)
    assert policy.threshold == np.sort(good)[30]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--loss", "dice", "--image-score", "nothing"), "'nothing'"),
        (("--image-score", "quality"), "--loss dice"),
        (("--loss", "dice", "--image-score", "quality"), "quality"),
    ],
)
def test_bad_scores_of_images(tmp_path: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    path = written(tmp_path / "a.npz", **scans(12), quality=np.full(12, np.nan))
    assert said in run("evaluate", path, *words, ok=2)


def test_betting_is_a_choice_on_the_command_line(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path / "a.npz", **scans(300))
    how = ("threshold", path, "--loss", "dice", "--risk", "0.15")
    bets = json.loads(run(*how, "--bound", "betting", "--json", "-q"))
    plain = json.loads(run(*how, "--json", "-q"))
    assert bets["guarantee"]["rule"].endswith("(fixed-sequence testing, betting)")
    assert plain["coverage"] < bets["coverage"]
    o = hs.images_of(hs.read(path)).outcomes()
    same = hs.policies.guaranteed_threshold(o, risk=0.15, delta=0.05, bound="betting")
    turned = hs.policies.guaranteed_threshold(o[::-1], risk=0.15, delta=0.05, bound="betting")
    assert same.threshold == turned.threshold == bets["threshold"]
    np.savez(tmp_path / "b.npz", probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 1])
    assert "--bound" in run(
        "threshold", tmp_path / "b.npz", "--risk", "0.1", "--bound", "betting", ok=2
    )


def test_a_stream_of_images_holds_few_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        samples, "MAX_HELD_NUMBERS", 1000
    )  # as for pixels that are too many to be held for limits
    peaks: list[int] = []
    for images in (24, 96):
        path = masks_stream.written(tmp_path / f"{images}.npz", images, classes=8, side=96)
        tracemalloc.start()
        report = hs.evaluate_files([path], loss="dice", compact=True, map=map)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert report.data["images"]["images"] == images
    assert peaks[1] < 1.6 * peaks[0]  # four times as many images
    assert (
        peaks[1] < 1.5 * path.stat().st_size
    )  # where the sums of all images at once took nine times as much


@pytest.mark.parametrize("score", [None, "quality"])
def test_images_are_decided_on_the_command_line(
    tmp_path: Path, run: Run, score: str | None
) -> None:
    rng = np.random.default_rng(0)
    path = written(tmp_path / "a.npz", **scans(40), quality=rng.random(40))
    named = () if score is None else ("--image-score", score)
    run("threshold", path, "--loss", "dice", "--coverage", "0.5", *named, "-o", tmp_path / "p.json")
    text = run("decide", tmp_path / "p.json", path, "-o", tmp_path / "out.jsonl")
    assert "40 decided: 20 accepted" in text
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    policy, preds = hs.load(tmp_path / "p.json"), hs.read(path, attributes=["quality"])
    decisions = policy.decide(preds)  # pixels: it puts them together itself
    assert [row["decision"] == "accept" for row in rows] == decisions.accept.tolist()
    assert [str(row["id"]) for row in rows] == [str(i) for i in decisions.ids]
    assert [row["confidence"] for row in rows] == pytest.approx(
        hs.images_of(preds, score=score).score().tolist()
    )
    (tmp_path / "b.csv").write_text("prob_0,prob_1\n0.9,0.1\n")
    assert "images are decided from arrays" in run(
        "decide", tmp_path / "p.json", tmp_path / "b.csv", ok=2
    )
    assert "not from a pipe" in run("decide", tmp_path / "p.json", "-", ok=2)


def test_a_policy_of_images_is_fitted_on_pixels(tmp_path: Path) -> None:
    preds = hs.read(written(tmp_path / "a.npz", **scans(40)))
    choose = lambda t: hs.policies.threshold_for_coverage(t, 0.5)
    policy, same = (
        Policy.fit(p, choose, by="image") for p in (preds, hs.images_of(preds).predictions())
    )
    assert policy.to_text() == same.to_text()
    assert policy.decide(preds).coverage == 0.5
    assert "Accept where mean_confidence of an image" in policy.to_text()
    hs.save(policy, tmp_path / "p.json")
    assert hs.load(tmp_path / "p.json").to_text() == policy.to_text()
