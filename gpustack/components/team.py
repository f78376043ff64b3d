"""A team's own construct within the stack: its objects are looked at as made by code that gpustack doesn't know.

It is any cdk8s construct that is made with (scope, id, inputs), or a Component. Its objects are told to be its own (an
annotation, by which reviews judge them as foreign), are not Secrets, and go into the stage that it names.
"""

from collections.abc import Iterator
from typing import Any

import cdk8s
from constructs import Construct as Node

from ..model import CONSTRUCT, KIND_STAGE, STAGES, Body, FindingsError, Resource, Stage
from ..policy.loading.constructs import Construct, RefusedError
from .component import Component, Manifest
from .parts.hygiene import clean
from .team_inputs import TeamInputs, failed


class TeamConstruct(Node):
    """The construct KNOWN below SCOPE, made of INPUTS. Raises FindingsError for whatever goes wrong in it."""

    def __init__(self, scope: Node, id: str, inputs: TeamInputs, *, known: Construct) -> None:  # noqa: A002 - cdk8s' own
        super().__init__(scope, id)
        try:
            made = known.type()(self, known.name, known.model().model_validate(inputs.said))
            stage = getattr(made, "stage", "operands")
            if stage not in STAGES or stage == "crds":
                raise RefusedError(f"its stage is {stage!r}: {', '.join(STAGES[1:])} are stages")
            self._resources = [_resource(body, stage, known.name) for body in _bodies(made)]
        except Exception as error:  # its code, whatever that does
            raise FindingsError(failed(known, error)) from error

    def resources(self) -> list[Resource]:
        """The objects."""
        return self._resources


def _bodies(made: Any) -> Iterator[Body]:
    """The objects in the construct MADE, of which Node is asked only for those that it alone has."""
    if isinstance(made, Component):
        yield from (resource.body for resource in made.resources())
        return
    for each in made.node.find_all():
        if isinstance(each, Manifest):
            yield each.resource("").body
        elif isinstance(each, cdk8s.ApiObject):
            yield each.to_json()


def _resource(body: Body, stage: Stage, name: str) -> Resource:
    """BODY of the construct NAME as what is rendered. Raises RefusedError."""
    if not isinstance(body.get("kind"), str) or not isinstance(body.get("apiVersion"), str):
        raise RefusedError("it makes an object without apiVersion or kind")
    meta = body.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise RefusedError(f"it makes a {body['kind']} without a name")
    if (body["apiVersion"], body["kind"]) == ("v1", "Secret"):
        raise RefusedError(f"it makes the Secret {meta['name']}, which dist/ would show to everybody")
    notes = {**(meta.get("annotations") or {}), CONSTRUCT: name}
    made = clean({**body, "metadata": {**meta, "annotations": notes}})
    return Resource(made, KIND_STAGE.get(body["kind"], stage), "TeamConstruct")
