"""Frozen values: set once, shown, compared and replaced as dataclasses are."""

import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from functools import cached_property

import pytest

from howsure._core.frozen import frozen


@frozen
class Place:
    """Where."""

    row: int
    names: tuple[str, ...] = ()
    kept: list[int] = field(default_factory=list[int], repr=False)

    def __post_init__(self) -> None:
        if self.row < 0:
            raise ValueError("row")

    @cached_property
    def twice(self) -> int:
        return 2 * self.row


@dataclass(frozen=True)
class Usual:
    """The same by the standard library."""

    row: int
    names: tuple[str, ...] = ()


@frozen(eq=False)
class Alone:
    """Compared by identity, with an `__init__` and a `__repr__` of its own."""

    x: int

    def __init__(self, x: float) -> None:
        object.__setattr__(self, "x", int(x))

    def __repr__(self) -> str:
        return "alone"


def test_it_behaves_as_a_dataclass_does() -> None:
    p = Place(1, names=("a",))
    assert repr(p) == repr(Usual(1, ("a",))).replace("Usual", "Place")
    assert [f.name for f in fields(p)] == ["row", "names", "kept"]
    assert asdict(replace(p, row=2)) == {"row": 2, "names": ("a",), "kept": []}
    assert Place.__match_args__ == ("row", "names", "kept")
    assert p.twice == 2
    assert p.kept is not Place(1).kept
    assert pickle.loads(pickle.dumps(p)) == p
    with pytest.raises(ValueError, match="row"):
        Place(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'row'"):
        Place()  # pyright: ignore[reportCallIssue]


def test_values_are_compared_and_hashed_by_their_fields() -> None:
    assert Place(1) == Place(1) != Place(2)
    assert Place(1) != Usual(1)
    assert hash(Usual(1, ("a",))) == hash((1, ("a",)))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place(1))  # as its list is
    assert Alone(1) != Alone(1)
    assert len({Alone(1), Alone(1)}) == 2
    assert repr(Alone(1.5)) == "alone"
    assert Alone(1.5).x == 1


@pytest.mark.parametrize("name", ["row", "kept", "other"])
def test_nothing_is_set_or_deleted_afterwards(name: str) -> None:
    p = Place(1)
    with pytest.raises(FrozenInstanceError, match=name):
        setattr(p, name, 3)
    with pytest.raises(FrozenInstanceError, match=name):
        delattr(p, name)
    assert p == Place(1)
