"""The types of text and numbers that land in manifests: names, labels, images, quantities, durations, paths.

A form in capitals is the rule, the type of the same name is the annotation for a field.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from gpustack.catalog import nfd
from gpustack.model import ANNOTATIONS_LIMIT, INT32, INT64, annotations_size

from ...text.quantities import too_long, too_much
from .forms import Form, Number, absent, refuse

_DNS = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS}(?:\.{_DNS})*"
_LABEL_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_HOST = r"[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_IMAGE_PATH = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}"
_LETTERS = "lower-case letters, digits and '-', with a letter or digit at both ends"

# Kubernetes names (apimachinery's validation rules)
DNS_LABEL = Form("dns_label", "DNS label", _LETTERS, _DNS, 63)
DNS_SUBDOMAIN = Form("dns_subdomain", "object name", f"{_LETTERS}, in parts joined by dots", _SUBDOMAIN, 253)
CLUSTER_NAME = Form(
    "cluster_name", "cluster name", f"it names a folder, so {_LETTERS}, in parts joined by dots", _SUBDOMAIN, 63
)
LABEL_KEY = Form(
    "label_key",
    "label or annotation key",
    "an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' and '.', a letter or digit at both ends",
    rf"(?:{_SUBDOMAIN}/)?{_LABEL_NAME}",
    317,
)
LABEL_VALUE = Form(
    "label_value",
    "label value",
    "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    _LABEL_NAME,
    63,
)
KERNEL = Form(
    "kernel",
    "kernel release",
    "what `uname -r` prints: one word with a letter or digit in it",
    r"[!-~]*[A-Za-z0-9][!-~]*",
    63,
)
ENV_NAME = Form(
    "env_name",
    "environment variable name",
    "letters, digits, '_', '-' and '.', no digit first",
    r"[-._A-Za-z][-._A-Za-z0-9]*",
)
CONFIG_KEY = Form(
    "config_key",
    "ConfigMap key",
    "letters, digits, '-', '_' and '.', not '.' alone and no '..' at the start",
    r"(?!\.$|\.\.)[-._A-Za-z0-9]+",
    253,
)
KIND = Form("kind", "kind", "a capital letter, then letters and digits", r"[A-Z][A-Za-z0-9]*", 63)

# Images
REPOSITORY = Form(
    "image_repository",
    "image repository",
    "a registry host and a lower-case path such as nvcr.io/nvidia, without scheme, tag or '/' at the end",
    rf"{_HOST}(?:/{_IMAGE_PATH})*",
    255,
    empty=True,
    hints=(
        (r"^[a-z+]+://", "leave out the scheme"),
        (r"/$", "leave out the '/' at the end"),
        (r"/[^/]*[A-Z]", "paths are lower-case"),
    ),
)
IMAGE = Form(
    "image_name",
    "image name",
    "a lower-case name such as driver or, without repository and version beside it, a whole reference",
    rf"(?:{_HOST}/)?{_IMAGE_PATH}(?:/{_IMAGE_PATH})*(?::{_TAG})?(?:@{_DIGEST})?",
    512,
    empty=True,
    hints=((r"^[a-z+]+://", "leave out the scheme"),),
)
TAGGED_IMAGE = Form(
    "image_reference",
    "image reference",
    "a lower-case reference such as registry.example.com/tools/cuda:13.0, with a tag or a digest",
    rf"(?:{_HOST}/)?{_IMAGE_PATH}(?:/{_IMAGE_PATH})*(?::{_TAG}(?:@{_DIGEST})?|@{_DIGEST})",
    512,
    hints=(*IMAGE.hints, (r"^[^:@]*(?::\d+/[^:@]*)?$", "put a tag or a digest behind it: without, :latest is pulled")),
)
DIGEST = Form(
    "image_digest",
    "image digest",
    "sha256: and 64 hex digits",
    _DIGEST,
    hints=((r"^[0-9a-f]{64}$", "put sha256: before it"), (r"@", "write the digest alone: sha256:...")),
)
IMAGE_TAG = Form(
    "image_tag",
    "image version",
    "a tag (letters, digits, '_', '.' and '-', 128 characters at most) or a digest (sha256: and 64 hex digits)",
    rf"{_TAG}|{_DIGEST}",
    empty=True,
    hints=(
        (r"^:", "leave out the ':'"),
        (r"@", "write the digest alone: sha256:..."),
        (r"^sha256:", "a digest has 64 hex digits"),
    ),
)

# Numbers with units
QUANTITY = Form(
    "quantity",
    "quantity",
    "a number with an optional unit, such as 500m, 2 or 1Gi",
    r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?",
    hints=(
        (r"(?i)^[0-9.]+ *[kmgtpe]i?b$", "leave out the B: 1Gi is 1073741824 bytes, 1G is 1000000000"),
        (r"\s", "leave out the space"),
        (r"^-", "a quantity is not negative"),
    ),
    too_much=too_much,
)
DURATION = Form(
    "duration",
    "duration",
    "numbers with units y, w, d, h, m, s, ms in this order, such as 15s or 1m30s",
    r"(?=.)(?:0|(?:[0-9]+y)?(?:[0-9]+w)?(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?(?:[0-9]+ms)?)",
    empty=True,
    hints=(
        (r"^[0-9]+$", "add the unit: 15s"),
        (r"(?i)sec|min", "seconds are s, minutes m"),
        (r"\.", "no fractions: 1500ms"),
    ),
    too_much=too_long,
)
PERCENT = Form(
    "int_or_percent",
    "number or percentage",
    "a number without quotes, such as 2, or a percentage from 0% to 100%",
    r"(?:100|[1-9]?[0-9])%",
    hints=((r"^[0-9]+$", "leave out the quotes"),),
)
NODES_TEXT = Form(
    "nodes_text",
    "number of nodes as text",
    'a number in quotes or a percentage, from 1 up, such as "1" or 10%',
    r"[1-9][0-9]{0,8}|(?:100|[1-9][0-9]?)%",
    empty=True,
    hints=(
        (r"^0", '0 would block every roll-out; for one at a time write "1"'),
        (r"^[0-9]{10,}$", "write a number of nodes that a cluster can have"),
    ),
)
TIME_OF_DAY = Form(
    "time_of_day", "time of day", "hours and minutes, 00:00 to 23:59", r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
)
TIME_ZONE = Form(
    "time_zone", "time zone", "a name such as Europe/Berlin or UTC", r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*", 64
)


def day(text: str) -> str:
    """TEXT if it is a day of the calendar."""
    try:
        if datetime.date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise refuse("day", f"{text!r} is not a day: year, month and day, such as 2027-03-31")


# Versions and platforms
RELEASE = Form(
    "release",
    "operator release",
    "such as v26.7.0",
    r"v[0-9]+\.[0-9]+(?:\.[0-9]+)?",
    63,
    hints=((r"^[0-9]", "put a v before it"),),
)
KUBERNETES_VERSION = Form(
    "kubernetes_version",
    "Kubernetes version",
    "such as 1.34, 1.34.1 or v1.33.1+k3s1",
    r"v?1\.[0-9]+(?:\.[0-9]+)?(?:[-+][0-9A-Za-z.+_-]+)?",
    63,
)
OPENSHIFT_VERSION = Form(
    "openshift_version",
    "OpenShift version",
    "such as 4.18 or 4.18.1",
    r"4\.[0-9]+(?:\.[0-9]+)?(?:-[0-9A-Za-z.-]+)?",
    63,
)
CUDA_VERSION = Form(
    "cuda_version",
    "CUDA version",
    "major and minor version in quotes, such as 13.0 or 12.8",
    r"[1-9][0-9]?\.[0-9]{1,2}",
    hints=((r"^[0-9]+$", "write the minor version too, such as 13.0"), (r"\..*\.", "leave out the patch: 12.8")),
)
RUNTIME = Form(
    "container_runtime",
    "container runtime",
    "containerd, cri-o or docker, with or without the version as a node reports it: containerd://1.7.27",
    r"(?:containerd|cri-o|crio|docker)(?:://[0-9A-Za-z.+~_-]*)?",
    253,
)
OSTREE_VERSION = Form(
    "ostree_version",
    "version of RHCOS",
    "lower-case letters, digits, '-' and '.', as in the label feature.node.kubernetes.io/system-os_release."
    "OSTREE_VERSION: 418.94.202501221327-0; names of objects end in it",
    _SUBDOMAIN,
    32,
)
OS = Form(
    "os",
    "operating system",
    "ID and VERSION_ID of /etc/os-release in one word, such as ubuntu22.04 or rhel9.4",
    r"[a-z][a-z0-9._-]*[a-z0-9]",
    63,
)
MIG_PROFILE = Form(
    "mig_profile",
    "MIG profile",
    "such as 1g.10gb, 1g.10gb+me or 1c.3g.40gb",
    r"(?:[1-8]c\.)?[1-8]g\.[1-9][0-9]{0,8}gb(?:\+(?:me\.all|me|gfx)(?:,(?:me\.all|me|gfx))*|-me)?",
    hints=(
        (r"^mig-", "leave out mig-"),
        (r"^all-", "all-... is the name of a configuration: mig: {config: ...}"),
        (r"[A-Z]", "profiles are lower-case"),
    ),
)

# Places
HOST_PATH = Form(
    "host_path",
    "absolute path",
    "it starts with '/', has no '..' and no ':'",
    r"/(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f:]*",
    4096,
    hints=((r"^~|^\$", "write the path out: there is no home and no variable here"), (r"^[^/]", "start with '/'")),
)
PROXY_URL = Form(
    "proxy_url",
    "proxy address",
    "http:// or https://, host and port, no user and no password: what is rendered is committed to Git",
    r"https?://[^\s/@\x00]+/?",
    empty=True,
    hints=(
        (
            r"@",
            "leave user and password out; the driver takes HTTP_PROXY and HTTPS_PROXY from a Secret: driver.secretEnv",
        ),
    ),
)

# Texts without a form
TEXT = Form(
    "text",
    "text that a container can be given",
    "NUL ends every text of a process",
    r"[^\x00]*",
    1024 * 1024,
    empty=True,
    hints=((r"\x00", "leave out the NUL"),),
)

DnsLabel = Annotated[str, DNS_LABEL]
DnsSubdomain = Annotated[str, DNS_SUBDOMAIN]
ObjectName = Annotated[str, DNS_SUBDOMAIN.or_empty()]
"""The name of an object that a field points at, or "" for none."""
ClusterName = Annotated[str, CLUSTER_NAME]
LabelKey = Annotated[str, LABEL_KEY]
TaintKey = Annotated[str, LABEL_KEY.or_empty()]
"""A label key, or "" for every taint."""
LabelValue = Annotated[str, LABEL_VALUE.or_empty()]
NodeText = Annotated[str, LABEL_VALUE]
"""What a node carries as a label value and a policy names: a kernel, a GPU product, a configuration."""
Kernel = Annotated[str, KERNEL, AfterValidator(nfd.kernel)]
"""A kernel release, as `uname -r` prints it (6.12.46+); its value is what node feature discovery makes of that."""
EnvName = Annotated[str, ENV_NAME]
ConfigKey = Annotated[str, CONFIG_KEY]
Kind = Annotated[str, KIND]
ImageRepository = Annotated[str, REPOSITORY]
RegistryPath = Annotated[str, dataclasses.replace(REPOSITORY, empty=False)]
ImageName = Annotated[str, IMAGE]
ImageTagOrDigest = Annotated[str, IMAGE_TAG]
Digest = Annotated[str, DIGEST]
ImageReference = Annotated[str, TAGGED_IMAGE]
Text = Annotated[str, TEXT]
"""Any text that a process, a file or the API can hold."""
Quantity = Annotated[int | str, Number(QUANTITY, INT64)]
IntOrPercent = Annotated[int | str, Number(PERCENT)]
NodesText = Annotated[str, NODES_TEXT]
Duration = Annotated[str, DURATION]
TimeOfDay = Annotated[str, TIME_OF_DAY]
TimeZone = Annotated[str, TIME_ZONE]
Day = Annotated[str, AfterValidator(day)]
"""A day of the calendar, such as 2027-03-31."""
Release = Annotated[str, RELEASE]
KubernetesVersion = Annotated[str, KUBERNETES_VERSION]
OpenShiftVersion = Annotated[str, OPENSHIFT_VERSION]
CudaVersion = Annotated[str, CUDA_VERSION]
ContainerRuntime = Annotated[str, RUNTIME]
OperatingSystem = Annotated[str, OS]
OstreeVersion = Annotated[str, OSTREE_VERSION]
MigProfile = Annotated[str, MIG_PROFILE]
HostPath = Annotated[str, HOST_PATH.or_empty()]
"""An absolute path on the node, or "" for the default."""
ProxyUrl = Annotated[str, PROXY_URL]

AtLeast0 = Annotated[int, Field(ge=0, le=INT32)]
AtLeast1 = Annotated[int, Field(ge=1, le=INT32)]
"""Numbers of the API have 32 bits; users and groups, which have 64, are held to 31 by the API server."""
Port = Annotated[int, Field(ge=1, le=65535)]

_no_nulls = BeforeValidator(absent)


def _not_too_large(annotations: dict[str, str]) -> dict[str, str]:
    size = annotations_size(annotations)
    if size > ANNOTATIONS_LIMIT:
        what = f"annotations of {size} bytes; the API server takes {ANNOTATIONS_LIMIT} in all"
        raise refuse("annotations", what, "leave out what is long, or put it into a ConfigMap")
    return annotations


Labels = Annotated[dict[LabelKey, LabelValue], _no_nulls]
Annotations = Annotated[dict[LabelKey, str], _no_nulls, AfterValidator(_not_too_large)]
Quantities = Annotated[dict[LabelKey, Quantity], _no_nulls]
ConfigData = Annotated[dict[ConfigKey, str], _no_nulls]
"""Keys of a ConfigMap and the text below each."""
RegistryMap = Annotated[dict[RegistryPath, RegistryPath], _no_nulls]
ImageDigests = Annotated[dict[ImageReference, Digest], _no_nulls]
