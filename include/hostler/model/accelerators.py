"""Names of accelerators that a request may use, and how clouds and devices spell them.

Source: EC2 DescribeInstanceTypes ``GpuInfo.Gpus[].Name`` and NVML ``nvmlDeviceGetName``, read 2026-12-01.
"""

from typing import Final

ACCELERATORS: Final[dict[str, tuple[str, ...]]] = {
    "A10": ("a10", "nvidia a10"),
    "A100": ("a100", "nvidia a100-sxm4-40gb", "a100-sxm4-40gb", "a100-pcie-40gb", "nvidia-tesla-a100"),
    "A100-80GB": ("a100-80gb", "nvidia a100-sxm4-80gb", "a100-sxm4-80gb", "nvidia a100 80gb pcie", "nvidia-a100-80gb"),
    "A10G": ("a10g", "nvidia a10g"),
    "A30": ("a30", "nvidia a30"),
    "AI100": ("qualcomm-ai100", "ai100"),
    "B200": ("b200", "nvidia b200", "nvidia-b200"),
    "B300": ("b300", "nvidia b300", "nvidia-b300"),
    "GB200": ("gb200", "nvidia gb200", "nvidia-gb200"),
    "H100": ("h100", "nvidia h100 80gb hbm3", "h100-sxm5-80gb", "h100-mega", "nvidia-h100-80gb", "nvidia-h100-mega-80gb"),
    "H200": ("h200", "nvidia h200", "nvidia-h200-141gb"),
    "Inferentia": ("inferentia",),
    "Inferentia2": ("inferentia2",),
    "K80": ("k80", "tesla k80", "nvidia-tesla-k80"),
    "L20": ("l20", "nvidia l20"),
    "L4": ("l4", "nvidia l4", "nvidia-l4"),
    "L40S": ("l40s", "nvidia l40s"),
    "M60": ("m60", "tesla m60"),
    "MI25": ("mi25", "radeon mi25"),
    "MI300X": ("mi300x", "amd instinct mi300x"),
    "P100": ("p100", "tesla p100-pcie-16gb", "nvidia-tesla-p100"),
    "P4": ("p4", "tesla p4", "nvidia-tesla-p4"),
    "RTX-PRO-4500": ("rtx-pro-4500", "nvidia rtx pro 4500"),
    "RTX-PRO-6000": (
        "rtx-pro-server-6000",
        "rtx-pro-6000",
        "nvidia-rtx-pro-6000",
        "nvidia rtx pro 6000 blackwell server edition",
    ),
    "T4": ("t4", "tesla t4", "nvidia-tesla-t4"),
    "T4G": ("t4g", "nvidia t4g"),
    "TPU-v2": ("tpu-v2",),
    "TPU-v3": ("tpu-v3",),
    "TPU-v4": ("tpu-v4",),
    "TPU-v5e": ("tpu-v5e", "tpu-v5litepod"),
    "TPU-v5p": ("tpu-v5p",),
    "TPU-v6e": ("tpu-v6e",),
    "Trainium": ("trainium",),
    "Trainium2": ("trainium2",),
    "U250": ("u250", "xilinx-u250"),
    "V100": ("v100", "tesla v100-sxm2-16gb", "v100-sxm2-16gb", "nvidia-tesla-v100"),
    "V100-32GB": ("v100-32gb", "tesla v100-sxm2-32gb", "v100-sxm2-32gb"),
    "V520": ("radeon-pro-v520", "v520"),
    "VU47P": ("vu47p", "virtex ultrascale+ vu47p"),
    "VU9P": ("vu9p", "virtex ultrascale+ vu9p"),
}
"""Short name -> lower-case spellings, the cloud catalog's first, then the device's own, then Google's accelerator type."""
