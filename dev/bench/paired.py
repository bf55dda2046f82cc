"""How much more CPU time one command takes than another: paired.py PAIRS REPEATS A… -- B…

Both run in turns, PAIRS times, each time REPEATS runs in a row. Prints the median over the pairs of A / B - 1 in percent, and the interval in which that median
lies with 95 % (the bootstrap's percentiles)."""

import random
import resource
import statistics
import subprocess
import sys

RESAMPLES = 2000


def seconds(command, repeats):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(repeats):
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    pairs, repeats = int(sys.argv[1]), int(sys.argv[2])
    middle = sys.argv.index("--")
    one, other = sys.argv[3:middle], sys.argv[middle + 1 :]
    ratios = []
    for pair in range(pairs):
        # Who is first alternates, too.
        if pair % 2 == 0:
            a = seconds(one, repeats)
            b = seconds(other, repeats)
        else:
            b = seconds(other, repeats)
            a = seconds(one, repeats)
        ratios.append((a / b - 1) * 100)
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(ratios, k=pairs)) for _ in range(RESAMPLES))
    low, high = medians[RESAMPLES // 40], medians[-1 - RESAMPLES // 40]
    print(f"{statistics.median(ratios):.1f} {low:.1f} {high:.1f}")


main()
