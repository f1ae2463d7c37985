"""The arguments of ``hostler advise``; imports nothing, since every command builds the parser."""

import argparse

KINDS = ("training", "fine-tuning", "inference", "graphics", "streaming")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds every option of the command."""
    parser.add_argument("--workload", required=True, metavar="KIND", help=f"one of {', '.join(KINDS)}")
    size = parser.add_argument_group("how large")
    size.add_argument("--parameters", metavar="N", help="of the model, such as 7b or 350M")
    size.add_argument("--model", metavar="NAME", help="a published model whose shape is known, such as llama-3-8b")
    size.add_argument("--memory-gib", metavar="GIB", help="memory that the work needs, when that is known already")
    size.add_argument(
        "--batch", type=int, default=1, help="sequences at one time, on each accelerator when training (default 1)"
    )
    size.add_argument("--sequence", type=int, default=2048, help="tokens of a sequence (default 2048)")
    size.add_argument("--tokens", metavar="N", help="of the whole training, such as 300b: gives hours")
    size.add_argument("--tokens-per-s", metavar="N", help="least speed of each sequence of an inference")
    size.add_argument(
        "--most", type=int, default=4096, metavar="N", help="most accelerators of one gang or replica (default 4096)"
    )
    way = parser.add_argument_group("how")
    way.add_argument("--precision", default="bf16", help="fp32, fp16, bf16 (default), fp8, int8 or int4")
    way.add_argument("--method", default="full", help="of fine-tuning: full (default), lora or qlora")
    way.add_argument("--framework", default="torch", help="torch (default), jax or neuron")
    way.add_argument("--optimizer", default="adam", help="adam (default), adam-8bit, adam-16bit-weights or sgd")
    way.add_argument("--recompute", help="activations: none, selective or full (default: the mildest that fits)")
    way.add_argument("--fp32-gradients", action="store_true", help="sum gradients in fp32: 18 bytes a parameter instead of 16")
    way.add_argument("--lora-rank", type=int, default=16, help="of the adapters (default 16)")
    prices = parser.add_argument_group("prices, to rank by cost")
    prices.add_argument(
        "--catalog", nargs="+", action="extend", default=[], metavar="PATH", help="price lists or folders (default: shipped)"
    )
    prices.add_argument("--keep-going", action="store_true", help="leave out broken rows, and name them")
    parser.add_argument("--limit", type=int, default=6, help="rows of the table (default 6; 0: all)")
    parser.add_argument("--why-not", action="store_true", help="every accelerator that does not fit, with the reason")
