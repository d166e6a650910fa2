"""Thumbnails: bytes by hand, and as part of a report."""

import base64
import zlib

import numpy as np
import pytest

from howsure import InputError, Predictions, evaluate
from howsure.report.masks import THUMBNAIL_PIXELS, draw_thumbnail, encode_png


def test_a_picture_by_hand() -> None:
    data = encode_png(np.array([[0, 255], [128, 1]], dtype=np.uint8))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[16:24] == (2).to_bytes(4, "big") * 2
    start = data.index(b"IDAT") + 4
    assert zlib.decompressobj().decompress(data[start:]) == bytes([0, 0, 255, 0, 128, 1])


def test_large_pictures_are_thinned() -> None:
    data = base64.b64decode(draw_thumbnail(np.zeros((300, 100, 3))).split(",")[1])
    height = int.from_bytes(data[20:24], "big")
    assert 16 < height <= THUMBNAIL_PIXELS


@pytest.mark.parametrize(
    "image", [np.zeros((2, 2, 4)), np.zeros(3), np.full((2, 2), 7.0), np.zeros((2, 2), dtype=int)]
)
def test_what_is_no_picture_is_refused(image: object) -> None:
    with pytest.raises(InputError, match="needed"):
        draw_thumbnail(image)


def test_likely_label_errors_get_their_picture() -> None:
    p = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], [0, 0, 1])
    images = np.zeros((3, 4, 4), dtype=np.uint8)
    report = evaluate(p, ["max_prob"], images=images)
    assert report.data["views"]["label_errors"][0]["image"] == draw_thumbnail(images[1])
    assert report.to_html().count('<img class="thumb"') == 2
    with pytest.raises(InputError, match="2 pictures for 3 samples"):
        evaluate(p, ["max_prob"], images=images[:2])


def test_before_calibration_is_drawn_beside() -> None:
    p = Predictions.from_logits(
        [[2.0, 0.0, 1.0], [0.0, 3.0, 1.0], [1.0, 0.5, 0.0]] * 10, [0, 1, 1] * 10
    )
    softer = Predictions.from_logits(p.logits[0] / 2, p.labels)
    report = evaluate(softer, ["max_prob"], before=p)
    assert '<path class="line before"' in report.to_html()
    assert report.data["curves"]["rejection_before"]["x"] != report.data["curves"]["rejection"]["x"]
