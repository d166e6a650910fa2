"""Names of arrays and columns, splits, segmentation, binary models."""

import json
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Predictions, evaluate_files, read, scan, write
from howsure.formats import describe, problems
from howsure.formats.contents import group_files
from howsure.formats.json_lines import BadLine
from howsure.formats.streams import StreamBatch, read_batches
from howsure.predictions.read_options import ReadOptions

Z = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 0.5]])
Y = np.array([0, 2])


def csv(folder: Path, text: str) -> Path:
    (folder / "a.csv").write_text(text)
    return folder / "a.csv"


@pytest.mark.parametrize(
    "labels", ["labels", "y", "targets", "label", "target", "y_true", "true_label", "gold"]
)
def test_aliases_of_labels(labels: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{"logits": Z, labels: Y})
    assert read(tmp_path / "a.npz").labels.tolist() == [0, 2]


@pytest.mark.parametrize("name", ["confidence", "conf", "scores"])
def test_aliases_of_confidence(name: str, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz", **{f"val_{name}": [0.5, 0.25], "val_pred": [1, 2], "val_labels": [1, 1]}
    )
    preds = read(tmp_path / "a.npz")
    assert preds.confidence.tolist() == [0.5, 0.25]
    assert preds.correct.tolist() == [True, False]
    assert preds.prediction.tolist() == [1, 2]


def test_the_only_split_is_used_and_several_are_asked_for(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", test_logits=Z, test_labels=Y, class_names=["a", "b", "c"])
    assert read(tmp_path / "one.npz").class_names == ("a", "b", "c")
    np.savez(
        tmp_path / "two.npz",
        test_logits=Z,
        test_labels=Y,
        val_logits=-Z,
        val_labels=Y,
        classes=["a", "b", "c"],
    )
    with pytest.raises(
        InputError, match=r"2 splits \('test', 'val'\); choose one with split= \(--split\)"
    ):
        read(tmp_path / "two.npz")
    val = read(tmp_path / "two.npz", split="val")
    assert np.array_equal(val.values, -Z)
    assert val.class_names == ("a", "b", "c")


def test_arrays_without_a_prefix_are_a_split_of_their_own(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=Z, labels=Y, val_logits=-Z, val_labels=Y)
    with pytest.raises(InputError, match="2 splits"):
        read(tmp_path / "a.npz")
    assert np.array_equal(read(tmp_path / "a.npz", split="").values, Z)


def test_logits_come_before_samples_unless_mc_is_asked_for(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        test_logits=Z,
        test_labels=Y,
        mc_test_logits=np.stack([Z, Z]).astype(np.float16),
    )
    assert read(tmp_path / "a.npz").samples == 1
    assert read(tmp_path / "a.npz", mc=True).samples == 2
    np.savez(tmp_path / "b.npz", test_mc_logits=np.stack([Z, Z]), test_labels=Y)
    assert read(tmp_path / "b.npz").samples == 2


def test_names_can_be_given(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", test_z=Z, gold=Y)
    assert read(
        tmp_path / "a.npz", split="test", names={"logits": "z", "labels": "gold"}
    ).labels.tolist() == [0, 2]
    path = csv(tmp_path, "p_a,p_b,truth\n0.25,0.75,1\n")
    assert read(path, names={"probs": ["p_a", "p_b"], "labels": "truth"}).values.tolist() == [
        [0.25, 0.75]
    ]
    with pytest.raises(
        InputError, match=r"has no 'thruth'; it holds 'p_a', 'p_b', 'truth'. Did you mean 'truth'\?"
    ):
        read(path, names={"labels": "thruth"})


def test_a_name_that_is_given_decides_what_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=Z, other=np.full((2, 3), 1 / 3), labels=Y)
    assert read(tmp_path / "a.npz", names={"probs": "other"}).kind == "probs"


def test_what_is_there_is_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logit=Z, label=Y)
    with pytest.raises(
        InputError, match=r"a.npz has no logits, probs or confidence \(it holds 'logit', 'label'\)"
    ):
        read(tmp_path / "a.npz")
    with pytest.raises(InputError, match="Did you mean 'logit'"):
        read(tmp_path / "a.npz")


def test_segmentation_is_one_row_per_pixel(tmp_path: Path) -> None:
    z = np.arange(2 * 3 * 2 * 2, dtype=np.float64).reshape(2, 3, 2, 2)
    y = np.arange(8).reshape(2, 2, 2) % 3
    np.savez(tmp_path / "a.npz", logits=z, labels=y)
    preds = read(tmp_path / "a.npz")
    assert preds.values[1].tolist() == z[0, :, 0, 1].tolist()
    assert preds.labels.tolist() == y.reshape(-1).tolist()
    assert preds.group.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [p.n for p in scan(tmp_path / "a.npz", rows=4)] == [4, 4]
    assert (
        np.concatenate([p.group for p in scan(tmp_path / "a.npz", rows=4)]).tolist()
        == preds.group.tolist()
    )


