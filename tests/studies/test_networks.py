"""Sizes and shapes of the original papers."""

import pytest

torch = pytest.importorskip("torch")

from studies.networks import build, multiply_adds, parameters  # noqa: E402


def shapes_only(name, classes, channels):
    """On the meta device, where big networks cost nothing."""
    with torch.device("meta"):
        return build(name, classes=classes, channels=channels)


@pytest.mark.parametrize(
    ("name", "millions"),
    [  # He 2016, table 6
        ("resnet-20", 0.27), ("resnet-32", 0.46), ("resnet-44", 0.66), ("resnet-56", 0.85), ("resnet-110", 1.7),
        # Huang 2017, table 2
        ("densenet-40", 1.0), ("densenet-100", 7.0), ("densenet-bc-100", 0.8),
        # Zagoruyko & Komodakis 2016, tables 3 and 4
        ("wrn-28-10", 36.5), ("wrn-16-8", 11.0), ("wrn-40-4", 8.9), ("wrn-40-2", 2.2), ("wrn-40-1", 0.6),
    ],
)  # fmt: skip
def test_parameters_on_cifar_are_those_of_the_papers(name, millions):
    digits = len(str(millions).split(".")[1])
    count = parameters(shapes_only(name, 10, 3)) / 1e6
    assert count == pytest.approx(millions, abs=0.51 * 10**-digits)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("resnet-18", 11_689_512),
        ("resnet-101", 44_549_160),
        ("densenet-121", 7_978_856),
        ("densenet-169", 14_149_480),
    ],
)
def test_parameters_on_imagenet_are_those_of_the_reference_models(name, count):
    assert parameters(shapes_only(name, 1000, 3)) == count


def test_unet_of_width_64_has_31_million_parameters_plus_its_batch_norms():
    network = shapes_only("unet-64", 2, 1)
    norms = sum(parameters(m) for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d))
    assert parameters(network) - norms == 31_030_658


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("resnet-20", [(16, 32), (32, 16), (64, 8)]),
        ("wrn-16-4", [(64, 32), (128, 16), (256, 8)]),
    ],
)
def test_feature_maps_have_the_papers_widths_and_sides(name, stages):
    network = build(name, classes=10, channels=3)
    seen = []
    for module in network.modules():
        if type(module).__name__ == "Block":
            module.register_forward_hook(
                lambda _m, _i, out: seen.append((out.shape[1], out.shape[2]))
            )
    network(torch.zeros(2, 3, 32, 32))
    assert list(dict.fromkeys(seen)) == stages


def test_densenet_40_ends_with_448_channels():
    assert shapes_only("densenet-40", 10, 3).last.in_features == 16 + 36 * 12


def test_multiply_adds_of_resnets():
    """He 2016, table 1, gives 1.8e9 for ResNet-18; ResNet-20 has 41 million."""
    assert multiply_adds(shapes_only("resnet-18", 1000, 3), 3, 224, 224) == pytest.approx(
        1.8e9, rel=0.02
    )
    assert multiply_adds(shapes_only("resnet-20", 10, 3), 3, 32, 32) == 40_551_040


@pytest.mark.parametrize(
    "name", ["cnn", "resnet-8", "densenet-10", "densenet-bc-16", "wrn-10-1", "resnet-18"]
)
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28)])
def test_one_output_per_class(name, shape):
    network = build(name, classes=7, channels=shape[0], dropout=0.5)
    assert network(torch.zeros(2, *shape)).shape == (2, 7)


def test_unet_keeps_the_image_size():
    assert build("unet-2", classes=2, channels=1)(torch.zeros(1, 1, 32, 48)).shape == (1, 2, 32, 48)


def test_unet_output_depends_on_every_level():
    """A skip that is lost would leave its weights without gradient."""
    network = build("unet-2", classes=2, channels=1)
    network(torch.randn(2, 1, 32, 32)).square().sum().backward()
    assert all(
        p.grad is not None and p.grad.abs().sum() > 0
        for n, p in network.named_parameters()
        if "weight" in n
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet-21", "6n\\+2"),
        ("densenet-41", "3n\\+4"),
        ("wrn-17-2", "6n\\+4"),
        ("vgg-16", "unknown"),
        ("wrn-16", "unknown"),
    ],
)
def test_an_impossible_network_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        build(name, classes=10, channels=3)
