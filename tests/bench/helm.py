"""A Helm chart that renders to what gpustack rendered, to have `helm template` beside our own figures.

The chart is made of a cluster's own manifests: as many objects of the same size. Names of images, the namespace and the
header go through values and built-in objects, as in any chart, so that the templates are templates.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

_IMAGE = re.compile(r"^(\s*(?:- )?image: )(\S+)$", re.MULTILINE)
_NAMESPACE = re.compile(r"^(\s*namespace: )\S+$", re.MULTILINE)


def write_chart(chart: Path, cluster: Path) -> int:
    """Write a chart into the folder CHART that renders what is in the folder CLUSTER of dist/; returns the objects."""
    templates = chart / "templates"
    templates.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: stack\nversion: 1.0.0\n", "utf-8")
    images: dict[str, str] = {}
    count = 0
    for path in sorted(cluster.glob("*/*.yaml")):
        text = path.read_text("utf-8").replace("{{", "{{ `{{` }}")

        def value(match: re.Match[str]) -> str:
            key = images.setdefault(match[2], f"image{len(images)}")
            return f"{match[1]}{{{{ .Values.images.{key} }}}}"

        text = _NAMESPACE.sub(r"\1{{ .Release.Namespace }}", _IMAGE.sub(value, text))
        (templates / f"{path.parent.name}-{path.name}").write_text(text, "utf-8")
        count += 1
    values = {"images": {key: image.strip('"') for image, key in images.items()}}
    (chart / "values.yaml").write_text(json.dumps(values), "utf-8")
    return count
