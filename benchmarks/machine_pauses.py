"""How long this machine makes a process wait, by itself: what any server's p99 has in it there.

    .venv/bin/python benchmarks/machine_pauses.py --rate 200 --work-ms 1

Does a fixed piece of arithmetic at random times (Poisson), on core 0, without socket, lock or
other thread, and prints how late the pieces end. On a quiet machine of one's own the 99th
percentile is a small multiple of the work; on a rented one the hypervisor takes the core away
meanwhile, which `/proc/stat` need not tell.
"""

import argparse
import os
import random
import sys
import time


def main() -> None:
    """Print percentiles of the time a piece takes, and of its end after the moment it was due."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=200.0, help="pieces a second")
    parser.add_argument("--work-ms", type=float, default=1.0, help="a piece undisturbed")
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    os.sched_setaffinity(0, {0})
    rounds = rounds_in(asked.work_ms / 1e3)
    took, late = [], []
    due = time.perf_counter()
    end = due + asked.seconds
    while (due := due + random.expovariate(asked.rate)) < end:
        time.sleep(max(0.0, due - time.perf_counter()))
        begun = time.perf_counter()
        work(rounds)
        ended = time.perf_counter()
        took.append((ended - begun) * 1e3)
        late.append((ended - due) * 1e3)
    for name, values in (("a piece takes, ms", took), ("it ends after it was due, ms", late)):
        values.sort()
        marks = ((50, 0.5), (90, 0.9), (99, 0.99), (99.9, 0.999))
        found = (f"p{mark:g} {values[int(len(values) * at)]:.2f}" for mark, at in marks)
        sys.stdout.write(f"{name}: {', '.join(found)}\n")


def work(rounds: int) -> int:
    """The same arithmetic each time."""
    total = 0
    for number in range(rounds):
        total += number * number
    return total


def rounds_in(seconds: float) -> int:
    """How many rounds take that long when nothing comes between: by the fastest of many tries."""
    fastest = 1.0
    for _ in range(200):
        begun = time.perf_counter()
        work(1_000)
        fastest = min(fastest, time.perf_counter() - begun)
    return max(1, int(1_000 * seconds / fastest))


if __name__ == "__main__":
    main()
