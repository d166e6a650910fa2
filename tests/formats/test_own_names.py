"""Columns that are called as nobody foresaw: named by the user, and proposed by the sentence that
refuses them.
"""

from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, read, scan

ANIMALS = "image,animal,cat,dog,bird\na.png,dog,0.25,0.5,0.25\nb.png,cat,0.75,0.125,0.125\n"


def csv(folder: Path, text: str) -> Path:
    (folder / "a.csv").write_text(text)
    return folder / "a.csv"


@pytest.mark.parametrize("probs", ["cat,dog,bird", "cat, dog, bird", ["cat", "dog", "bird"]])
def test_several_columns_are_named_with_commas_and_name_the_classes(
    probs: str | list[str], tmp_path: Path
) -> None:
    preds = read(csv(tmp_path, ANIMALS), names={"probs": probs, "labels": "animal"})
    assert preds.class_names == ("cat", "dog", "bird")
    assert preds.labels.tolist() == [1, 0]
    assert preds.probs.tolist() == [[0.25, 0.5, 0.25], [0.75, 0.125, 0.125]]


def test_named_columns_are_streamed_too(tmp_path: Path) -> None:
    path = csv(tmp_path, ANIMALS)
    parts = list(scan([path], rows=1, names={"probs": "cat,dog,bird", "labels": "animal"}))
    assert [part.labels.tolist() for part in parts] == [[1], [0]]


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_star_takes_all_that_begin_alike_by_their_number(suffix: str, tmp_path: Path) -> None:
    values = {f"softmax_{i}": [float(i == 10), float(i == 2)] for i in (10, *range(10))}
    if suffix == ".csv":
        rows = [
            ",".join([*values, "y"]),
            *(",".join(map(str, [*row, 2])) for row in zip(*values.values(), strict=True)),
        ]
        path = csv(tmp_path, "\n".join(rows))
    else:
        path = tmp_path / "a.npz"
        np.savez(path, y=[2, 2], **values)
    preds = read(path, names={"probs": "softmax_*"})
    assert preds.class_names is None
    assert preds.prediction.tolist() == [10, 2]


def test_what_columns_have_in_common_is_no_part_of_the_class(tmp_path: Path) -> None:
    path = csv(tmp_path, "p.no,p.yes,y\n0.25,0.75,yes\n")
    assert read(path, names={"probs": "p.*"}).class_names == ("no", "yes")


def test_a_column_with_a_comma_or_a_star_in_its_name_is_meant_itself(tmp_path: Path) -> None:
    path = csv(tmp_path, '"a,b",c*,ok\n0.5,0.25,1\n')
    assert read(path, names={"confidence": "a,b", "correct": "ok"}).confidence.tolist() == [0.5]
    assert read(path, names={"confidence": "c*", "correct": "ok"}).confidence.tolist() == [0.25]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            {"labels": "animal,image"},
            "names gives 2 columns for 'labels'; one is needed; several go with logits, probs",
        ),
        ({"probs": "x_*"}, "a.csv has nothing that begins with 'x_'; it holds 'image', 'animal'"),
        ({"probs": ","}, "names gives nothing for 'probs'"),
        ({"probs": "cat,cow"}, "a.csv has no 'cow'; it holds 'image'"),
    ],
)
def test_names_that_do_not_fit(names: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read(csv(tmp_path, ANIMALS), names=names)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        (
            ANIMALS,
            "The texts of 'animal' are names of columns: try --name probs=cat,dog,bird --name labels=animal.",
        ),
        ("truth,a b,c\na b,-2.5,3\nc,1.5,0\n", "try --name 'logits=a b,c' --name labels=truth."),
        (
            "age,risk,dead\n41,0.25,0\n57,0.5,1\n",
            "; 'risk' holds numbers between 0 and 1: try --name probs=risk if that is the probability of class 1, "
            "--name confidence=risk if it says how sure the answer is.",
        ),
        (
            "age,dead\n41,0\n57,1\n",
            "; rename one, or say which is which with names={'probs': '…'} (--name probs=…).",
        ),
        ("name;risk\na;0,25\nb;0,5\n", "'risk' holds numbers"),
        ("risk,r2\n0.25,nan\n0.5,1\n", "'risk' holds numbers"),
        ("risk,r2\n0.25,0.5\n0.5,1\n", "'risk', 'r2' hold numbers"),
    ],
)
def test_the_refusal_proposes_what_may_be_meant(text: str, proposed: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read(csv(tmp_path, text))
    assert proposed in str(error.value)


def test_what_is_proposed_works(tmp_path: Path) -> None:
    path = csv(tmp_path, ANIMALS)
    with pytest.raises(InputError) as error:
        read(path)
    words = str(error.value).removesuffix(".").split("try ")[1].split()
    names = dict(word.split("=") for word in words if word != "--name")
    assert read(path, names=names).correct.tolist() == [True, True]


def test_many_classes_are_proposed_in_a_line(tmp_path: Path) -> None:
    classes = [f"class{i}" for i in range(150)]
    rows = [",".join(["truth", *classes]), *(",".join([c, *["0.5"] * 150]) for c in classes)]
    with pytest.raises(InputError) as error:
        read(csv(tmp_path, "\n".join(rows)))
    assert "probs=class0,…,class149" in str(error.value)
    assert len(str(error.value)) < 500


def test_many_labels_are_told_as_such(tmp_path: Path) -> None:
    probs, labels = np.array([[0.9, 0.8], [0.1, 0.2]]), np.array([[1, 1], [0, 0]])
    np.savez(tmp_path / "both.npz", probs=probs, labels=labels)
    np.savez(tmp_path / "probs.npz", probs=probs)
    with pytest.raises(
        InputError, match=r"labels\[0\] has 2 numbers that are not a single 1 .* \(--multilabel\)"
    ):
        read(tmp_path / "both.npz")
    with pytest.raises(
        InputError,
        match=r"sums to 1.7, .* many labels per case\? Use .* \(--multilabel\)\. Pass renorm",
    ):
        read(tmp_path / "probs.npz")
