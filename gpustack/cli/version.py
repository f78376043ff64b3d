"""gpustack version: what is installed, and what it knows."""

import argparse
import platform

from .. import __version__


def run(options: argparse.Namespace) -> int:
    from ..catalog import kubernetes, releases

    if options.lock:
        from ..compiler.cache import own_digest

        print(f'- version: "{__version__}"\n  sha256: {own_digest()}')
        return 0
    print(f"gpustack {__version__} (Python {platform.python_version()})")
    print(f"GPU stack releases: {', '.join(releases.names())}")
    print(f"Kubernetes: {kubernetes.MINORS[0]} to {kubernetes.MINORS[-1]}")
    return 0
