"""The log, the clock and chance, as the language has them."""

import random
import time
from collections.abc import Iterator

from configurator_sdk import Input, Output, handler, log


@handler("log", description="Logs at every level.")
def lines(input: Input) -> Output:
    log.trace("one")
    log.debug("two")
    log.info("three")
    log.warn("four")
    log.error("fünf")
    log.info("six", b=2, a=1)
    return Output()


@handler("clock", description="The language's clock.")
def clock(input: Input) -> Output:
    return Output().pass_on("milliseconds", time.time_ns() // 1_000_000)


@handler("chance", description="Numbers made of the seed.")
def chance(input: Input) -> Output:
    """Three numbers that splitmix64 makes of the seed, as texts."""
    numbers = splitmix(input.context.seed)
    return Output().pass_on("numbers", [str(next(numbers)) for _ in range(3)])


@handler("random", description="A number by the language's generator.")
def generator(input: Input) -> Output:
    return Output().pass_on("number", str(random.getrandbits(64)))


def splitmix(state: int) -> Iterator[int]:
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E37_79B9_7F4A_7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & mask
        yield z ^ (z >> 31)
