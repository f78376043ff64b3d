"""One diff that tools colour: a file for each group. What the changes do stands before it, as text that they skip."""

from ....review.diff.present import blocks
from ....review.diff.ranges import fold
from ....review.diff.sides import within
from ....review.impact.tiers import named
from ...text import printable
from . import Compared, head, sentence, verdict


def write(compared: Compared) -> str:
    """COMPARED as a unified diff."""
    made = [f"# {head(compared)}", *([f"# {verdict(compared)}"] if verdict(compared) else [])]
    made += [f"# {named(effect.tier)} {effect.rule}: {sentence(effect)}" for effect in compared.impact.effects]
    for group in compared.difference.groups:
        clusters = ", ".join(fold(group.clusters))
        made.append(f"--- {within(compared.difference.before, clusters)}")
        made.append(f"+++ {within(compared.difference.after, clusters)}")
        for block in blocks(group):
            made.append(f"@@ {block.title} @@")
            made += [f"{' ' if line.mark == '~' else line.mark}{line.text}" for line in block.lines]
    return "".join(f"{printable(line)}\n" for line in made)