def test_images_of_two_files_are_different_groups(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        np.savez(
            tmp_path / name, logits=np.zeros((1, 2, 1, 2)), labels=np.zeros((1, 1, 2), dtype=int)
        )
    assert read([tmp_path / "a.npz", tmp_path / "b.npz"]).group.tolist() == [0, 0, 1, 1]


def test_image_ids_name_the_groups(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        confidence=np.full((2, 1, 2), 0.5),
        correct=np.ones((2, 1, 2)),
        image_ids=[7, 3],
    )
    assert read(tmp_path / "a.npz").group.tolist() == [7, 7, 3, 3]


def test_samples_of_segmentation(tmp_path: Path) -> None:
    mc = np.random.default_rng(0).normal(size=(4, 2, 3, 5, 6))
    np.savez(tmp_path / "a.npz", mc_logits=mc, labels=np.zeros((2, 5, 6), dtype=int))
    preds = read(tmp_path / "a.npz", mc=True)
    assert preds.values.shape == (4, 60, 3)
    assert preds.values[2, 31].tolist() == mc[2, 1, :, 0, 1].tolist()


@pytest.mark.parametrize(
    "text",
    ["prob_1,label\n0.25,0\n", "probs,label\n0.25,0\n", "prob_0,prob_1,label\n0.75,0.25,0\n"],
)
def test_binary_probability(text: str, tmp_path: Path) -> None:
    assert read(csv(tmp_path, text)).probs.tolist() == [[0.75, 0.25]]


def test_columns_are_taken_by_number_not_by_place(tmp_path: Path) -> None:
    path = csv(tmp_path, "label,logit_1,Logit_0\n1,5,3\n")
    assert read(path).values.tolist() == [[3.0, 5.0]]


def test_columns_may_name_the_classes(tmp_path: Path) -> None:
    preds = read(csv(tmp_path, "prob_cat,prob_dog,label\n0.25,0.75,dog\n0.5,0.5,cat\n"))
    assert preds.class_names == ("cat", "dog")
    assert preds.labels.tolist() == [1, 0]


def test_labels_by_name_in_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=Z, labels=["c", "a"], class_names=["a", "b", "c"])
    assert read(tmp_path / "a.npz").labels.tolist() == [2, 0]


def test_numbers_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    path = csv(tmp_path, "confidence,correct,id,group\n0.5,true,007,1\n0.25,False,8,2\n")
    preds = read(path)
    assert preds.ids.tolist() == ["007", "8"]
    assert preds.group.tolist() == [1, 2]
    assert preds.correct.tolist() == [True, False]


def test_byte_order_mark_crlf_quotes_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        b'\xef\xbb\xbfconfidence,correct,note\r\n0.5,1,"two\r\nlines"\r\n\r\n0.25,0,x\r\n'
    )
    assert read(tmp_path / "a.csv").n == 2
    (tmp_path / "b.csv").write_bytes(b'confidence,correct,note\n0.5,1,"two\nlines"\n\n1.5,0,x\n')
    with pytest.raises(InputError, match=r"b.csv: confidence\[1\] \(line 5\) is 1.5"):
        read(tmp_path / "b.csv")


