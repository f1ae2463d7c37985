"""Names of accelerators that a request may use, and how clouds and devices spell them.

Source: EC2 DescribeInstanceTypes ``GpuInfo.Gpus[].Name`` and NVML ``nvmlDeviceGetName``, read 2026-12-01.
"""

from typing import Final

ACCELERATORS: Final[dict[str, tuple[str, ...]]] = {
    "A10G": ("a10g", "nvidia a10g"),
    "A100": ("a100", "nvidia a100-sxm4-40gb", "a100-sxm4-40gb"),
    "A100-80GB": ("a100-80gb", "nvidia a100-sxm4-80gb", "a100-sxm4-80gb"),
    "B200": ("b200", "nvidia b200"),
    "B300": ("b300", "nvidia b300"),
    "H100": ("h100", "nvidia h100 80gb hbm3", "h100-sxm5-80gb"),
    "H200": ("h200", "nvidia h200"),
    "L4": ("l4", "nvidia l4"),
    "L40S": ("l40s", "nvidia l40s"),
    "T4": ("t4", "tesla t4"),
    "T4G": ("t4g", "nvidia t4g"),
    "V100": ("v100", "tesla v100-sxm2-16gb", "v100-sxm2-16gb"),
    "V100-32GB": ("v100-32gb", "tesla v100-sxm2-32gb", "v100-sxm2-32gb"),
}
"""Short name -> lower-case spellings, the cloud catalog's first, then the device's own."""
