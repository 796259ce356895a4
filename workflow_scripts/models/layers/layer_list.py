"""nn.ModuleList whose type says of which class the layers are."""

from typing import TYPE_CHECKING, Generic, TypeVar

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Layer = TypeVar("Layer", bound=nn.Module)

    class LayerList(nn.ModuleList, Generic[Layer]):
        """nn.ModuleList of layers of one class, as type checkers see it."""

        def __init__(self, layers: Iterable[Layer] = ()) -> None: ...

        def __iter__(self) -> Iterator[Layer]: ...
else:
    LayerList = nn.ModuleList
