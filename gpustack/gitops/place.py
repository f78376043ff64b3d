"""The engines: what they are called, where their objects are below dist/, what they read elsewhere. Imports nothing:
whoever looks for a file asks here.
"""

from __future__ import annotations

NAMES = {"argocd": "Argo CD", "flux": "Flux"}
"""Engines by what people call them."""

ENGINES = tuple(NAMES)

ANNOTATIONS = {"argocd": "argocd.argoproj.io/", "flux": "kustomize.toolkit.fluxcd.io/"}
"""What the annotations that an engine reads begin with."""

FOLDER = ".gitops"
"""No cluster can be called so, and no engine syncs it along with a cluster."""