def test_json_lists_and_objects(tmp_path: Path) -> None:
    rows = [
        {"probs": {"a": 0.25, "b": 0.75}, "label": "b"},
        {"probs": {"b": 0.5, "a": 0.5}, "label": "a"},
    ]
    (tmp_path / "a.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    preds = read(tmp_path / "a.jsonl")
    assert preds.class_names == ("a", "b")
    assert preds.values.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert preds.labels.tolist() == [1, 0]


def test_a_text_file_of_float32_is_read_as_float32(tmp_path: Path) -> None:
    p = np.array([[0.1, 0.2, 0.7]], dtype=np.float32)
    write(Predictions.from_probs(p, [0]), tmp_path / "a.csv")
    assert read(tmp_path / "a.csv").values.dtype == np.float32
    assert read(csv(tmp_path, "prob_0,prob_1\n0.1,0.9\n")).values.dtype == np.float64


def test_renormalise(tmp_path: Path) -> None:
    path = csv(tmp_path, "prob_0,prob_1\n1,3\n")
    with pytest.raises(InputError, match=r"probs\[0\] \(line 2\)"):
        read(path)
    assert read(path, renormalise=True).probs.tolist() == [[0.25, 0.75]]


def test_class_names_that_cannot_be_headings(tmp_path: Path) -> None:
    preds = Predictions.from_logits(np.eye(2), [0, 1], class_names=["3", "7"])
    with pytest.raises(InputError, match="column headings"):
        write(preds, tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())
    write(preds, tmp_path / "a.jsonl")
    again = read(tmp_path / "a.jsonl")
    assert again.class_names == ("3", "7")
    assert again.labels.tolist() == [0, 1]


def test_rows_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rows is 0"):
        list(scan(tmp_path / "a.csv", rows=0))


def test_a_table_may_have_a_column_split(tmp_path: Path) -> None:
    path = csv(tmp_path, "confidence,correct,split\n0.9,1,val\n0.8,1,test\n0.7,0,val\n")
    assert read(path, split="val").confidence.tolist() == [0.9, 0.7]
    assert [p.confidence.tolist() for p in scan(path, split="val", rows=1)] == [[0.9], [0.7]]
    with pytest.raises(InputError, match=r"2 splits \('test', 'val'\)"):
        read(path)
    with pytest.raises(InputError, match="2 splits"):
        list(scan(path, rows=1))
    with pytest.raises(
        InputError, match=r"no split 'tset'; its splits are: 'test', 'val'. Did you mean 'test'\?"
    ):
        read(path, split="tset")
    assert describe(path).splits == ("test", "val")


def test_rows_of_a_split_keep_their_lines(tmp_path: Path) -> None:
    path = csv(tmp_path, "confidence,correct,split\n0.9,1,val\n0.8,1,test\n1.7,0,val\n")
    with pytest.raises(InputError, match=r"confidence\[1\] \(line 4\)"):
        read(path, split="val")
    assert [p.where for p in problems(path)] == ["split 'val', a.csv, line 4"]
    only = csv(tmp_path, "confidence,correct,split\n0.9,1,val\n0.5,0,val\n")
    assert read(only).n == 2


def test_a_carriage_return_inside_a_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"confidence,correct\n0.9,1\n0.8\r,1\n0.7,0\n")
    with pytest.raises(
        InputError, match=r"a\.csv, line 3: a carriage return stands inside the line"
    ):
        read(path)


