"""gpustack mig: what a GPU can be cut into, layouts that fit, and pictures of what a cluster's GPUs are cut into."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import FindingsError, InputError
from ..policy.loading.load import load
from . import common
from .refusals import refusal, said
from .saving import save
from .text import as_json, picked, say

if TYPE_CHECKING:
    from ..catalog.gpus import Product
    from ..catalog.mig import MigLayout, MigProfile

BEST = "most compute slices used, then most memory, then fewest instances"


def run(options: argparse.Namespace) -> int:
    if options.action == "show":
        return show(options)
    gpu = product(options.product)
    return listed(gpu, options) if options.action == "list" else planned(gpu, options)


def product(name: str) -> Product:
    """The product called NAME, in whatever case; refused where there is none, or it takes no MIG."""
    from ..catalog import gpus

    known = {one.lower(): one for one in gpus.products()}
    try:
        gpu = gpus.product(known.get(name.lower(), name))
    except gpus.UnknownProduct as error:
        near = f"did you mean {' or '.join(error.nearest)}? " if error.nearest else ""
        raise refusal("GPU026", "product", name=repr(name), near=near) from None
    if not gpu.mig_capable:
        raise FindingsError(said("GPU303", gpu=gpu.name))
    return gpu


def listed(gpu: Product, options: argparse.Namespace) -> int:
    from ..catalog import gpus, mig

    profiles, shape = gpus.mig_profiles(gpu), mig.geometry(gpu.group)
    if options.format == "json":
        size = {"computeSlices": shape.compute_slices, "memorySlices": shape.memory_slices} if shape else None
        document = {"product": gpu.name, "board": gpu.group, "geometry": size, "uncertain": gpu.uncertain}
        print(as_json({"version": 1, **document, "profiles": [as_data(one) for one in profiles]}))
        return 0
    known = f"{shape.compute_slices} compute slices, {shape.memory_slices} memory slices" if shape else ""
    print(f"{gpu.name} ({gpu.board}): {known or 'where instances may stand is not known'}")
    if gpu.uncertain:
        say(f"not sure: {gpu.uncertain}; `nvidia-smi mig -lgip` on a node tells")
    if not profiles:
        say("its profiles are not known: `nvidia-smi mig -lgip` on a node prints them")
        return 0
    print()
    heads = ("profile", "id", "max", "GiB", "SMs", "slices", "memory", "starts at", "resource (strategy mixed)")
    rows: list[tuple[str, ...]] = [heads, *(row(one) for one in profiles)]
    widths = [max(len(line[column]) for line in rows) for column in range(len(rows[0]))]
    for line in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    for one in profiles:
        if one.alias:
            print(f"{one.name} is {one.alias} with older drivers")
    return 0


def row(profile: MigProfile) -> tuple[str, ...]:
    """A profile as cells; a dash for what isn't known."""
    from ..catalog.mig import resource_name

    numbers = (profile.id, profile.max, profile.memory_gib, profile.multiprocessors, profile.slices, profile.size)
    ids, most, gib, multiprocessors, slices, size = ("-" if number is None else str(number) for number in numbers)
    starts = ",".join(str(start) for start in profile.starts) or "-"
    return profile.name, ids, most, gib, multiprocessors, slices, size, starts, resource_name(profile.name)


def as_data(profile: MigProfile) -> dict[str, Any]:
    """A profile for --format json."""
    from ..catalog.mig import config_name, resource_name

    sizes = picked(profile, "computeSlices=slices memorySlices=size starts memoryGiB=memory_gib multiprocessors")
    names = {"resource": resource_name(profile.name), "config": config_name(profile.name)}
    return {**picked(profile, "name alias id max"), **sizes, **names}


def planned(gpu: Product, options: argparse.Namespace) -> int:
    from ..catalog import mig, mig_solver

    wanted = layout(gpu, options.want)
    shape = mig.geometry(gpu.group)
    if shape is None:
        raise InputError(said("GPU026", "placements", gpu=gpu.name))
    reason = mig_solver.explain(gpu.group, wanted)
    if reason is not None:
        largest = mig_solver.largest_part(gpu.group, wanted).as_dict()
        part = ",".join(f"{name}={count}" for name, count in largest.items())
        raise FindingsError(said("GPU302", reason=reason, part=part))
    complete = mig_solver.completions(gpu.group, wanted)
    rows = [(one, *mig_solver.used(gpu.group, one)) for one in complete]
    if options.format == "json":
        document = {"product": gpu.name, "board": gpu.group, "want": wanted.as_dict(), "bestFirst": BEST}
        layouts = [
            {"layout": one.as_dict(), "computeSlices": compute, "memorySlices": memory, "instances": one.instances}
            for one, compute, memory in rows
        ]
        print(as_json({"version": 1, **document, "layouts": layouts}))
        return 0
    what = f"{wanted}, and as much beside it as fits" if wanted.counts else "all layouts that leave no room"
    print(f"{gpu.name}: {what}")
    print(f"best first: {BEST}\n\ncompute  memory  instances  layout")
    for one, compute, memory in rows:
        of_compute, of_memory = f"{compute}/{shape.compute_slices}", f"{memory}/{shape.memory_slices}"
        print(f"{of_compute:>7}  {of_memory:>6}  {one.instances:>9}  {one}")
    from ..review.mig_picture import of_layout, terminal

    print(f"\n{terminal([of_layout('the best:', gpu.group, complete[0])])}")
    best = ", ".join(f"{name}: {count}" for name, count in complete[0].as_dict().items())
    print(f"sharing: {{mig: {{layout: {{{best}}}}}}}")
    return 0


def layout(gpu: Product, text: str) -> MigLayout:
    """The layout that TEXT asks for; refused where it isn't a layout, or has a profile of another board."""
    from ..catalog import gpus
    from ..catalog.mig import IllegalProfile, MigLayout, UnknownProfile

    try:
        wanted = MigLayout.parse(text)
        for name, _ in wanted.counts:
            gpus.mig_profile(gpu, name)
    except IllegalProfile as error:
        raise InputError.of("GPU026", f"--want: {error}", remedy="write 1g.10gb=4,3g.40gb=1") from None
    except UnknownProfile as error:
        known = ", ".join(one.name for one in gpus.mig_profiles(gpu)) or "none that are known"
        near = f"did you mean {error.nearest[0]}? " if error.nearest else ""
        raise FindingsError(said("GPU301", gpu=gpu.name, name=error.name, near=near, known=known)) from None
    return wanted


def show(options: argparse.Namespace) -> int:
    from ..review import mig_picture

    loaded = load(common.select_one(options.cluster), root=Path.cwd())
    drawings = mig_picture.of_spec(loaded.spec)
    picture = mig_picture.svg(f"MIG layouts of {loaded.name}", drawings) if options.svg else ""
    if options.svg == "-":
        sys.stdout.write(picture)
        return 0
    if options.svg:
        save(Path(options.svg), picture, "the picture", "name another file after --svg")
    if options.format == "json":
        gpus = [picked(each, "gpus=caption what=detail memorySlices=slices placements") for each in drawings]
        for each in gpus:
            each["placements"] = [picked(one, "profile start size") for one in each["placements"]]
        print(as_json({"version": 1, "cluster": loaded.name, "gpus": gpus}))
    elif drawings:
        print(f"{loaded.name}\n\n{mig_picture.terminal(drawings)}", end="")
    else:
        print(f"{loaded.name} has no node pool")
    return 0
