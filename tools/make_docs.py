"""Write the generated parts of docs/ anew: the field reference in docs/policy.md comes from the models."""

from __future__ import annotations

from pathlib import Path

from gpustack.policy.reference import replaced

POLICY = Path("docs/policy.md")

if __name__ == "__main__":
    POLICY.write_text(replaced(POLICY.read_text(encoding="utf-8")), encoding="utf-8")
