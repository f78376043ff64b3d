"""Rules over `carried`: that it is what it says it is, that it has a place, and that it still has a purpose."""

from collections.abc import Iterator

from ...api import keys
from ...catalog.texts import releases_with
from ...cluster.resolve import Cluster
from ...model import Body
from ...policy.language.carried import misfits
from ..rule import Hit, hit, rule
from ..subjects import Render


@rule("GPU185", "error")
def the_text_is_of_that_release(cluster: Cluster) -> Iterator[Hit]:
    """A carried text that isn't the operator's of the release that it names."""
    for index, carried in enumerate(cluster.spec.carried):
        for at, text in carried.texts.items():
            releases, path = releases_with(text.text, at), f'spec.carried[{index}].texts["{at}"].release'
            name, release, listed = carried.name, text.release, ", ".join(releases)
            if release and not releases:
                yield hit(path, "unknown", at=at, carried=name, release=release)
            elif release and release not in releases:
                yield hit(path, "known", at=at, carried=name, release=release, releases=listed, last=releases[-1])


@rule("GPU186", "error", over="render")
def what_is_carried_has_a_place(render: Render) -> Iterator[Hit]:
    """`carried` names a DaemonSet that isn't rendered, or something that its pods don't have."""
    sets = daemonsets(render)
    for index, carried in enumerate(render.spec.carried):
        path = f"spec.carried[{index}]"
        body = sets.get(carried.called or carried.name)
        if body is None and carried.name in sets:
            yield hit(f"{path}.called", "called", carried=carried.name, called=carried.called)
        elif body is None:
            near = ", ".join(sorted(sets))
            yield hit(f"{path}.name", "name", carried=carried.name, near=near, section=path)
        elif keys.CARRIED not in body["metadata"].get("annotations", {}):
            for field, missing in misfits(carried, body["spec"]["template"]["spec"]):
                yield hit(f"{path}.{field}", "place", carried=carried.name, missing=missing)


@rule("GPU187", "warning", over="render")
def what_is_carried_still_holds(render: Render) -> Iterator[Hit]:
    """What is carried has no effect any more, because the template is another by now."""
    sets = daemonsets(render)
    for index, carried in enumerate(render.spec.carried):
        body = sets.get(carried.called or carried.name)
        more = carried.without or carried.texts or carried.tolerations is not None or carried.digest or carried.volumes
        if body is None or keys.CARRIED in body["metadata"].get("annotations", {}) or not more:
            continue
        if not misfits(carried, body["spec"]["template"]["spec"]):
            kept = f", all but name, origin and called: it is still called {carried.called}" if carried.called else ""
            yield hit(f"spec.carried[{index}]", carried=carried.name, kept=kept)


def daemonsets(render: Render) -> dict[str, Body]:
    """The DaemonSets of RENDER, by name; none where nothing is carried."""
    sets = (each for each in render.resources if each.kind == "DaemonSet") if render.spec.carried else ()
    return {each.name: each.body for each in sets}