SPREADSHEET = (
    'id;prob_a;"prob_b";label;sample_weight;note\n1;0,25;0,75;b;1,5;"x;y"\n2;1;0;a;2;1,5 or so\n'
)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_semicolons_and_decimal_commas_as_spreadsheets_write_them(
    suffix: str, mark: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text(mark + SPREADSHEET, encoding="utf-8")
    for preds in (read(path, attributes=["note"]), *scan(path, rows=5)):
        assert preds.values.tolist() == [[0.25, 0.75], [1.0, 0.0]]
        assert preds.labels.tolist() == [1, 0]
        assert preds.weight is not None
        assert preds.weight.tolist() == [1.5, 2.0]
        assert preds.class_names == ("a", "b")
    assert read(path, attributes=["note"]).attributes["note"].tolist() == ["x;y", "1,5 or so"]


def test_the_separator_is_that_of_the_header(tmp_path: Path) -> None:
    assert read(
        csv(tmp_path, "\nconfidence\tcorrect\n85%\tyes\n0.5\tno\n")
    ).confidence.tolist() == [0.85, 0.5]
    assert read(csv(tmp_path, "confidence,correct,a;b\n0.5,1,x\n")).n == 1
    assert read(csv(tmp_path, "confidence;correct\n85,5 %;1\n7%;0\n")).confidence.tolist() == [
        0.855,
        0.07,
    ]
    with pytest.raises(InputError, match=r"a\.csv, line 2: 3 cells for 2 columns"):
        read(csv(tmp_path, "confidence,correct\n0,5,1\n"))


def test_a_decimal_comma_means_the_same_whatever_stands_beside_it(tmp_path: Path) -> None:
    """A longer file is read in runs, and a pipe in others."""
    path = csv(tmp_path, "confidence;correct;weight\n0,5;1,0;1\n1;0;2\n 85,5 % ;1;1e3\n")
    for parts in ([read(path)], list(scan(path, rows=1)), list(scan(path, rows=2))):
        assert [c for part in parts for c in part.confidence.tolist()] == [0.5, 1.0, 0.855]
    for mixed in ("0,5;1;1\n0,6;1;1.5\n0,5;1;2,5\n", "0.5;1;1\n0.5;1;1.234\n1;0;1,5\n"):
        path = csv(tmp_path, f"confidence;correct;weight\n{mixed}")
        for rows in (1, 2, 3):
            with pytest.raises(
                InputError,
                match=r"line 4, column 'weight' has numbers with decimal commas and with",
            ):
                list(scan(path, rows=rows))
    with pytest.raises(InputError, match=r"line 2, column 'weight': the value is '1\.234,5'"):
        read(csv(tmp_path, "confidence;correct;weight\n0,5;1;1.234,5\n"))


@pytest.mark.parametrize("size", [1, 9, 1000])
def test_a_line_of_a_pipe_means_the_same_however_it_arrives(size: int) -> None:
    raw = b"id;confidence;correct\n1,5;0,5;1\n2;0.75;1\n3;1;0\n4,5;0,25;0\n"
    blocks = (raw[i : i + size] for i in range(0, len(raw), size))
    found = list(read_batches(blocks, Path("standard input"), ReadOptions()))
    assert [run.number for run in found if isinstance(run, BadLine)] == [3]
    good = [run for run in found if isinstance(run, StreamBatch)]
    assert [c for run in good for c in run.preds.confidence.tolist()] == [0.5, 1.0, 0.25]
    assert [name for run in good for name in run.ids or ()] == ["1,5", "3", "4,5"]


def test_names_keep_their_commas(tmp_path: Path) -> None:
    preds = read(
        csv(
            tmp_path,
            'id;"prob_1,2";"prob_3,4";label;group\n1,5;0,5;0,5;1,2;7,5\n2,5;0,25;0,75;3,4;8\n',
        )
    )
    assert preds.class_names == ("1,2", "3,4")
    assert preds.labels.tolist() == [0, 1]
    assert preds.ids is not None
    assert preds.ids.tolist() == ["1,5", "2,5"]
    assert preds.group is not None
    assert preds.group.tolist() == ["7,5", "8"]
    note = read(csv(tmp_path, "confidence;correct;age\n0,5;1;37,5\n0,5;1;38\n"), attributes=["age"])
    assert note.attributes["age"].tolist() == [37.5, 38.0]


def test_a_log_of_a_spreadsheet(tmp_path: Path) -> None:
    preds = read(csv(tmp_path, "id;grade;confidence_level\n1,5;correct;0,75\n2,5;wrong;0,5\n"))
    assert preds.confidence.tolist() == [0.75, 0.5]
    assert preds.ids is not None
    assert preds.ids.tolist() == ["1,5", "2,5"]
    with pytest.raises(InputError, match="column 'confidence_level' stands there twice"):
        read(csv(tmp_path, "grade,confidence_level,confidence_level\n1,0.9,0.1\n"))


@pytest.mark.parametrize("start", ["prob_", "proba_", "probs_", "probability_", "Proba_"])
def test_columns_of_the_classes_begin_in_several_ways(start: str, tmp_path: Path) -> None:
    text = (
        f",{start}cat,{start}dog,y_true,y_pred,split\n0,0.25,0.75,dog,dog,x\n1,0.5,0.5,dog,cat,x\n"
    )
    preds = read(csv(tmp_path, text))
    assert preds.class_names == ("cat", "dog")
    assert preds.correct.tolist() == [True, False]
    both = read(csv(tmp_path, "prob_0,prob_1,proba_0,proba_1,label\n0.25,0.75,1,0,1\n"))
    assert both.values.tolist() == [[0.25, 0.75]]


def test_answers_in_the_words_of_others(tmp_path: Path) -> None:
    preds = read(csv(tmp_path, "confidence,predicted,ground_truth\n0.5,a,A\n0.75,b,a\n"))
    assert preds.correct.tolist() == [True, False]
    assert read(csv(tmp_path, "y_prob,y_true\n0.5,0\n0.75,1\n")).values[:, 1].tolist() == [
        0.5,
        0.75,
    ]


def test_files_that_are_read_together_count_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}_logits.npy", Z)
        np.save(tmp_path / f"{name}_labels.npy", Y)
    every = sorted(tmp_path.iterdir())
    assert group_files([str(path) for path in every]) == {
        str(tmp_path / f"{name}_labels.npy"): [
            str(tmp_path / f"{name}_{part}.npy") for part in ("labels", "logits")
        ]
        for name in ("a", "b")
    }
    assert read(every).n == sum(part.n for part in scan(every)) == 4
    assert evaluate_files(every).data["n"] == 4


def test_a_file_is_named_once(tmp_path: Path) -> None:
    path = csv(tmp_path, "confidence,correct\n0.9,1\n0.4,0\n")
    (tmp_path / "other.csv").symlink_to(path)
    for names in ([path, path], [path, tmp_path / "other.csv"], [path, tmp_path / "." / "a.csv"]):
        with pytest.raises(InputError, match=r"is given twice; its rows would count twice"):
            read(names)
        with pytest.raises(InputError, match=r"is given twice"):
            list(scan(names))
