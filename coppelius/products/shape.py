"""The products that the model launches: C (m x n) = A B, or A B + R, each operand read as it is stored.

A as rows is m x k, as columns k x m; B as rows is n x k, as columns k x n.  Three patterns: the forward's X W^T (rr), a
data gradient's dY W (rc), a weight gradient's dY^T X (cc).  The sizes are the model's: sequence 1024, width 512,
query/key/value 1536, feed-forward 1408, vocabulary 12288.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """`layouts`: r (rows) or c (columns), A's first; residual: R is added."""

    layouts: str
    m: int
    n: int
    k: int
    residual: bool = False

    @property
    def identity(self) -> str:
        """The image's name."""
        return f"tiled-{self.layouts}-m{self.m}-n{self.n}-k{self.k}{'-add' if self.residual else ''}"

    @property
    def a_columns(self) -> bool:
        """Whether A is stored k x m."""
        return self.layouts[0] == "c"

    @property
    def b_columns(self) -> bool:
        """Whether B is stored k x n."""
        return self.layouts[1] == "c"


# in the order in which they are placed (specified)
PRODUCTS = (
    Product("rr", 1024, 1536, 512),
    Product("rr", 1024, 512, 512, residual=True),
    Product("rr", 1024, 1408, 512),
    Product("rr", 1024, 512, 1408, residual=True),
    Product("rr", 1024, 12288, 512),
    Product("rc", 1024, 512, 1536),
    Product("rc", 1024, 512, 512),
    Product("rc", 1024, 512, 1408),
    Product("rc", 1024, 512, 1408, residual=True),
    Product("rc", 1024, 1408, 512),
    Product("rc", 1024, 512, 12288),
    Product("cc", 1536, 512, 1024),
    Product("cc", 512, 512, 1024),
    Product("cc", 1408, 512, 1024),
    Product("cc", 512, 1408, 1024),
    Product("cc", 12288, 512, 1024),
)
