"""How often nodes are lost, where nobody has measured the user's own.

Sources: see each constant; read 2026-12-01.
"""

from decimal import Decimal
from typing import Final

AS_OF: Final = "2026-12-01"

SPOT_LOSSES_PER_NODE_HOUR: Final = Decimal("0.40")
"""Median of the losses per hour held over the 20 one-node traces of skypilot-org/spot-traces (commit 221da1a: V100, K80, CPU;
AWS and Google, 2022-10 to 2023-04). They lie between 0 and 1.39. A cautious stand-in: clouds publish bands only (AWS by month,
Azure by hour), and newer types have other weather. Give your own figures when you have some.
"""

FAULTS_PER_ACCELERATOR_HOUR: Final = Decimal("0.0000198")
"""Losses that no spot market causes: 419 unexpected interruptions in 54 days on 16,384 H100. Source: "The Llama 3 Herd of
Models", arXiv 2407.21783, section 3.3.4.
"""
