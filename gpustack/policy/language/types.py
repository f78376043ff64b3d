"""The types of text and numbers that land in manifests: names, labels, images, quantities, durations, paths.

A form in capitals is the rule (forms.yaml), the type of the same name is the annotation for a field.
"""

import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from gpustack.catalog import nfd
from gpustack.model import ANNOTATIONS_LIMIT, INT32, INT64, annotations_size

from ...text.quantities import too_long, too_much
from .forms import Number, absent, form, refuse_as

DNS_LABEL = form("dns_label")
DNS_SUBDOMAIN = form("dns_subdomain")
LABEL_KEY = form("label_key")
LABEL_VALUE = form("label_value")
ENV_NAME = form("env_name")
CONFIG_KEY = form("config_key")
KIND = form("kind")
REPOSITORY = form("image_repository")
IMAGE = form("image_name")
IMAGE_TAG = form("image_tag")
QUANTITY = form("quantity", too_much=too_much)
HOST_PATH = form("host_path")


def day(text: str) -> str:
    """TEXT if it is a day of the calendar."""
    try:
        if datetime.date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise refuse_as("day", "none", text=repr(text))


DnsLabel = Annotated[str, DNS_LABEL]
DnsSubdomain = Annotated[str, DNS_SUBDOMAIN]
ObjectName = Annotated[str, DNS_SUBDOMAIN.or_empty()]
"""The name of an object that a field points at, or "" for none."""
LabelKey = Annotated[str, LABEL_KEY]
TaintKey = Annotated[str, LABEL_KEY.or_empty()]
"""A label key, or "" for every taint."""
LabelValue = Annotated[str, LABEL_VALUE.or_empty()]
NodeText = Annotated[str, LABEL_VALUE]
"""What a node carries as a label value and a policy names: a kernel, a GPU product, a configuration."""
Kernel = Annotated[str, form("kernel"), AfterValidator(nfd.kernel)]
"""A kernel release, as `uname -r` prints it (6.12.46+); its value is what node feature discovery makes of that."""
ConfigKey = Annotated[str, CONFIG_KEY]
Kind = Annotated[str, KIND]
ImageRepository = Annotated[str, REPOSITORY]
ImageName = Annotated[str, IMAGE]
ImageTagOrDigest = Annotated[str, IMAGE_TAG]
Digest = Annotated[str, form("image_digest")]
ImageReference = Annotated[str, form("image_reference")]
Text = Annotated[str, form("text")]
"""Any text that a process, a file or the API can hold."""
Quantity = Annotated[int | str, Number(QUANTITY, INT64)]
IntOrPercent = Annotated[int | str, Number(form("int_or_percent"))]
Duration = Annotated[str, form("duration", too_much=too_long)]
Moment = Annotated[str, form("moment")]
TimeZone = Annotated[str, form("time_zone")]
Day = Annotated[str, AfterValidator(day)]
"""A day of the calendar, such as 2027-03-31."""
Release = Annotated[str, form("release")]
KubernetesVersion = Annotated[str, form("kubernetes_version")]
ContainerRuntime = Annotated[str, form("container_runtime")]
OperatingSystem = Annotated[str, form("os")]
OstreeVersion = Annotated[str, form("ostree_version")]
MigProfile = Annotated[str, form("mig_profile")]
HostPath = Annotated[str, HOST_PATH.or_empty()]
"""An absolute path on the node, or "" for the default."""
ProxyUrl = Annotated[str, form("proxy_url")]

AtLeast0 = Annotated[int, Field(ge=0, le=INT32)]
AtLeast1 = Annotated[int, Field(ge=1, le=INT32)]
"""Numbers of the API have 32 bits; users and groups, which have 64, are held to 31 by the API server."""
Port = Annotated[int, Field(ge=1, le=65535)]

_no_nulls = BeforeValidator(absent)


def _not_too_large(annotations: dict[str, str]) -> dict[str, str]:
    if (size := annotations_size(annotations)) > ANNOTATIONS_LIMIT:
        raise refuse_as("annotations", "large", size=size, limit=ANNOTATIONS_LIMIT)
    return annotations


Labels = Annotated[dict[LabelKey, LabelValue], _no_nulls]
Annotations = Annotated[dict[LabelKey, str], _no_nulls, AfterValidator(_not_too_large)]
Quantities = Annotated[dict[LabelKey, Quantity], _no_nulls]
ConfigData = Annotated[dict[ConfigKey, str], _no_nulls]
"""Keys of a ConfigMap and the text below each."""
