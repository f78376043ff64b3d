"""What all tests share: cdk8s runs on the Node that the product would choose."""

from __future__ import annotations

import os

from gpustack.compiler import node

node.configure(os.environ)
