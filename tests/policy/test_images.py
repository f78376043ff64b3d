"""Images that are named whole, and mirrors."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from gpustack.model import Path
from gpustack.policy.language import images
from gpustack.policy.language.base import Section
from gpustack.policy.language.operand import ImageSource
from gpustack.policy.language.spec import PolicySpec
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Merged, Part

WHOLE = "registry.example/mine/program:1"
DIGEST = f"registry.example/mine/program@sha256:{'a' * 64}"


def sections(model: type[Section], path: Path = ()) -> Iterator[Path]:
    """The paths of sections below MODEL that name an image, less those in lists."""
    for name, field in model.model_fields.items():
        options = typing.get_args(field.annotation) or (field.annotation,)
        is_section = not isinstance(field.annotation, types.GenericAlias)
        for option in options if is_section else ():
            if isinstance(option, type) and issubclass(option, Section):
                if issubclass(option, ImageSource):
                    yield (*path, name)
                yield from sections(option, (*path, name))


def merged(*specs: dict[str, Any]) -> Merged:
    """The effective spec of layers and, last, a policy that say SPECS."""
    base = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}}
    *lower, own = (Part("layer", f"{index}.yaml", spec) for index, spec in enumerate([base, *specs]))
    found, findings = assemble([*lower, Part("policy", "policy.yaml", own.data)])
    assert not findings
    return found


def below(path: str, value: Any) -> dict[str, Any]:
    """A spec with VALUE at PATH."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return typing.cast(dict[str, Any], value)


def at(spec: dict[str, Any], path: str) -> dict[str, Any]:
    """What stands at PATH of SPEC."""
    for step in path.split("."):
        spec = spec[step]
    return spec


def test_every_section_with_an_image_is_listed() -> None:
    """No section of the language is forgotten."""
    assert {".".join(str(step) for step in path) for path in sections(PolicySpec)} == set(images.SECTIONS)


@pytest.mark.parametrize("reference", [WHOLE, DIGEST])
@pytest.mark.parametrize("section", images.SECTIONS)
def test_a_whole_reference_takes_the_place_of_the_releases(section: str, reference: str) -> None:
    """Repository and version of the release are of another image, so they make way; who did that can be told."""
    found = merged(below(section, {"image": reference}))
    image = at(found.spec, section)
    assert images.composed(image.get("repository"), image["image"], image.get("version")) == reference
    origin = found.origin((*section.split("."), "version"))
    assert origin is not None
    assert (origin.kind, origin.file) == ("derived", f"derived from spec.{section}.image")


def test_it_may_stand_in_a_layer() -> None:
    """Who names the image does not matter."""
    assert merged({"toolkit": {"image": WHOLE}}, {}).spec["toolkit"]["repository"] == ""


@pytest.mark.parametrize(
    "section",
    [
        {"image": "container-toolkit"},
        {"image": "nvidia/container-toolkit"},
        {"image": "registry.example/container-toolkit"},
        {"image": "localhost:5000/container-toolkit"},
        {"image": "container-toolkit:v1"},
    ],
)
def test_what_is_not_whole_changes_nothing(section: dict[str, str]) -> None:
    """A name without path, or without tag and digest, is no whole reference."""
    found = merged({"toolkit": section}).spec["toolkit"]
    assert (found["repository"], found["version"]) == ("nvcr.io/nvidia/k8s", "v1.20.0")  # data/releases


def test_what_a_person_wrote_stays() -> None:
    """A version beside it, or a repository in another file, is not overruled: the two contradict each other."""
    assert merged({"toolkit": {"image": WHOLE, "version": "v2"}}).spec["toolkit"]["version"] == "v2"
    found = merged({"toolkit": {"repository": "mirror.example"}}, {"toolkit": {"image": WHOLE}}).spec["toolkit"]
    assert (found["repository"], found["version"]) == ("mirror.example", "v1.20.0")


def test_the_sections_beside_a_gpu_cluster() -> None:
    """A gpuCluster takes over the image of the section beside it whole, and its own wins over that section's parts."""
    taken = merged({"dcgm": {"image": WHOLE}, "gpuCluster": {}}).spec["gpuCluster"]["dcgm"]
    assert (taken["repository"], taken["image"], taken["version"]) == ("", WHOLE, "")
    parts = {"repository": "mirror.example", "version": "9"}
    own = merged({"dcgm": parts, "gpuCluster": {"dcgm": {"image": WHOLE}}}).spec["gpuCluster"]["dcgm"]
    assert (own["repository"], own["image"], own["version"]) == ("", WHOLE, "")


def test_maps_of_the_users_are_no_sections() -> None:
    """An annotation that is called image is none."""
    found = merged({"daemonsets": {"annotations": {"image": WHOLE}}}).spec["daemonsets"]
    assert found["annotations"] == {"image": WHOLE}


@pytest.mark.parametrize(
    ("prefix", "reference", "covered"),
    [
        ("nvcr.io", "nvcr.io/nvidia/driver:1", True),
        ("nvcr.io/nvidia/", "nvcr.io/nvidia/driver:1", True),
        ("nvcr.io/nvidia/driver", "nvcr.io/nvidia/driver:1", True),
        ("nvcr.io/nvidia/driver", f"nvcr.io/nvidia/driver@sha256:{'a' * 64}", True),
        ("nvcr.io/nvidia/driver", "nvcr.io/nvidia/driver", True),
        ("nvcr.io/nvidia/driver", "nvcr.io/nvidia/driver-manager:1", False),
        ("nvcr.io/nvid", "nvcr.io/nvidia/driver:1", False),
        ("localhost", "localhost:5000/driver:1", False),
    ],
)
def test_prefixes_end_at_whole_segments(prefix: str, reference: str, covered: bool) -> None:
    """An entry covers its registry and path, or the image that it names, and no other that merely begins so."""
    assert images.covers(prefix, reference) is covered


def test_an_image_has_a_mirror_of_its_own() -> None:
    """An entry that names an image itself moves that image, with its tag, and wins over the one for its registry."""
    mirrors = {"nvcr.io": "m/a", "nvcr.io/nvidia/driver": "m/own/gpu-driver"}
    assert images.mirrored("nvcr.io/nvidia/driver:580-ubuntu22.04", mirrors) == "m/own/gpu-driver:580-ubuntu22.04"
    assert images.mirrored("nvcr.io/nvidia/driver-x:1", mirrors) == "m/a/nvidia/driver-x:1"


def test_prefixes_of_references() -> None:
    """What an entry could have been: every start of a reference, the image included, tags and digests not."""
    assert images.prefixes(["a.io/b/c:1", f"a.io/d@sha256:{'a' * 64}", "e"]) == [
        "a.io",
        "e",
        "a.io/b",
        "a.io/d",
        "a.io/b/c",
    ]


def test_pins() -> None:
    """A digest goes behind the tag of the very reference; one that has a digest already keeps that."""
    digests = {"r.example.com/a:1": "sha256:" + "1" * 64}
    assert images.pinned("r.example.com/a:1", digests) == "r.example.com/a:1@sha256:" + "1" * 64
    assert images.pinned("r.example.com/a:2", digests) == "r.example.com/a:2"
    assert images.pinned("r.example.com/a:1@sha256:" + "2" * 64, digests).endswith("2" * 64)
    assert images.tag_of("localhost:5000/a") == ""
    assert images.repository("localhost:5000/a:1@sha256:" + "2" * 64) == "localhost:5000/a"
